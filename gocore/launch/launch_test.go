package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// The tests in this file run shell programs under a real mpiexec.

var mpiexec string

// soon bounds operations that take well under a second on a machine that is not busy.
const soon = time.Minute

func TestMain(m *testing.M) {
	if role := os.Getenv("LAUNCH_TEST_ROLE"); role != "" {
		os.Exit(actRank(role))
	}
	if role := os.Getenv("LAUNCH_TEST_AWAY"); role != "" {
		os.Exit(actAway(role))
	}
	dir, err := os.MkdirTemp("", "launch-test-")
	if err != nil {
		panic(err)
	}
	mpiexec = filepath.Join(dir, "mpiexec")
	build := exec.Command("go", "build", "-o", mpiexec, "gormapy/gocore/cmd/mpiexec")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build mpiexec: %v\n%s", err, out))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// actRank makes the test binary a rank that uses the job segment.
func actRank(role string) int {
	seg, err := job.Open(os.Getenv("GORMAPY_JOB_SEGMENT"))
	if err != nil {
		fmt.Println(err)
		return 99
	}
	r, _ := strconv.Atoi(os.Getenv("GORMAPY_JOB_RANK"))
	if _, ok := seg.Claim(r); !ok {
		return 98
	}
	switch role {
	case "abort": // rank 1 aborts and hangs
		if r == 1 {
			seg.Abort(1, 5)
		}
		time.Sleep(time.Minute)
	case "peers": // rank 2 fails, rank 0 prints what it knows at its end
		for r == 0 && seg.Ranks[2].Exit == 0 {
			time.Sleep(time.Millisecond)
		}
		if r == 0 {
			who, code, yes := seg.Aborted()
			fmt.Println("aborted:", who, code, yes)
			return 7
		}
		if r == 2 {
			return 3
		}
		time.Sleep(time.Minute)
	case "stacks": // rank 1 prints its state when it gets the signal, but late
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, unix.Signal(job.StackSignal))
		if r == 1 {
			atomic.StoreUint32(&seg.Ranks[r].Flags, job.FlagStacks)
			<-asked
			time.Sleep(time.Second)
			fmt.Fprintln(os.Stderr, "stack of rank 1")
		}
		time.Sleep(time.Minute)
	case "interrupt": // a rank that gets SIGINT knows that all others get it
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, unix.SIGINT)
		fmt.Println("ready")
		<-asked
		fmt.Println("interrupt:", atomic.LoadUint32(&seg.Head.Interrupt))
	case "segment":
		rk := &seg.Ranks[r]
		fmt.Println(int(rk.ChildPID) == os.Getpid() || rk.ChildPID == 0, seg.ID() == os.Getenv("GORMAPY_JOB_ID"),
			len(seg.Ranks), int(seg.Head.LauncherPID) == os.Getppid(), seg.Head.LauncherStartTime == sys.StartTime(os.Getppid()))
	}
	return 0
}

// result is the status and output of a run of mpiexec.
type result struct {
	status   int
	out, err string
	took     time.Duration
}

// run runs mpiexec with args and fails the test if it takes long, or if any
// process of the job outlives it.
func run(t *testing.T, args ...string) result {
	t.Helper()
	return runCmd(t, exec.Command(mpiexec, args...))
}

func runCmd(t *testing.T, c *exec.Cmd, started ...func()) result {
	t.Helper()
	mark := marker(t)
	var out, errs bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	if c.Stderr == nil {
		c.Stderr = &errs
	}
	c.Env = append(append(os.Environ(), c.Env...), mark)
	begin := time.Now()
	require.NoError(t, c.Start())
	for _, f := range started {
		f()
	}
	stop := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	err := c.Wait()
	took := time.Since(begin)
	require.True(t, stop.Stop(), "mpiexec hangs\n%s%s", out.String(), errs.String())
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	if left := withMark(mark); len(left) > 0 { // what has been killed may not have run since
		assert.Eventually(t, func() bool { return len(withMark(mark)) == 0 }, soon, 5*time.Millisecond, "left behind: %v", left)
	}
	return result{c.ProcessState.ExitCode(), out.String(), errs.String(), took}
}

// marker returns an environment setting that identifies the processes of one test.
func marker(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("LAUNCH_TEST_MARK=%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())
}

// withMark returns the processes with mark in their environment, and guardians.
func withMark(mark string) []string {
	var out []string
	for _, pid := range members(func(pid int) bool {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return bytes.Contains(env, []byte(mark))
	}) {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		out = append(out, fmt.Sprintf("%d %q", pid, cmd))
	}
	return out
}

// guardians returns the guardians of launchers of this test binary's mpiexec.
func guardians() []int {
	return members(func(pid int) bool {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && exe == mpiexec && bytes.HasPrefix(cmd, []byte(guardianName))
	})
}

// theGuardian returns the only guardian, once its program runs.
func theGuardian(t *testing.T) int {
	t.Helper()
	var g []int
	require.Eventually(t, func() bool { g = guardians(); return len(g) == 1 }, soon, time.Millisecond)
	return g[0]
}

// ignoredSignals returns the set of signals that process pid ignores.
func ignoredSignals(pid int) uint64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\nSigIgn:\t")
	set, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.ParseUint(set, 16, 64)
	return n
}

func sh(n int, script string, opts ...string) []string {
	return append(append([]string{"-n", strconv.Itoa(n)}, opts...), "sh", "-c", script)
}

func TestRunClean(t *testing.T) {
	r := run(t, sh(4, "echo $GORMAPY_JOB_RANK of $GORMAPY_JOB_SIZE; echo err >&2")...)
	assert.Equal(t, 0, r.status)
	assert.ElementsMatch(t, []string{"0 of 4", "1 of 4", "2 of 4", "3 of 4"}, strings.Split(strings.TrimSpace(r.out), "\n"))
	assert.Equal(t, strings.Repeat("err\n", 4), r.err)
	assert.Empty(t, guardians())
}

func TestRunManyRanks(t *testing.T) {
	r := run(t, sh(100, "echo $GORMAPY_JOB_RANK")...)
	assert.Equal(t, 0, r.status, r.err)
	assert.Len(t, strings.Fields(r.out), 100)
}

func TestRunFailures(t *testing.T) {
	for _, c := range []struct {
		script string
		status int
		text   string
	}{
		{"exit 3", 3, `^mpiexec: rank 2 \(pid \d+\) ended with exit status 3; stopping the other 3 ranks\n$`},
		{"kill -SEGV $$", 139, `^mpiexec: rank 2 \(pid \d+\) was killed by signal 11 \(SIGSEGV\); stopping the other 3 ranks\n$`},
		{"kill -KILL $$", 137, `^mpiexec: rank 2 \(pid \d+\) was killed by signal 9 \(SIGKILL\); stopping the other 3 ranks\n$`},
		{"echo trace >&2; exit 1", 1, `^trace\nmpiexec: rank 2 \(pid \d+\) ended with exit status 1; stopping the other 3 ranks\n$`},
	} {
		// The others ignore SIGTERM and have children, one of them in a group of its own. A shell
		// that waited for one in the foreground would print "Killed" if that one were killed first.
		r := run(t, sh(4, `if [ $GORMAPY_JOB_RANK = 2 ]; then sleep 0.1; `+c.script+`; fi
			trap "" TERM; setsid sleep 1000 & sleep 1000 & exec sleep 1000`)...)
		assert.Equal(t, c.status, r.status, c.script)
		assert.Regexp(t, c.text, r.err, c.script)
		assert.Less(t, r.took, soon, c.script)
	}
	r := run(t, sh(1, "exit 4")...)
	assert.Equal(t, 4, r.status)
	assert.Regexp(t, `^mpiexec: rank 0 \(pid \d+\) ended with exit status 4\n$`, r.err)
}

// TestFirstFailureCounts checks that the rank that failed first is reported, not the one
// with the lowest number.
func TestFirstFailureCounts(t *testing.T) {
	dir := t.TempDir()
	for range 10 {
		r := run(t, sh(6, `if [ $GORMAPY_JOB_RANK = 4 ]; then sleep 0.05; echo $$ > new; mv new pid; exit 44; fi
			while [ ! -e pid ]; do :; done; read p < pid
			while read -r _ _ state _ < /proc/$p/stat && [ "$state" != Z ]; do :; done 2> /dev/null; exit 1`, "-wdir", dir)...)
		os.Remove(filepath.Join(dir, "pid"))
		if r.status != 44 {
			// Without pidfds the launcher may look at another rank first.
			t.Logf("status %d: %s", r.status, r.err)
			continue
		}
		assert.Regexp(t, `^mpiexec: rank 4 .* exit status 44;`, r.err)
		return
	}
	t.Fatal("rank 4 was never the first")
}

// self runs a job of this test binary in the given role.
func self(t *testing.T, role string, n int, opts ...string) result {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	return run(t, append(append([]string{"-n", strconv.Itoa(n), "-env", "LAUNCH_TEST_ROLE", role}, opts...), exe)...)
}

func TestAbortHangs(t *testing.T) {
	r := self(t, "abort", 3)
	assert.Equal(t, 5, r.status)
	assert.Regexp(t, `^mpiexec: rank 1 \(pid \d+\) called Abort\(5\); stopping 3 ranks\n$`, r.err)
	assert.Less(t, r.took, soon)
}

func TestPeersLearnOfFailure(t *testing.T) {
	r := self(t, "peers", 3)
	assert.Equal(t, 3, r.status)
	assert.Regexp(t, `^mpiexec: rank 2 `, r.err)
	// Rank 0 may be stopped before it prints anything, but never prints anything else.
	assert.Contains(t, []string{"aborted: 2 3 true\n", ""}, r.out)
}

func TestSegment(t *testing.T) {
	r := self(t, "segment", 2)
	assert.Equal(t, "true true 2 true true\ntrue true 2 true true\n", r.out, r.err)
}

func TestNotStarted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/script.py", []byte("print()\n"), 0o644))
	require.NoError(t, os.WriteFile(dir+"/noformat", []byte("\x01\x02"), 0o755))
	require.NoError(t, os.WriteFile(dir+"/badinterp", []byte("#!/no/such/interpreter\n"), 0o755))
	for _, c := range []struct {
		args   string
		status int
		text   string
	}{
		{"-n 2 nosuchprogram", 127, "nosuchprogram: program not found"},
		{"-n 2 ./nosuch", 127, "no such file"},
		{"-n 2 " + dir + "/script.py", 126, "python"},
		{"-n 2 " + dir + "/noformat", 126, "not a program for this machine"},
		{"-n 2 " + dir + "/badinterp", 127, "interpreter"},
		{"-n 2 " + dir, 126, "directory"},
		{"-n 0 true", 2, "1 to 512"},
		{"-n x true", 2, "not a number"},
		{"-n 513 true", 2, "1 to 512"},
		{"-n 2", 2, "no program"},
		{"", 2, "no program"},
		{"--bogus true", 2, "see mpiexec --help"},
		{"-n 1 true : -n 1 nosuchprogram", 127, "nosuchprogram: program not found"},
		{"-n 1 true : -n 1 " + dir + "/noformat", 126, dir + "/noformat: not a program for this machine"},
		{"-n 1 true : -n x true", 2, "program 2: -n x"},
	} {
		r := run(t, strings.Fields(c.args)...)
		assert.Equal(t, c.status, r.status, c.args)
		assert.Contains(t, r.err, c.text, c.args)
		assert.Equal(t, 1, strings.Count(r.err, "\n"), r.err)
		assert.True(t, strings.HasPrefix(r.err, "mpiexec: "), r.err)
		assert.Empty(t, r.out)
	}
	assert.Equal(t, 0, run(t, "--version").status)
	assert.Contains(t, run(t, "--help").out, "--tag-output")
}

func TestTooFewDescriptors(t *testing.T) {
	// exec: a shell that outlived its child by an instant would print "Killed".
	r := runCmd(t, exec.Command("sh", "-c", "ulimit -n 64; exec "+mpiexec+" -n 100 sh -c 'sleep 1000 & exec sleep 1000'"))
	assert.Equal(t, 1, r.status)
	assert.Regexp(t, `^mpiexec: can't start rank \d+: .*too many open files .*ulimit -n is 64\)\n$`, r.err)
}

func TestTaggedLinesAreWhole(t *testing.T) {
	const lines, ranks = 10_000, 8
	r := run(t, sh(ranks, `i=0; while [ $i -lt 10000 ]; do echo "line $i from $GORMAPY_JOB_RANK with some more text to make it longer"; i=$((i+1)); done`, "-l")...)
	require.Equal(t, 0, r.status, r.err)
	next := make([]int, ranks)
	got := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	require.Len(t, got, lines*ranks)
	form := regexp.MustCompile(`^\[(\d)\] line (\d+) from (\d) with some more text to make it longer$`)
	for _, line := range got {
		m := form.FindStringSubmatch(line)
		require.NotNil(t, m, "%q", line)
		k, _ := strconv.Atoi(m[1])
		require.Equal(t, m[1], m[3])
		require.Equal(t, strconv.Itoa(next[k]), m[2])
		next[k]++
	}
}

// TestBlockBufferedLinesAreWhole is the same without tags for a program whose
// output comes in blocks that end anywhere, with pauses.
func TestBlockBufferedLinesAreWhole(t *testing.T) {
	r := run(t, sh(3, `yes "rank $GORMAPY_JOB_RANK writes a line of text" | head -n 2000 | dd bs=8192 iflag=fullblock 2>/dev/null | (dd bs=8192 count=5 iflag=fullblock; sleep 0.2; cat) 2>/dev/null`)...)
	require.Equal(t, 0, r.status, r.err)
	got := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	require.Len(t, got, 6000)
	for _, line := range got {
		require.Regexp(t, `^rank [012] writes a line of text$`, line)
	}
}

func TestMergeAndTagStderr(t *testing.T) {
	r := run(t, sh(2, "echo a; echo b >&2; echo c", "-l", "--merge-stderr-to-stdout")...)
	assert.Empty(t, r.err)
	for _, k := range []string{"0", "1"} {
		var mine []string
		for _, line := range strings.Split(r.out, "\n") {
			if strings.HasPrefix(line, "["+k+"] ") {
				mine = append(mine, line[4:])
			}
		}
		assert.Equal(t, []string{"a", "b", "c"}, mine)
	}
	r = run(t, sh(1, "echo a; echo b >&2", "-l")...)
	assert.Equal(t, "[0] a\n", r.out)
	assert.Equal(t, "[0] b\n", r.err)
}

func TestBinaryOutput(t *testing.T) {
	r := run(t, sh(1, "head -c 3000000 /dev/urandom | tee data | cksum >&2; cat data; printf '\\0end'", "-wdir", t.TempDir())...)
	require.Equal(t, 0, r.status)
	c := exec.Command("cksum")
	c.Stdin = strings.NewReader(strings.TrimSuffix(r.out, "\x00end"))
	sum, err := c.Output()
	require.NoError(t, err)
	assert.Equal(t, string(sum), r.err)
}

func TestStandardInput(t *testing.T) {
	c := exec.Command(mpiexec, sh(3, `echo "$GORMAPY_JOB_RANK: $(cat)"`)...)
	c.Stdin = strings.NewReader("to rank 0")
	r := runCmd(t, c)
	assert.ElementsMatch(t, []string{"0: to rank 0", "1: ", "2: "}, strings.Split(strings.TrimSuffix(r.out, "\n"), "\n"))
}

func TestEnvironmentAndDirectory(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command(mpiexec, sh(1, `pwd; echo "$PWD" $A $B; env | grep -E "^(PMI_|PMIX_|HYDI_)" | sort`, "-wdir", dir, "-env", "A", "1", "-x", "B=2")...)
	c.Env = []string{"PMI_FD=3", "PMIX_RANK=1", "HYDI_CONTROL_FD=1", "GORMAPY_JOB_SIZE=17", "A=old"}
	assert.Equal(t, dir+"\n"+dir+" 1 2\nPMI_FD=10\nPMI_RANK=0\nPMI_SIZE=1\n", runCmd(t, c).out)
}

func TestNestedJob(t *testing.T) {
	r := run(t, sh(2, mpiexec+` -n 2 sh -c 'echo $GORMAPY_JOB_SIZE $GORMAPY_JOB_RANK'`)...)
	assert.Equal(t, 0, r.status, r.err)
	assert.Equal(t, 2, strings.Count(r.out, "2 0\n"))
	assert.Equal(t, 2, strings.Count(r.out, "2 1\n"))
	// Ending the outer job ends the inner ones, and their guardians.
	r = run(t, sh(2, `[ $GORMAPY_JOB_RANK = 1 ] && sleep 0.3 && exit 9; `+mpiexec+` -n 2 sh -c 'setsid sleep 1000 & sleep 1000'`)...)
	assert.Equal(t, 9, r.status)
	assert.Eventually(t, func() bool { return len(guardians()) == 0 }, soon, 10*time.Millisecond)
}

func TestTimeout(t *testing.T) {
	r := run(t, sh(2, "trap '' TERM; sleep 1000", "--timeout", "0.5")...)
	assert.Equal(t, 124, r.status)
	assert.Contains(t, r.err, "time-out after 500ms")
	assert.Contains(t, r.err, "rank 0")
	assert.Contains(t, r.err, "rank 1")
	assert.Less(t, r.took, soon)
	assert.Equal(t, 0, run(t, sh(2, "true", "--timeout", "20")...).status)
}

func TestTimeoutPrintsStacks(t *testing.T) {
	var r result
	for _, limit := range []string{"0.5", "3", "15"} { // a rank that starts late prints nothing
		if r = self(t, "stacks", 2, "--timeout", limit); strings.Contains(r.err, "stack of rank 1") {
			break
		}
	}
	assert.Equal(t, 124, r.status)
	assert.Regexp(t, `(?s)^mpiexec: time-out after \S+;.*rank 0 .*rank 1 .*\n\[1\] stack of rank 1\n$`, r.err)
}

func TestInterruptFlag(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	inTime(t, func() *background {
		j := launch(t, 2, "exec "+exe, "-env", "LAUNCH_TEST_ROLE", "interrupt")
		require.NoError(t, j.cmd.Process.Signal(unix.SIGINT))
		assert.Equal(t, 130, j.end(t, soon))
		return j
	}, func(j *background) { assert.Equal(t, 2, strings.Count(j.out.String(), "interrupt: 1\n")) })
}

func TestBrokenPipe(t *testing.T) {
	r := runCmd(t, exec.Command("bash", "-c", mpiexec+` -n 3 sh -c 'while :; do echo y; done' | head -n 3; echo ${PIPESTATUS[0]}`))
	assert.Equal(t, "y\ny\ny\n141\n", r.out)
	assert.Empty(t, r.err)
	assert.Less(t, r.took, soon)
	if _, err := os.Stat("/dev/full"); err == nil {
		r = runCmd(t, exec.Command("bash", "-c", mpiexec+` -n 2 sh -c 'echo y; sleep 100' > /dev/full`))
		assert.Equal(t, 1, r.status)
		assert.Contains(t, r.err, "can't write standard output: no space left on device")
	}
}

// TestBackgroundAfterCleanEnd checks that a daemon that holds the output open neither
// delays the launcher nor is killed, and that a forgotten background process is killed.
func TestBackgroundAfterCleanEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	c := exec.Command(mpiexec, sh(1, "setsid sh -c 'echo $$ > "+file+".new; mv "+file+".new "+file+"; exec sleep 1000' & "+
		"while [ ! -e "+file+" ]; do sleep 0.01; done; echo done")...)
	var out bytes.Buffer
	c.Stdout = &out
	begin := time.Now()
	require.NoError(t, c.Run())
	assert.Less(t, time.Since(begin), soon)
	assert.Equal(t, "done\n", out.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	assert.True(t, sys.Alive(pid), "a daemon was killed")
	_ = unix.Kill(pid, unix.SIGKILL)

	r := run(t, sh(2, "sleep 1000 & echo done")...)
	assert.Equal(t, 0, r.status)
	assert.Equal(t, "done\ndone\n", r.out)
	assert.Less(t, r.took, soon)
}

// background is a job that runs until it is ended.
type background struct {
	cmd      *exec.Cmd
	mark     string
	out, err lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// launch starts a job whose ranks print "ready", and waits for that.
func launch(t *testing.T, n int, script string, opts ...string) *background {
	t.Helper()
	j := &background{mark: marker(t)}
	j.cmd = exec.Command(mpiexec, sh(n, script, opts...)...)
	j.cmd.Stdout, j.cmd.Stderr = &j.out, &j.err
	j.cmd.Env = append(os.Environ(), j.mark)
	j.cmd.WaitDelay = 5 * time.Second
	require.NoError(t, j.cmd.Start())
	t.Cleanup(func() { _ = j.cmd.Process.Kill() })
	require.Eventually(t, func() bool { return strings.Count(j.out.String(), "ready") == n }, soon, 2*time.Millisecond, "%s%s", &j.out, &j.err)
	return j
}

// end waits for mpiexec and returns its status, -1 after a signal.
func (j *background) end(t *testing.T, within time.Duration) int {
	t.Helper()
	begin := time.Now()
	late := time.AfterFunc(2*time.Minute, func() { _ = j.cmd.Process.Kill() })
	_ = j.cmd.Wait()
	require.True(t, late.Stop(), "mpiexec hangs")
	assert.Less(t, time.Since(begin), within)
	return j.cmd.ProcessState.ExitCode()
}

func (j *background) gone(t *testing.T) {
	t.Helper()
	assert.Eventually(t, func() bool { return len(withMark(j.mark)) == 0 }, soon, 5*time.Millisecond, "left behind: %v", withMark(j.mark))
	assert.Eventually(t, func() bool { return len(guardians()) == 0 }, soon, 5*time.Millisecond, "a guardian is left")
}

// inTime runs a job whose ranks do something at a signal, up to six times: on a busy
// machine the launcher may have to kill some before they could, which it says.
func inTime(t *testing.T, run func() *background, check func(*background)) {
	t.Helper()
	for range 5 {
		if j := run(); !strings.Contains(j.err.String(), "did not end within") {
			check(j)
			return
		}
	}
	check(run())
}

const stubborn = `trap "" INT TERM HUP; setsid sleep 1000 & sleep 1000 & echo ready; while :; do sleep 1000; done`

func TestSignalsEndTheJob(t *testing.T) {
	for _, c := range []struct {
		sig    unix.Signal
		name   string
		status int
	}{{unix.SIGINT, "INT", 130}, {unix.SIGTERM, "TERM", 143}, {unix.SIGHUP, "HUP", 129}} {
		inTime(t, func() *background {
			j := launch(t, 3, `trap "echo got it; exit 0" `+c.name+`; echo ready; while :; do sleep 0.01; done`)
			require.NoError(t, j.cmd.Process.Signal(c.sig))
			assert.Equal(t, c.status, j.end(t, soon), c.name)
			j.gone(t)
			return j
		}, func(j *background) { assert.Equal(t, 3, strings.Count(j.out.String(), "got it"), c.name) })
	}
	j := launch(t, 2, stubborn)
	require.NoError(t, j.cmd.Process.Signal(unix.SIGINT))
	assert.Equal(t, 130, j.end(t, soon))
	assert.Contains(t, j.err.String(), "ranks 0, 1 did not end within 800ms of SIGINT; killed")
	j.gone(t)
}

func TestSecondInterruptKills(t *testing.T) {
	j := launch(t, 2, stubborn)
	require.NoError(t, j.cmd.Process.Signal(unix.SIGINT))
	time.Sleep(repeatDelay + 50*time.Millisecond)
	require.NoError(t, j.cmd.Process.Signal(unix.SIGINT))
	assert.Equal(t, 130, j.end(t, soon))
	j.gone(t)
}

func TestUserSignalsAreForwarded(t *testing.T) {
	j := launch(t, 2, `trap "echo usr1" USR1; trap "echo usr2; exit 0" USR2; echo ready; while :; do sleep 0.01; done`)
	require.NoError(t, j.cmd.Process.Signal(unix.SIGUSR1))
	require.Eventually(t, func() bool { return strings.Count(j.out.String(), "usr1") == 2 }, soon, 5*time.Millisecond)
	require.NoError(t, j.cmd.Process.Signal(unix.SIGUSR2))
	assert.Equal(t, 0, j.end(t, soon))
	assert.Equal(t, 2, strings.Count(j.out.String(), "usr2"))
}

func parent(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(string(f[1]))
	return ppid
}

func TestStopAndContinue(t *testing.T) {
	j := launch(t, 2, `echo ready; while :; do sleep 0.01; done`)
	state := func(pid int) byte {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if i := bytes.LastIndexByte(stat, ')'); i >= 0 {
			return stat[i+2]
		}
		return 0
	}
	shells := members(func(pid int) bool {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		// The ranks themselves, not a shell that is about to become a sleep.
		return bytes.HasPrefix(cmd, []byte("sh\x00")) && bytes.Contains(env, []byte(j.mark)) && parent(pid) == j.cmd.Process.Pid
	})
	require.Len(t, shells, 2)
	all := append(shells, j.cmd.Process.Pid)
	every := func(want ...byte) func() bool {
		return func() bool {
			for _, pid := range all {
				if !bytes.ContainsRune(want, rune(state(pid))) {
					return false
				}
			}
			return true
		}
	}
	require.NoError(t, j.cmd.Process.Signal(unix.SIGTSTP))
	// A shell whose child was stopped between vfork and exec waits for it, in D.
	assert.Eventually(t, every('T', 'D'), soon, 5*time.Millisecond)
	assert.Equal(t, byte('T'), state(j.cmd.Process.Pid))
	require.NoError(t, j.cmd.Process.Signal(unix.SIGCONT))
	assert.Eventually(t, every('S', 'R', 'D'), soon, 5*time.Millisecond)
	require.NoError(t, j.cmd.Process.Signal(unix.SIGTERM))
	assert.Equal(t, 143, j.end(t, soon))
	j.gone(t)
}

// TestKilledLauncher checks that no process is left when the launcher or others are
// killed.
func TestKilledLauncher(t *testing.T) {
	j := launch(t, 3, stubborn)
	require.NoError(t, j.cmd.Process.Kill())
	j.end(t, soon)
	j.gone(t)
}

func TestKilledLauncherAtAnyTime(t *testing.T) {
	for delay := time.Duration(0); delay < 12*time.Millisecond; delay += 400 * time.Microsecond {
		mark := marker(t)
		c := exec.Command(mpiexec, sh(4, "sleep 1000 & setsid sleep 1000 & sleep 1000")...)
		c.Env = append(os.Environ(), mark)
		require.NoError(t, c.Start())
		time.Sleep(delay)
		require.NoError(t, c.Process.Kill())
		_ = c.Wait()
		// Searched twice: while a process is in exec, its environment can't be read.
		for range 2 {
			require.Eventually(t, func() bool { return len(withMark(mark)) == 0 && len(guardians()) == 0 }, soon, 5*time.Millisecond, "after %v: %v", delay, withMark(mark))
		}
	}
}

func TestKilledGuardian(t *testing.T) {
	j := launch(t, 3, stubborn, "-v")
	g := theGuardian(t)
	require.NoError(t, unix.Kill(g, unix.SIGKILL))
	require.Eventually(t, func() bool { n := guardians(); return len(n) == 1 && n[0] != g }, soon, 5*time.Millisecond)
	require.Eventually(t, func() bool { return strings.Contains(j.err.String(), "is the new one") }, soon, 5*time.Millisecond)
	// The new guardian knows the job.
	require.NoError(t, j.cmd.Process.Kill())
	j.end(t, soon)
	j.gone(t)
}

func TestGuardianIgnoresSignals(t *testing.T) {
	j := launch(t, 1, stubborn)
	g := theGuardian(t)
	signals := []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT}
	var want uint64
	for _, sig := range signals {
		want |= 1 << (sig - 1)
	}
	require.Eventually(t, func() bool { return ignoredSignals(g)&want == want }, soon, time.Millisecond)
	for _, sig := range signals {
		require.NoError(t, unix.Kill(g, sig))
	}
	time.Sleep(20 * time.Millisecond)
	assert.Equal(t, []int{g}, guardians())
	require.NoError(t, j.cmd.Process.Kill())
	j.end(t, soon)
	j.gone(t)
}

// TestNoDescriptorsInherited checks that a rank has the connection to the PMI server, and
// no other descriptor of the launcher.
func TestNoDescriptorsInherited(t *testing.T) {
	const script = "ls /proc/self/fd"
	plain, err := exec.Command("sh", "-c", script).Output()
	require.NoError(t, err)
	want := append(strings.Fields(string(plain)), "10") // which the test may have itself
	slices.Sort(want)
	want = slices.Compact(want)
	for range 3 {
		got := strings.Fields(run(t, sh(1, script)...).out)
		slices.Sort(got)
		assert.Equal(t, want, got)
	}
}
