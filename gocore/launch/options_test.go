package launch

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	here, err := os.Hostname()
	require.NoError(t, err)
	one := func(name string, args ...string) []Program { return []Program{{Ranks: 1, Name: name, Args: args}} }
	for _, c := range []struct {
		line string
		want Options
	}{
		{"true", Options{Programs: one("true")}},
		{"-n 4 true", Options{Programs: []Program{{Ranks: 4, Name: "true"}}}},
		{"-np 4 true", Options{Programs: []Program{{Ranks: 4, Name: "true"}}}},
		{"--np 4 true", Options{Programs: []Program{{Ranks: 4, Name: "true"}}}},
		{"--np=4 true", Options{Programs: []Program{{Ranks: 4, Name: "true"}}}},
		{"-c 512 true", Options{Programs: []Program{{Ranks: 512, Name: "true"}}}},
		{"-n 2 prog -n 3 --help", Options{Programs: []Program{{Ranks: 2, Name: "prog", Args: []string{"-n", "3", "--help"}}}}},
		{"-n 2 -- -prog -x", Options{Programs: []Program{{Ranks: 2, Name: "-prog", Args: []string{"-x"}}}}},
		{"-env A 1 --env B 2=3 -genv C x prog",
			Options{Env: []string{"C=x"}, Programs: []Program{{Ranks: 1, Name: "prog", Env: []string{"A=1", "B=2=3"}}}}},
		{"-x A=b=c -x PATH prog", Options{Programs: []Program{{Ranks: 1, Name: "prog", Env: []string{"A=b=c"}}}}},
		{"-wdir /tmp prog", Options{Programs: []Program{{Ranks: 1, Name: "prog", Dir: "/tmp"}}}},
		{"--wdir=/ -wd /tmp prog", Options{Programs: []Program{{Ranks: 1, Name: "prog", Dir: "/tmp"}}}},
		{"-l prog", Options{Programs: one("prog"), Tag: true}},
		{"--tag-output prog", Options{Programs: one("prog"), Tag: true}},
		{"-prepend-rank --merge-stderr-to-stdout prog", Options{Programs: one("prog"), Tag: true, Merge: true}},
		{"--timeout 1.5 prog", Options{Programs: one("prog"), Timeout: 1500 * time.Millisecond}},
		{"--output-dir out prog", Options{Programs: one("prog"), OutputDir: "out"}},
		{"--bind-to core prog", Options{Programs: one("prog"), Bind: true}},
		{"-bind-to core:overload-allowed prog", Options{Programs: one("prog"), Bind: true}},
		{"-bind-to=core -bind-to none prog", Options{Programs: one("prog")}},
		{"--shared-arrays -genv A 1 prog", Options{Programs: one("prog"), Env: []string{"GORMAPY_SHARED_ARRAYS=1", "A=1"}}},
		{"-v prog", Options{Programs: one("prog"), Verbose: true}},
		{"--version", Options{Version: true}},
		{"-h nonsense", Options{Help: true}},
		{"--python /bin/py a.py b.py", Options{Programs: one("/bin/py", "a.py", "b.py")}},
		{"--python /bin/py -n 1 sh a.py : b.py : --help", Options{Help: true, Programs: []Program{
			{Ranks: 1, Name: "sh", Args: []string{"a.py"}}, {Ranks: 1, Name: "/bin/py", Args: []string{"b.py"}}}}},
		{"-v -n 2 -env A 1 a x : -n 3 -wdir / b : c", Options{Verbose: true, Programs: []Program{
			{Ranks: 2, Name: "a", Args: []string{"x"}, Env: []string{"A=1"}}, {Ranks: 3, Name: "b", Dir: "/"}, {Ranks: 1, Name: "c"}}}},
		{"-env A : a : -env B : b :x", Options{Programs: []Program{
			{Ranks: 1, Name: "a", Env: []string{"A=:"}}, {Ranks: 1, Name: "b", Args: []string{":x"}, Env: []string{"B=:"}}}}},
	} {
		got, err := Parse(strings.Fields(c.line))
		if assert.NoError(t, err, c.line) {
			for i := range got.Programs {
				if len(got.Programs[i].Args) == 0 {
					got.Programs[i].Args = nil
				}
			}
			assert.Equal(t, c.want, *got, c.line)
		}
	}
	for _, line := range []string{
		"--oversubscribe", "--allow-run-as-root", "-allow-run-as-root", "--mca btl self,sm", "--mca=btl self",
		"-map-by slot:OVERSUBSCRIBE", "--rank-by core", "--report-bindings", "--use-hwthread-cpus", "-q",
		"-host localhost", "-H localhost:4,127.0.0.1", "--host " + here, "-hosts ::1,[::1]:*", "-ppn 2", "-N 4", "-genvall", "-s 0", "--get-stack-traces",
	} {
		got, err := Parse(append(strings.Fields(line), "-n", "2", "prog"))
		if assert.NoError(t, err, line) {
			assert.Equal(t, 2, got.Ranks(), line)
			require.Len(t, got.Notes, 1, line)
			assert.Contains(t, got.Notes[0], "is ignored: ", line)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for line, text := range map[string]string{
		"":                           "no program",
		"-n 4":                       "no program",
		"-n":                         "-n needs 1 argument",
		"-n 0 true":                  "1 to 512",
		"-n -1 true":                 "1 to 512",
		"-n 513 true":                "1 to 512",
		"-n x true":                  `"x" is not a number of ranks`,
		"-n 2.0 true":                "not a number of ranks",
		"--frobnicate true":          `unknown option "--frobnicate"; see mpiexec --help`,
		"---n 2 true":                "unknown option",
		"--tag-output=yes true":      "unknown option",
		"-env A":                     "needs 2 arguments",
		"-env A=1 2 true":            "not the name of an environment variable",
		"-x =1 true":                 "no name",
		"-wdir /no/such true":        "no such file or directory",
		"-wdir /etc/passwd true":     "not a directory",
		"--timeout 0 true":           "number of seconds greater than 0",
		"--timeout soon true":        "number of seconds",
		"--timeout NaN true":         "number of seconds",
		"-host a,,b true":            "no name of a host",
		"-host localhost:x true":     "number of slots",
		"-f hosts true":              "no such file or directory",
		"-hosts a -f /dev/null true": "it names no host",
		"-hosts a,b -H c true":       "other hosts were given before",
		"a : -hosts c,d b":           "put it before the first program",
		"-n4 true":                   "write -n 4",
		"--np16 true":                "write --np 16",
		"-ppn 2 true":                "write -n 2",
		"-ppn 2 -n 4 true":           "4 ranks would take several hosts",
		"-ppn x -n 4 true":           "not a number of ranks",
		"--bind-to socket true":      "the choices are none and core",
		"--bind-to":                  "needs 1 argument",
		"--output-dir= true":         "is empty",
		"-outfile-pattern o true":    "use --output-dir DIR",
		"--output-filename o a":      "use --output-dir DIR",
		"-configfile f":              "\":\" between them",
		"-genvnone true":             "env -i",
		"--cpu-set 0,1 true":         "taskset -c LIST",
		"-s all true":                "standard input goes to rank 0",
		"--nooversubscribe true":     "leave it out",
		"-n 1 a :":                   "program 2: no program to run",
		": a":                        "program 1: no program to run",
		"-n 1 a : : b":               "program 2: no program to run",
		"-n 1 a : -n 0 b":            "program 2: -n 0",
		"-n 0 a : b":                 "-n 0: this launcher",
		"a : -v b":                   "program 2: -v is for the whole job: put it before the first program",
		"a : --timeout 3 b":          "program 2: --timeout is for the whole job",
		"a : -hostfile h b":          "program 2: -hostfile is for the whole job",
		"-n 300 a : -n 300 b":        "600 ranks in all",
	} {
		_, err := Parse(strings.Fields(line))
		if assert.Error(t, err, line) {
			assert.ErrorAs(t, err, new(UsageError), line)
			assert.Contains(t, err.Error(), text, line)
			assert.NotContains(t, err.Error(), "\n", line)
		}
	}
}
