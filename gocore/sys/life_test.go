package sys

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAliveAlsoWithoutDescriptors(t *testing.T) {
	ended := exec.Command("true")
	require.NoError(t, ended.Run())
	age := StartTime(os.Getpid())
	require.NotZero(t, age)
	assert.Equal(t, Living, Look(os.Getpid(), age))
	assert.Equal(t, Ended, Look(os.Getpid(), age+1), "the pid is another process's")
	alive := func() {
		t.Helper()
		assert.True(t, Alive(os.Getpid()))
		assert.False(t, Alive(ended.Process.Pid))
	}
	alive()
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	free, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Close(free))
	none := unix.Rlimit{Cur: uint64(free), Max: limit.Max}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &none))
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) //nolint:errcheck // as it was
	_, err = os.Open("/dev/null")
	require.ErrorIs(t, err, unix.EMFILE)
	alive()
	assert.Zero(t, StartTime(os.Getpid()))
	assert.Equal(t, Unknown, Look(os.Getpid(), age))
	assert.Equal(t, Unknown, Look(os.Getpid(), age+1), "a process that can't be inspected is not dead")
	assert.ErrorIs(t, PrepareRuntime(), unix.EMFILE)
}
