package launch

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal is a command whose controlling terminal is a pseudo-terminal.
type terminal struct {
	cmd    *exec.Cmd
	master *os.File
	shown  lockedBuffer
	done   chan struct{}
}

func onTerminal(t *testing.T, name string, args ...string) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer slave.Close()
	x := &terminal{cmd: exec.Command(name, args...), master: os.NewFile(uintptr(fd), "terminal"), done: make(chan struct{})}
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, x.cmd.Start())
	go func() {
		defer close(x.done)
		buf := make([]byte, 4096)
		for {
			n, err := x.master.Read(buf)
			_, _ = x.shown.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = x.cmd.Process.Kill(); x.master.Close() })
	return x
}

// expect waits until the terminal shows text.
func (x *terminal) expect(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(x.shown.String(), text) }, soon, 5*time.Millisecond,
		"%q was not shown, but %q", text, &x.shown)
}

func (x *terminal) enter(t *testing.T, text string) {
	t.Helper()
	_, err := x.master.WriteString(text)
	require.NoError(t, err)
}

func (x *terminal) end(t *testing.T) int {
	t.Helper()
	late := time.AfterFunc(2*time.Minute, func() { _ = x.cmd.Process.Kill() })
	_ = x.cmd.Wait()
	require.True(t, late.Stop(), "hangs; the terminal shows %q", &x.shown)
	select {
	case <-x.done: // all output has been read
	case <-time.After(soon):
	}
	return x.cmd.ProcessState.ExitCode()
}

func TestTerminalInput(t *testing.T) {
	x := onTerminal(t, mpiexec, sh(2, `[ $GORMAPY_JOB_RANK = 0 ] && printf "Name? "; read name; echo "$GORMAPY_JOB_RANK is <$name>"; cat`)...)
	x.expect(t, "Name? ")
	x.expect(t, "1 is <>")
	x.enter(t, "Ada\n")
	x.expect(t, "0 is <Ada>")
	x.enter(t, "\x04") // Ctrl-D
	assert.Equal(t, 0, x.end(t))
}

func TestTerminalInterrupt(t *testing.T) {
	for try := range 6 {
		x := onTerminal(t, mpiexec, sh(2, `trap "echo got it; exit 1" INT; echo ready $GORMAPY_JOB_RANK; while :; do sleep 0.01; done`)...)
		x.expect(t, "ready 0")
		x.expect(t, "ready 1")
		x.enter(t, "\x03") // Ctrl-C
		assert.Equal(t, 130, x.end(t))
		if try == 5 || !strings.Contains(x.shown.String(), "did not end within") { // see inTime
			assert.Equal(t, 2, strings.Count(x.shown.String(), "got it"))
			return
		}
	}
}

// TestTerminalJobControl runs a job in the background of an interactive shell,
// which must keep its input to itself.
func TestTerminalJobControl(t *testing.T) {
	x := onTerminal(t, "bash", "--norc", "--noediting", "-i")
	x.enter(t, mpiexec+` -n 1 sh -c 'echo started $((1+0)); read x; echo "rank read <$x>"' &`+"\n")
	x.expect(t, "started 1")
	time.Sleep(300 * time.Millisecond)
	x.enter(t, "echo to the $((1+0))st shell\n")
	x.expect(t, "to the 1st shell")
	assert.NotContains(t, x.shown.String(), "read <echo")
	x.enter(t, "fg\n")
	time.Sleep(300 * time.Millisecond)
	x.enter(t, "for the rank\n")
	x.expect(t, "rank read <for the rank>")
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			_, _ = x.master.WriteString("exit\n") // the rank may still read the first one
			select {
			case <-ended:
				return
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	x.end(t)
}
