// Package build stands beside the build backend of the Python package
// (gormapy_build, in this folder) and has no code of its own: it names the
// Go packages that only generated code imports, so that go.mod, go.sum and a
// source distribution's vendor folder keep them.
//
// It may import nothing of the project.
package build

import (
	// What gopy generates from pybind/core imports gopyh.
	_ "github.com/go-python/gopy/gopyh"
)
