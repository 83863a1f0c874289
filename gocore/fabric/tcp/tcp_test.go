package tcp

import (
	"testing"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

func create(dir fabric.Directory) (fabric.Transport, error) { return New(dir, Options{}) }

// guarded makes transports with a guard.
func guarded(g Guard) fabrictest.Make {
	return func(dir fabric.Directory) (fabric.Transport, error) { return New(dir, Options{Guard: g}) }
}

var guardNames = [guards]string{"clear", "authenticated", "encrypted"}

// each runs a test with each guard from first on.
func each(t *testing.T, first Guard, f func(t *testing.T, g Guard)) {
	for g := first; g < guards; g++ {
		t.Run(guardNames[g], func(t *testing.T) { f(t, g) })
	}
}

func TestConformance(t *testing.T) {
	each(t, Clear, func(t *testing.T, g Guard) { fabrictest.Run(t, guarded(g)) })
}
