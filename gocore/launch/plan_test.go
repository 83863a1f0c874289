package launch

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTitle(t *testing.T) {
	for want, p := range map[string]Program{
		"prog":        {Name: "./bin/prog"},
		"python a.py": {Name: "/usr/bin/python", Args: []string{"a.py", "b"}},
		"sh":          {Name: "sh", Args: []string{"-c", "true"}},
		"echo":        {Name: "echo", Args: []string{""}},
	} {
		assert.Equal(t, want, (&task{Program: &p}).title())
	}
}

func TestSeveralPrograms(t *testing.T) {
	dir := t.TempDir()
	const who = "echo $0 $GORMAPY_JOB_RANK $GORMAPY_JOB_SIZE $GORMAPY_JOB_APPNUM $PMI_RANK $PMI_SIZE A=$A B=$B $PWD"
	here, err := os.Getwd()
	require.NoError(t, err)
	r := run(t, "-genv", "A", "all", "-n", "1", "sh", "-c", who, "first", ":", "-n", "2", "-env", "A", "mine", "-wdir", dir, "sh", "-c", who, "second",
		":", "-x", "B=b", "sh", "-c", who, "third")
	assert.Equal(t, 0, r.status, r.err)
	assert.ElementsMatch(t, []string{
		"first 0 4 0 0 4 A=all B= " + here,
		"second 1 4 1 1 4 A=mine B= " + dir,
		"second 2 4 1 2 4 A=mine B= " + dir,
		"third 3 4 2 3 4 A=all B=b " + here,
	}, strings.Split(strings.TrimSpace(r.out), "\n"))
	r = run(t, "sleep", "100", ":", "-n", "2", "sh", "-c", "exit $((GORMAPY_JOB_RANK - 1 + 6 * (2 - GORMAPY_JOB_RANK)))")
	assert.Contains(t, []int{1, 6}, r.status, r.err)
	assert.Regexp(t, `^mpiexec: rank [12] \(pid \d+\) ended with exit status [16]; stopping the other`, r.err)
}

func TestVerbose(t *testing.T) {
	t.Chdir(t.TempDir())
	r := run(t, "-v", "-x", "NOSUCHVARIABLE", "-n", "2", "sh", "-c", "echo $$ > new$PMI_RANK; mv new$PMI_RANK $PMI_RANK", ":", "sh", "-c",
		`for r in 0 1; do
			while [ ! -e $r ]; do sleep 0.01; done; read p < $r
			while read -r _ _ state _ < /proc/$p/stat && [ "$state" != Z ]; do sleep 0.01; done
		done
		yes | head -c 30000000 > /dev/null; kill -9 $$`)
	assert.Equal(t, 137, r.status)
	assert.Empty(t, r.out)
	for _, form := range []string{
		`(?m)^mpiexec: -x NOSUCHVARIABLE: there is no such`,
		`(?m)^mpiexec: job [0-9a-f]{32} of 3 ranks, guardian is process \d+$`,
		`(?m)^mpiexec: rank 0 \(sh\) is process \d+, started after \d+\.\d{3} s, on CPUs? [0-9,-]+$`,
		`(?m)^mpiexec: rank 2 \(sh\) is process \d+`,
		`(?m)^mpiexec: rank 1 \(pid \d+\) ended with exit status 0 after \d+\.\d{3} s$`,
		`(?m)^mpiexec: rank 2 \(pid \d+\) was killed by signal 9 \(SIGKILL\) after \d+\.\d{3} s$`,
		`(?m)^mpiexec: summary of 3 ranks, \d+\.\d{3} s, status 137$`,
		`(?m)^mpiexec:      0  exit status 0  +\d+\.\d{3} +\d+\.\d{3} +\d+\.\d{3} +\d+\.\d$`,
		`(?m)^mpiexec:      2  signal 9 \(SIGKILL\)  +\d+\.\d{3} +\d+\.\d{3} +\d+\.\d{3} +\d+\.\d$`,
	} {
		assert.Regexp(t, form, r.err)
	}
	assert.Empty(t, run(t, sh(2, "true")...).err)
}
