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
	for _, c := range []struct {
		line string
		want Options
	}{
		{"true", Options{Ranks: 1, Program: "true"}},
		{"-n 4 true", Options{Ranks: 4, Program: "true"}},
		{"-np 4 true", Options{Ranks: 4, Program: "true"}},
		{"--np 4 true", Options{Ranks: 4, Program: "true"}},
		{"--np=4 true", Options{Ranks: 4, Program: "true"}},
		{"-c 512 true", Options{Ranks: 512, Program: "true"}},
		{"-n 2 prog -n 3 --help", Options{Ranks: 2, Program: "prog", Args: []string{"-n", "3", "--help"}}},
		{"-n 2 -- -prog -x", Options{Ranks: 2, Program: "-prog", Args: []string{"-x"}}},
		{"-env A 1 --env B 2=3 -genv C x prog", Options{Ranks: 1, Program: "prog", Env: []string{"A=1", "B=2=3", "C=x"}}},
		{"-x A=b=c -x PATH prog", Options{Ranks: 1, Program: "prog", Env: []string{"A=b=c"}}},
		{"-wdir /tmp prog", Options{Ranks: 1, Program: "prog", Dir: "/tmp"}},
		{"--wdir=/ -wd /tmp prog", Options{Ranks: 1, Program: "prog", Dir: "/tmp"}},
		{"-l prog", Options{Ranks: 1, Program: "prog", Tag: true}},
		{"--tag-output prog", Options{Ranks: 1, Program: "prog", Tag: true}},
		{"-prepend-rank --merge-stderr-to-stdout prog", Options{Ranks: 1, Program: "prog", Tag: true, Merge: true}},
		{"--timeout 1.5 prog", Options{Ranks: 1, Program: "prog", Timeout: 1500 * time.Millisecond}},
		{"-v prog", Options{Ranks: 1, Program: "prog", Verbose: true}},
		{"--version", Options{Ranks: 1, Version: true}},
		{"-h nonsense", Options{Ranks: 1, Help: true}},
	} {
		got, err := Parse(strings.Fields(c.line))
		if assert.NoError(t, err, c.line) {
			if len(got.Args) == 0 {
				got.Args = nil
			}
			assert.Equal(t, c.want, *got, c.line)
		}
	}
	for _, line := range []string{
		"--oversubscribe", "--allow-run-as-root", "-allow-run-as-root", "--mca btl self,sm", "--mca=btl self", "--bind-to none",
		"--bind-to=core", "-map-by slot:OVERSUBSCRIBE", "--rank-by core", "--report-bindings", "--use-hwthread-cpus", "-q",
		"-host localhost", "-H localhost:4,127.0.0.1", "--host " + here, "-hosts ::1,[::1]:*", "-ppn 2", "-genvall",
	} {
		got, err := Parse(append(strings.Fields(line), "-n", "2", "prog"))
		if assert.NoError(t, err, line) {
			assert.Equal(t, 2, got.Ranks, line)
			require.Len(t, got.Notes, 1, line)
			assert.Contains(t, got.Notes[0], "is ignored: ", line)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for line, text := range map[string]string{
		"":                        "no program",
		"-n 4":                    "no program",
		"-n":                      "-n needs 1 argument",
		"-n 0 true":               "1 to 512",
		"-n -1 true":              "1 to 512",
		"-n 513 true":             "1 to 512",
		"-n x true":               `"x" is not a number of ranks`,
		"-n 2.0 true":             "not a number of ranks",
		"--frobnicate true":       `unknown option "--frobnicate"; see mpiexec --help`,
		"---n 2 true":             "unknown option",
		"--tag-output=yes true":   "unknown option",
		"-env A":                  "needs 2 arguments",
		"-env A=1 2 true":         "not the name of an environment variable",
		"-x =1 true":              "no name",
		"-wdir /no/such true":     "no such file or directory",
		"-wdir /etc/passwd true":  "not a directory",
		"--timeout 0 true":        "number of seconds greater than 0",
		"--timeout soon true":     "number of seconds",
		"--timeout NaN true":      "number of seconds",
		"-host nowhere.test true": `"nowhere.test" is not this host`,
		"-host localhost:x true":  "number of slots",
		"-f hosts true":           "srun, mpiexec.hydra",
		"--hostfile hosts true":   "prterun",
		"-n 1 a : -n 1 b":         "not yet supported",
		"-n 1 a :":                "not yet supported",
	} {
		_, err := Parse(strings.Fields(line))
		if assert.Error(t, err, line) {
			assert.ErrorAs(t, err, new(UsageError), line)
			assert.Contains(t, err.Error(), text, line)
			assert.NotContains(t, err.Error(), "\n", line)
		}
	}
}
