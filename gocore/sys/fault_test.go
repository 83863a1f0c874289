package sys

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTouch(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, file.Truncate(8192))
	mem, err := unix.Mmap(int(file.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(mem)) }()

	assert.NoError(t, Touch(func() { mem[5000] = 1 }))
	require.NoError(t, file.Truncate(4096))
	var fault *Fault
	assert.ErrorAs(t, Touch(func() { mem[5000] = 1 }), &fault, "beyond the end of the file")
	assert.ErrorContains(t, fault, "can't be read or written")
	require.NoError(t, unix.Mprotect(mem, unix.PROT_READ))
	assert.ErrorAs(t, Touch(func() { mem[100] = 1 }), &fault, "protected")

	assert.PanicsWithValue(t, "other", func() { _ = Touch(func() { panic("other") }) })
}
