package sys

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestCopyRefusal(t *testing.T) {
	if why := CopyRefusal(os.Getpid()); why != "" {
		t.Skip(why) // the remaining checks would fail for the same reason
	}
	child := exec.Command("sleep", "60")
	require.NoError(t, child.Start())
	pid := child.Process.Pid
	assert.Empty(t, CopyRefusal(pid), "a child is always allowed")
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	assert.Contains(t, CopyRefusal(pid), "there is no process")
}

// Root's processes can't be accessed by other users.
func TestCopyRefusalOfAnotherUser(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may look into every process")
	}
	assert.Contains(t, CopyRefusal(1), "belongs to user 0")
}

func TestDeniedNamesTheUser(t *testing.T) {
	var st unix.Stat_t
	require.NoError(t, unix.Stat("/proc/1", &st))
	if os.Geteuid() == int(st.Uid) {
		assert.NotContains(t, denied(1), "belongs to user")
	} else {
		assert.Contains(t, denied(1), "process 1 belongs to user")
	}
}

func TestStatus(t *testing.T) {
	assert.Regexp(t, `^\d+$`, status("self", "Uid"))
	assert.Empty(t, status("self", "NoSuchField"))
	assert.Empty(t, status("0", "Uid"))
}
