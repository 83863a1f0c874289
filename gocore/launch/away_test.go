package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/home"
	"gormapy/gocore/trace"
)

// The tests in this file have a shell script stand in for Hydra. It starts the test binary as
// ranks, which talk to mpiexec as package monitor does.

// hydra is the stand-in: the ranks are started in the background, and the first that fails
// ends the others, after a delay: of ranks that end at the same time, mpiexec may name any. It takes the options "-hosts X -n N" before the program.
const hydra = `#!/bin/bash
n=$4; shift 4
end() { { kill -9 $pids; wait; } 2>/dev/null; exit $1; }
trap 'end 15' TERM
trap 'end 0' INT
for ((i = 0; i < n; i++)); do
	PMI_RANK=$i "$@" &
	pids="$pids $!"
done
for p in $pids; do
	wait -n || { status=$?; sleep 0.3; end $status; }
done
`

// actAway is a rank of a job away. It returns its exit status.
func actAway(role string) int {
	rank, _ := strconv.Atoi(os.Getenv("PMI_RANK"))
	at := home.Given()
	l, err := at.Call(home.Hello{Rank: rank, Size: 3, PID: os.Getpid(), Node: rank / 2, Host: fmt.Sprintf("host%d", rank/2)})
	if err != nil {
		fmt.Println(err)
		return 97
	}
	dir := os.Getenv("LAUNCH_TEST_FILES")
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("up.%d", rank)), nil, 0o644); err != nil {
		fmt.Println(err)
		return 97
	}
	othersAreUp := func() {
		for {
			if up, _ := filepath.Glob(filepath.Join(dir, "up.*")); len(up) == 3 {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	collected := make(chan struct{})
	heard := make(chan struct{})
	go func() {
		for {
			m, err := l.Receive()
			if err != nil {
				return
			}
			switch {
			case m.Kind == home.Heard:
				close(heard)
			case m.Kind == home.Collect:
				sendPart(l, rank)
				close(collected)
			case role == "silent" && rank == 1: // as if it were stopped
			case m.Kind == home.Describe:
				lines := map[int][]string{}
				for r := rank / 2 * 2; r < min(rank/2*2+2, 3); r++ {
					lines[r] = []string{fmt.Sprintf("rank %d (pid 5): waits", r)}
				}
				_ = l.Send(&home.Message{Kind: home.State, Lines: lines})
			case m.Kind == home.Stacks:
				fmt.Fprintf(os.Stderr, "stacks of %d\n", rank)
			case m.Kind == home.End:
				os.Exit(m.Code)
			}
		}
	}()
	switch {
	case role == "fails" && rank == 1:
		othersAreUp()
		_ = l.Send(&home.Message{Kind: home.Failed, Code: 7, How: "called Abort(7)"})
		<-heard
		return 7
	case role == "killed" && rank == 1:
		othersAreUp()
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case role == "well":
		if at.Record {
			sendPart(l, rank)
		}
		_ = l.Send(&home.Message{Kind: home.Bye})
		<-heard
		fmt.Fprintf(os.Stderr, "heard %d\n", rank)
		return 0
	}
	time.Sleep(10 * time.Minute)
	return 96
}

// sendPart sends a recording of one call.
func sendPart(l *home.Link, rank int) {
	p, err := trace.NewPart(10)
	if err == nil {
		err = trace.Start(p, rank, 3, os.Getpid(), "Send\tmessage")
	}
	if err == nil {
		err = l.Send(&home.Message{Kind: home.Record, Data: trace.Stop().Bytes()})
	}
	if err != nil {
		fmt.Println(err)
	}
}

// awayCommand runs the test binary as three ranks on other hosts.
func awayCommand(t *testing.T, role string, options ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mpiexec.hydra"), []byte(hydra), 0o755))
	own, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(mpiexec, append(append([]string{"-hosts", "far"}, options...), "-n", "3", own)...)
	c.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "LAUNCH_TEST_AWAY=" + role, "LAUNCH_TEST_FILES=" + dir}
	return c
}

// awayFiles returns the folder of a command's ranks. Each makes a file there, up.N, when it has called mpiexec.
func awayFiles(c *exec.Cmd) string {
	for _, setting := range c.Env {
		if dir, ok := strings.CutPrefix(setting, "LAUNCH_TEST_FILES="); ok {
			return dir
		}
	}
	return ""
}

func TestAwayAllGoesWell(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	r := runCmd(t, awayCommand(t, "well", "--trace", file, "--summary"))
	assert.Equal(t, 0, r.status, r)
	assert.Contains(t, r.err, "3 ranks on several hosts: handing over to mpiexec.hydra")
	assert.Equal(t, 3, strings.Count(r.err, "heard"), "each rank waits until what it sent has arrived: %s", r.err)
	assert.Contains(t, r.err, "what 3 ranks did in")
	assert.NotContains(t, r.err, "recorded nothing")
	assert.FileExists(t, file)
}

func TestAwayTheFirstFailureIsToldOnce(t *testing.T) {
	r := runCmd(t, awayCommand(t, "fails"))
	assert.Equal(t, 7, r.status, r)
	assert.Regexp(t, `mpiexec: rank 1 \(host0, pid \d+\) called Abort\(7\); stopping the other 2 ranks\n`, r.err)
	assert.Equal(t, 1, strings.Count(r.err, "mpiexec: rank"), r.err)
}

func TestAwayARankThatFailsWaitsForTheRecordings(t *testing.T) {
	r := runCmd(t, awayCommand(t, "fails", "--summary"))
	assert.Equal(t, 7, r.status, r)
	assert.NotContains(t, r.err, "recorded nothing", "of ranks that the engine kills at once")
}

func TestAwayAKilledRankIsNamed(t *testing.T) {
	r := runCmd(t, awayCommand(t, "killed"))
	assert.Equal(t, 137, r.status, r)
	assert.Regexp(t, `mpiexec: rank 1 \(host0, pid \d+\) was killed by signal 9 \(SIGKILL\)`, r.err)
}

func TestAwayTimeout(t *testing.T) {
	var r result
	for _, limit := range []string{"1", "5", "25"} {
		if r = runCmd(t, awayCommand(t, "silent", "--timeout", limit)); !strings.Contains(r.err, "has not initialised") {
			break // all ranks were there in time
		}
	}
	assert.Equal(t, 124, r.status, r)
	assert.Contains(t, r.err, "s; what the ranks do:\n"+
		"mpiexec:   rank 0 (host0, pid 5): waits\n"+
		"mpiexec:   rank 1 (host0, pid 5): waits; it does not answer, as if it were stopped\n"+
		"mpiexec:   rank 2 (host1, pid 5): waits\n")
	assert.Equal(t, []int{1, 1}, []int{strings.Count(r.err, "stacks of 0\n"), strings.Count(r.err, "stacks of 2\n")}, r.err)
	assert.NotContains(t, r.err, "killed", "it is the time-out that ends the job")
}

func TestAwayTimeoutOfTheEnvironment(t *testing.T) {
	c := awayCommand(t, "silent")
	c.Env = append(c.Env, "GORMAPY_TIMEOUT=0.5")
	r := runCmd(t, c)
	assert.Equal(t, 124, r.status, r)
	assert.Contains(t, r.err, "time-out after 500ms")
}

// A signal to this process alone is passed on; one to the group the engine has got already.
func TestAwaySignals(t *testing.T) {
	for name, group := range map[string]bool{"to mpiexec": false, "to the group": true} {
		t.Run(name, func(t *testing.T) {
			c := awayCommand(t, "waits")
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			r := runCmd(t, c, func() {
				assert.Eventually(t, func() bool { up, _ := filepath.Glob(filepath.Join(awayFiles(c), "up.*")); return len(up) == 3 }, soon, 5*time.Millisecond)
				pid := c.Process.Pid
				if group {
					pid = -pid
				}
				assert.NoError(t, unix.Kill(pid, unix.SIGINT))
			})
			assert.Equal(t, 130, r.status, r)
			assert.NotContains(t, r.err, "mpiexec: rank", r)
		})
	}
}

func TestAwayOutputFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	c := awayCommand(t, "", "--output-dir", dir)
	c.Args = append(c.Args[:len(c.Args)-1], "sh", "-c", "echo out $PMI_RANK; echo err >&2")
	r := runCmd(t, c)
	assert.Equal(t, 0, r.status, r)
	assert.Empty(t, r.out)
	for rank := range 3 {
		for name, want := range map[string]string{"out": fmt.Sprintf("out %d\n", rank), "err": "err\n"} {
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank.%d.%s", rank, name)))
			require.NoError(t, err)
			assert.Equal(t, want, string(text))
		}
	}
	c = awayCommand(t, "", "--merge-stderr-to-stdout")
	c.Args = append(c.Args[:len(c.Args)-1], "sh", "-c", "echo err >&2")
	r = runCmd(t, c)
	assert.Equal(t, "err\nerr\nerr\n", r.out)
	c = awayCommand(t, "", "--output-dir", dir)
	c.Args[len(c.Args)-1] = "no-such-program"
	assert.Contains(t, runCmd(t, c).err, "no-such-program: program not found on PATH", "as on one host")
}
