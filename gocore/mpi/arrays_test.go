package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"gormapy/gocore/settings"
)

func TestByteCountTakesTheDefaultForWhatIsNone(t *testing.T) {
	for text, want := range map[string]uint64{"": 32768, "0": 0, "4096": 4096, "-1": 32768, "64K": 32768, "99999999999999999999": 32768} {
		t.Setenv(settings.SharedArraysFrom.Name, text)
		assert.Equal(t, want, ArraysFrom(), text)
	}
}
