package tcp

import (
	"testing"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

func create(dir fabric.Directory) (fabric.Transport, error) { return New(dir, Options{}) }

func TestConformance(t *testing.T) { fabrictest.Run(t, create) }
