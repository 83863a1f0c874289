package launch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode))
	}
	write("bin/prog", 0o755)
	write("bin/plain", 0o644)
	write("bin/python3", 0o755)
	write("later/plain", 0o755)
	write("script.py", 0o644)
	write("here", 0o755)
	bin, later := filepath.Join(dir, "bin"), filepath.Join(dir, "later")

	for _, c := range []struct{ name, path, want string }{
		{"prog", bin, bin + "/prog"},
		{"prog", "/nowhere:" + bin, bin + "/prog"},
		{"prog", "bin", "bin/prog"},
		{"plain", bin + ":" + later, later + "/plain"},
		{"./here", "", "./here"},
		{"here", "", ""},
		{"here", ":", "./here"},
		{bin + "/prog", "", bin + "/prog"},
	} {
		got, err := findProgram(c.name, dir, c.path)
		assert.Equal(t, c.want, got, c)
		assert.Equal(t, c.want == "", err != nil, c)
	}
	for _, c := range []struct {
		name, path string
		status     int
		text       string
	}{
		{"nosuch", bin, 127, "nosuch: program not found on PATH"},
		{"./nosuch", bin, 127, "no such file"},
		{"plain", bin, 126, "permission denied"},
		{"./bin", bin, 126, "directory"},
		{"./script.py", bin, 126, "mpiexec -n N python ./script.py"},
		{"script.py", bin, 127, "mpiexec -n N python script.py"},
		{"here", bin, 127, "./here"},
		{"python", bin, 127, "python3 is there"},
	} {
		_, err := findProgram(c.name, dir, c.path)
		var pe *ProgramError
		if assert.ErrorAs(t, err, &pe, c) {
			assert.Equal(t, c.status, pe.Status, c)
			assert.Contains(t, pe.Text, c.text, c)
		}
	}
}
