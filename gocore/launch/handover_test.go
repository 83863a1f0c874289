package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHostLists(t *testing.T) {
	for text, want := range map[string][]Host{
		"a":                {{"a", 0}},
		"a,b:4":            {{"a", 0}, {"b", 4}},
		"::1,[fe80::2]:3":  {{"::1", 0}, {"fe80::2", 3}},
		"10.0.0.1:2,a.b:*": {{"10.0.0.1", 2}, {"a.b", 0}},
	} {
		got, err := hostList(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "a:", "a:0", "a:x", ",a", "a:-1"} {
		_, err := hostList(text)
		if text == "a:" {
			continue // as if no number were given
		}
		assert.Error(t, err, text)
	}
}

func TestHostFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("# mine\na\n\nb:4 # with four\n c slots=2 max_slots=8\n")
	got, err := hostFile(path)
	require.NoError(t, err)
	assert.Equal(t, []Host{{"a", 0}, {"b", 4}, {"c", 2}}, got)
	for text, says := range map[string]string{"": "names no host", "a\nb slots=x\n": "line 2", "a:0": "number of slots"} {
		write(text)
		_, err := hostFile(path)
		assert.ErrorContains(t, err, says)
	}
}

func TestPlaces(t *testing.T) {
	o := &Options{Hosts: []Host{{"a", 0}, {"b", 3}, {"c", 0}}}
	assert.Equal(t, []Host{{"a", 2}, {"b", 3}, {"c", 1}}, o.placed(5))
	assert.Equal(t, []Host{{"a", 1}, {"b", 3}}, o.placed(1))
	o.PerHost = 4
	assert.Equal(t, []Host{{"a", 4}, {"b", 3}, {"c", 4}}, o.placed(5))
}

func TestAllocations(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", ""},
		{"SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=2 SLURM_PROCID=0", "srun"}, // a batch script
		{"SLURM_JOB_ID=1 SLURM_NNODES=4", "srun"},
		{"SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=1", ""},
		{"SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=2 SLURM_STEP_ID=4294967290", "srun"}, // the shell of salloc
		{"SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=2 SLURM_STEP_ID=0", ""},              // a rank of srun's
		{"FLUX_URI=local:///x FLUX_JOB_NNODES=2", "flux"},
		{"FLUX_URI=local:///x FLUX_JOB_NNODES=2 FLUX_TASK_RANK=0", ""},
	} {
		env := map[string]string{}
		for _, kv := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		assert.Equal(t, c.want, allocated(func(name string) string { return env[name] }), c.env)
	}
}

// Each engine gets what was asked for in its own words.
func TestCommands(t *testing.T) {
	parse := func(line string) *Options {
		o, err := Parse(strings.Fields(line))
		require.NoError(t, err, line)
		return o
	}
	const one = "-hosts a,b -genv A 1 -l --bind-to core -n 4 -env B 2 -wdir / prog x"
	for name, c := range map[string]struct {
		command func(*Options) ([]string, error)
		line    string
		want    string
	}{
		"hydra":       {hydraCommand, one, "-hosts a:2,b:2 -prepend-rank -bind-to core -genv A 1 -n 4 -env B 2 -wdir / prog x"},
		"hydra, IPv6": {hydraCommand, "-hosts [fd00::2]:4,b:1 -n 5 p", "-hosts [fd00::2]:4,b:1 -n 5 p"},
		"hydra, two":  {hydraCommand, "-hosts a:1,b:2 -n 1 p : -n 2 q r", "-hosts a:1,b:2 -n 1 p : -n 2 q r"},
		"hydra, rsh":  {hydraCommand, "-hosts a,b -launcher rsh -launcher-exec /k -ppn 3 p", "-hosts a:3,b:3 -launcher rsh -launcher-exec /k -n 6 p"},
		"srun":        {srunCommand, one, "--mpi=none --kill-on-bad-exit=1 --disable-status --ntasks=4 --nodelist=a,b --nodes=2 --ntasks-per-node=2 --cpu-bind=cores --label --chdir=/ --export=ALL,A=1,B=2 prog x"},
		"flux":        {fluxCommand, "-n 4 -l -env B 2 prog x", "run -n 4 --label-io --env=B=2 prog x"},
	} {
		t.Setenv("PATH", "") // Slurm may be here
		got, err := c.command(parse(c.line))
		require.NoError(t, err, name)
		assert.Equal(t, c.want, strings.Join(got, " "), name)
	}
	got, err := prterunCommand(parse(one))
	require.NoError(t, err)
	all := strings.Join(got, " ")
	for _, part := range []string{"--host a:2,b:2", "--bind-to core", "--output tag", "-n 4", "-x A=1", "-x B=2", "--wdir / prog x"} {
		assert.Contains(t, all, part)
	}
	for line, want := range map[string]string{"-hosts a,b --timeout 3 --summary p": "-x GORMAPY_JOB_HOME -x GORMAPY_JOB_HOME_SECRET -x GORMAPY_JOB_HOME_RECORD -x GORMAPY_JOB_HOME_TIMEOUT p",
		"-hosts a,b p": "-x GORMAPY_JOB_HOME -x GORMAPY_JOB_HOME_SECRET p"} {
		got, err := prterunCommand(parse(line))
		require.NoError(t, err)
		assert.Contains(t, strings.Join(got, " "), want, "the secret is not on the command line")
	}
	_, err = srunCommand(parse("-hosts a,b p : q"))
	assert.ErrorContains(t, err, "one program")
	_, err = srunCommand(parse("-hosts a,b -env A 1,2 p"))
	assert.ErrorContains(t, err, "comma")
}

func TestNoEngine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("VIRTUAL_ENV", "")
	_, err := findEngine("srun")
	assert.ErrorContains(t, err, "pip install mpich")
	assert.ErrorAs(t, err, new(UsageError))
}

func TestPretendedNodes(t *testing.T) {
	for text, want := range map[string][]int{
		"": {0, 0, 0, 0}, "1": {0, 0, 0, 0}, "2": {0, 0, 1, 1}, "3": {0, 0, 1, 2}, "9": {0, 1, 2, 3},
		"1+3": {0, 1, 1, 1}, "2+1+1": {0, 0, 1, 2}, "0,1": {0, 1, 0, 1}, "0,1,1": {0, 1, 1, 0}, "1,0": {1, 0, 1, 0},
	} {
		got, err := pretendedNodes(text, 4)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"x", "1+1", "0,2", "-1", "2+x", "0,,1"} {
		_, err := pretendedNodes(text, 4)
		assert.ErrorAs(t, err, new(UsageError), text)
	}
}
