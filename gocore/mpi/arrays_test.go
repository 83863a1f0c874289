package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"gormapy/gocore/settings"
)

func TestArraysFrom(t *testing.T) {
	for text, want := range map[string]uint64{"": 32768, "0": 4096, "10000": 10000, "64K": 32768} {
		t.Setenv(settings.SharedArraysFrom.Name, text)
		assert.Equal(t, want, ArraysFrom(), text)
	}
}
