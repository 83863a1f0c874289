package boot

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestLetOutputPass makes a pipe with a slow reader this process's standard
// error for a while.
func TestLetOutputPass(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	saved, err := unix.Dup(2)
	require.NoError(t, err)
	require.NoError(t, unix.Dup3(int(w.Fd()), 2, 0))
	defer func() {
		require.NoError(t, unix.Dup3(saved, 2, 0))
		unix.Close(saved)
	}()
	_, err = unix.Write(2, []byte("trace"))
	require.NoError(t, err)
	var passed atomic.Bool
	go func() {
		time.Sleep(50 * time.Millisecond)
		passed.Store(true)
		_, _ = r.Read(make([]byte, 10))
	}()
	letOutputPass()
	assert.True(t, passed.Load(), "it did not wait for the reader")

	_, err = unix.Write(2, []byte("nobody reads this"))
	require.NoError(t, err)
	begin := time.Now()
	letOutputPass()
	assert.Less(t, time.Since(begin), 20*time.Second)
}
