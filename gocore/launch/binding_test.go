package launch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestCoresOf(t *testing.T) {
	threads := func(cpu int) string { return []string{"0,4", "1,5", "2,6", "3,7"}[cpu%4] }
	for _, c := range []struct {
		cpus []int
		of   func(int) string
		want [][]int
	}{
		{[]int{0, 1, 2, 3, 4, 5, 6, 7}, threads, [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
		{[]int{1, 4, 5}, threads, [][]int{{1, 5}, {4}}},
		{[]int{0, 1}, func(int) string { return "" }, [][]int{{0}, {1}}}, // unknown
		{nil, threads, nil},
	} {
		assert.Equal(t, c.want, coresOf(c.cpus, c.of), c.cpus)
	}
}

func TestCPUList(t *testing.T) {
	for want, list := range map[string][]int{"": nil, "3": {3}, "0-1": {0, 1}, "0-3,8,10-11": {0, 1, 2, 3, 8, 10, 11}} {
		assert.Equal(t, want, cpuList(list))
	}
}

func TestBindingTexts(t *testing.T) {
	b := &binding{cores: [][]int{{0, 2}, {1}}}
	assert.Equal(t, "bound to core 0 (CPUs 0,2)", b.text(4))
	assert.Equal(t, "bound to core 1 (CPU 1)", b.text(1))
	assert.Equal(t, "5 ranks share 2 cores in turn", b.shared(5))
	assert.Empty(t, b.shared(2))
	var none binding
	none.allowed.Set(0)
	none.allowed.Set(1)
	assert.Equal(t, "on CPUs 0-1", none.text(7))
	assert.Empty(t, none.shared(99))
}

// allowed prints the CPUs of the process that runs it.
const allowed = "grep Cpus_allowed_list /proc/self/status | cut -f 2"

func TestBindTo(t *testing.T) {
	var mine unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &mine))
	cores := coresOf(cpus(&mine), siblings)
	ranks := 2*len(cores) + 1
	r := run(t, sh(ranks, "echo $GORMAPY_JOB_RANK $("+allowed+")", "--bind-to", "core", "-v")...)
	require.Equal(t, 0, r.status, r.err)
	var want []string
	for i := range ranks {
		want = append(want, fmt.Sprintf("%d %s", i, cpuList(cores[i%len(cores)])))
	}
	assert.ElementsMatch(t, want, strings.Split(strings.TrimSpace(r.out), "\n"))
	assert.Contains(t, r.err, fmt.Sprintf("mpiexec: %d ranks share %s in turn\n", ranks, count(len(cores), "core")))
	assert.Regexp(t, `mpiexec: rank 0 is process \d+, started after \d+\.\d{3} s, bound to core 0 \(CPU`, r.err)

	// Without --bind-to, and for processes that the launcher starts later, all CPUs are allowed.
	for _, opts := range [][]string{nil, {"--bind-to", "none"}} {
		r = run(t, sh(2, allowed, opts...)...)
		assert.Equal(t, strings.Repeat(cpuList(cpus(&mine))+"\n", 2), r.out)
	}
	// Ranks are bound only to CPUs that the launcher may use.
	last := cpus(&mine)[mine.Count()-1]
	r = run(t, "sh", "-c", fmt.Sprintf("taskset -c %d %s -n 2 --bind-to core sh -c '%s'", last, mpiexec, allowed))
	assert.Equal(t, strings.Repeat(fmt.Sprintf("%d\n", last), 2), r.out, r.err)
}
