package sys

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// leader starts a process that leads a group.
func leader(t *testing.T, script string) *exec.Cmd {
	c := exec.Command("sh", "-c", script)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		_ = c.Wait()
	})
	return c
}

func TestSignalReachesOnlyTheIntendedProcess(t *testing.T) {
	c := leader(t, "sleep 60")
	Signal(c.Process.Pid, func(int) bool { return false }, unix.SIGKILL)
	assert.True(t, Alive(c.Process.Pid))
	Signal(c.Process.Pid, func(pid int) bool { return pid == c.Process.Pid }, unix.SIGTERM, unix.SIGCONT)
	assert.Error(t, c.Wait())
	assert.Equal(t, unix.SIGTERM, c.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

func TestGroupOutlivesItsLeader(t *testing.T) {
	for _, descriptor := range []bool{true, false} {
		c := exec.Command("sh", "-c", "sleep 60 & echo $!")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		g := OpenGroup(c.Process.Pid, StartTime(c.Process.Pid))
		if !descriptor {
			unix.Close(g.fd)
			g.fd = -1
		}
		var text [16]byte
		_, err = out.Read(text[:])
		require.NoError(t, err)
		_ = c.Wait()
		require.NoError(t, unix.Kill(-c.Process.Pid, 0))
		g.Kill()
		assert.Eventually(t, func() bool { return unix.Kill(-c.Process.Pid, 0) == unix.ESRCH }, 5*time.Second, time.Millisecond)
	}
}

func TestGroupWhoseNumberIsAnotherOnes(t *testing.T) {
	for _, descriptor := range []bool{true, false} {
		first := leader(t, "exit 0")
		g := OpenGroup(first.Process.Pid, 0)
		require.NoError(t, first.Wait())
		time.Sleep(30 * time.Millisecond) // start times have steps of 10 ms
		second := leader(t, "sleep 60")
		g.leader = second.Process.Pid // as if the second one had been given the number
		if !descriptor {
			unix.Close(g.fd)
			g.fd = -1
		}
		g.Kill()
		time.Sleep(30 * time.Millisecond)
		assert.True(t, Alive(second.Process.Pid))
	}
}

func TestGroupWhoseNumberIsAnotherOnesWhenItIsOpened(t *testing.T) {
	other := leader(t, "sleep 60")
	g := OpenGroup(other.Process.Pid, StartTime(other.Process.Pid)-1)
	g.Kill()
	time.Sleep(30 * time.Millisecond)
	assert.True(t, Alive(other.Process.Pid))
}

func TestGroupThatIsOpenedAfterItsLeadersEnd(t *testing.T) {
	c := exec.Command("sh", "-c", "sleep 60 & echo $!")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	started := StartTime(c.Process.Pid)
	var text [16]byte
	_, err = out.Read(text[:])
	require.NoError(t, err)
	_ = c.Wait()
	OpenGroup(c.Process.Pid, started).Kill()
	assert.Eventually(t, func() bool { return unix.Kill(-c.Process.Pid, 0) == unix.ESRCH }, 30*time.Second, time.Millisecond)
}
