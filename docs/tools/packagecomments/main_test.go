package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachPackageIsInOneLayer(t *testing.T) {
	packages, err := read("../../../gocore")
	require.NoError(t, err)
	require.Contains(t, packages, ".")
	seen := map[string]int{}
	for _, layer := range layers(packages) {
		for _, name := range layer.Packages {
			seen[name]++
			assert.Contains(t, packages, name, layer.Name)
		}
	}
	delete(packages, ".")
	assert.Greater(t, len(packages), 40)
	for name, p := range packages {
		assert.Equal(t, 1, seen[name], name)
		assert.Regexp(t, `^(Package|Command) `, p.Comment, name)
		assert.NotContains(t, p.Imports, name)
	}
}

func TestHeadingsAndLists(t *testing.T) {
	packages, err := read("../../../gocore")
	require.NoError(t, err)
	engine := packages["engine"]
	assert.Contains(t, engine.Comment, "\n### Who polls\n")
	assert.Contains(t, engine.Comment, "\n 1. ")
	assert.Contains(t, engine.Imports, "fabric")
}
