package launch

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"gormapy/gocore/job"
)

// Options is what a command line asks for.
type Options struct {
	Ranks   int
	Program string
	Args    []string // without the program
	Env     []string // KEY=VALUE, added to the environment of the ranks, in order
	Dir     string   // working directory of the ranks, "" for the launcher's
	Timeout time.Duration

	Tag     bool // prefix lines with the rank
	Merge   bool // standard error of the ranks goes where their output goes
	Verbose bool
	Version bool
	Help    bool

	// Notes says what was accepted and has no effect here.
	Notes []string
}

// UsageError is a mistake on the command line: one line, exit status 2.
type UsageError string

func (e UsageError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return UsageError(fmt.Sprintf(format, args...)) }

// option is one option that Parse knows.
type option struct {
	args int
	set  func(o *Options, name string, v []string) error
}

// ignored has no effect on one host; why completes the sentence "ignored, …".
func ignored(args int, why string) option {
	return option{args, func(o *Options, name string, v []string) error {
		o.Notes = append(o.Notes, strings.Join(append([]string{name}, v...), " ")+" is ignored: "+why)
		return nil
	}}
}

func flag(set func(*Options)) option {
	return option{0, func(o *Options, _ string, _ []string) error { set(o); return nil }}
}

const (
	whyMany    = "more ranks than cores and root are always fine"
	whyPlace   = "the operating system places the ranks"
	whyMCA     = "it is a parameter of Open MPI"
	whyOneHost = "all ranks run on this host"
	whyEnv     = "the ranks always get the whole environment"
)

// options lists every option by its name without dashes; one dash or two make
// no difference, as users bring habits from several launchers.
var options = map[string]option{
	"n": {1, setRanks}, "np": {1, setRanks}, "c": {1, setRanks},
	"env": {2, setEnv}, "genv": {2, setEnv}, "x": {1, exportEnv},
	"wdir": {1, setDir}, "wd": {1, setDir},
	"timeout":                {1, setTimeout},
	"l":                      flag(func(o *Options) { o.Tag = true }),
	"tag-output":             flag(func(o *Options) { o.Tag = true }),
	"prepend-rank":           flag(func(o *Options) { o.Tag = true }),
	"merge-stderr-to-stdout": flag(func(o *Options) { o.Merge = true }),
	"v":                      flag(func(o *Options) { o.Verbose = true }), "verbose": flag(func(o *Options) { o.Verbose = true }),
	"h": flag(func(o *Options) { o.Help = true }), "help": flag(func(o *Options) { o.Help = true }),
	"version": flag(func(o *Options) { o.Version = true }), "V": flag(func(o *Options) { o.Version = true }),

	"host": {1, checkHosts}, "H": {1, checkHosts}, "hosts": {1, checkHosts},
	"hostfile": {1, refuseHostfile}, "machinefile": {1, refuseHostfile}, "f": {1, refuseHostfile},

	"oversubscribe": ignored(0, whyMany), "allow-run-as-root": ignored(0, whyMany),
	"use-hwthread-cpus": ignored(0, whyPlace), "report-bindings": ignored(0, whyPlace),
	"bind-to": ignored(1, whyPlace), "map-by": ignored(1, whyPlace), "rank-by": ignored(1, whyPlace),
	"mca": ignored(2, whyMCA), "gmca": ignored(2, whyMCA), "prtemca": ignored(2, whyMCA), "pmixmca": ignored(2, whyMCA),
	"ppn": ignored(1, whyOneHost), "perhost": ignored(1, whyOneHost), "npernode": ignored(1, whyOneHost),
	"genvall": ignored(0, whyEnv), "envall": ignored(0, whyEnv),
	"q": ignored(0, "the launcher says nothing when all goes well"), "quiet": ignored(0, "the launcher says nothing when all goes well"),
}

// Parse reads the arguments of mpiexec, without its own name.
func Parse(args []string) (*Options, error) {
	o := &Options{Ranks: 1}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if args[0] == "--" {
			args = args[1:]
			break
		}
		given, value, attached := strings.Cut(args[0], "=")
		opt, known := options[strings.TrimPrefix(strings.TrimPrefix(given, "-"), "-")]
		if !known || attached && opt.args == 0 {
			return nil, usagef("unknown option %q; see mpiexec --help", args[0])
		}
		args = args[1:]
		var v []string
		if attached { // --np=4, --mca=a b
			v = []string{value}
		}
		missing := opt.args - len(v)
		if missing > len(args) {
			return nil, usagef("option %s needs %s; see mpiexec --help", given, count(opt.args, "argument"))
		}
		v = append(v, args[:missing]...)
		args = args[missing:]
		if err := opt.set(o, given, v); err != nil {
			return nil, err
		}
		if o.Help || o.Version {
			return o, nil
		}
	}
	if len(args) == 0 || args[0] == "" {
		return nil, usagef("no program to run was given, for example: mpiexec -n 4 python script.py")
	}
	for _, a := range args {
		if a == ":" {
			return nil, usagef("several programs in one job (\":\") are not yet supported")
		}
	}
	o.Program, o.Args = args[0], args[1:]
	return o, nil
}

func setRanks(o *Options, name string, v []string) error {
	n, err := strconv.Atoi(v[0])
	if err != nil {
		return usagef("%s %s: %q is not a number of ranks (1 to %d)", name, v[0], v[0], job.MaxRanks)
	}
	if n < 1 || n > job.MaxRanks {
		return usagef("%s %d: this launcher starts 1 to %d ranks on one host", name, n, job.MaxRanks)
	}
	o.Ranks = n
	return nil
}

func setEnv(o *Options, name string, v []string) error {
	if v[0] == "" || strings.ContainsAny(v[0], "=\x00") {
		return usagef("%s %s %s: %q is not the name of an environment variable (%s NAME VALUE)", name, v[0], v[1], v[0], name)
	}
	o.Env = append(o.Env, v[0]+"="+v[1])
	return nil
}

// exportEnv takes NAME=VALUE, or NAME for a variable that the launcher has:
// the ranks get the whole environment, so the latter is a check only.
func exportEnv(o *Options, name string, v []string) error {
	key, _, given := strings.Cut(v[0], "=")
	if key == "" {
		return usagef("%s %s: no name of an environment variable (%s NAME or %s NAME=VALUE)", name, v[0], name, name)
	}
	if given {
		o.Env = append(o.Env, v[0])
	} else if _, ok := os.LookupEnv(key); !ok {
		o.Notes = append(o.Notes, fmt.Sprintf("%s %s: there is no such environment variable to export", name, key))
	}
	return nil
}

func setDir(o *Options, name string, v []string) error {
	if st, err := os.Stat(v[0]); err != nil {
		return usagef("%s %s: %v", name, v[0], reason(err))
	} else if !st.IsDir() {
		return usagef("%s %s: not a directory", name, v[0])
	}
	o.Dir = v[0]
	return nil
}

func setTimeout(o *Options, name string, v []string) error {
	s, err := strconv.ParseFloat(v[0], 64)
	if err != nil || !(s > 0) || math.IsInf(s, 0) {
		return usagef("%s %s: %q is not a number of seconds greater than 0", name, v[0], v[0])
	}
	o.Timeout = time.Duration(min(s, 1e9) * float64(time.Second))
	return nil
}

// severalHosts names the ways to run on more than this host.
const severalHosts = "this launcher serves one host; several hosts take srun, mpiexec.hydra (MPICH) or mpirun/prterun (Open MPI), across which gormapy can't communicate yet"

func checkHosts(o *Options, name string, v []string) error {
	here, _ := os.Hostname()
	short, _, _ := strings.Cut(here, ".")
	for _, h := range strings.Split(v[0], ",") {
		host, slots := splitSlots(h)
		if n, err := strconv.Atoi(slots); slots != "*" && (err != nil || n < 1) {
			return usagef("%s %s: %q is not a number of slots", name, v[0], slots)
		}
		switch host {
		case "localhost", "127.0.0.1", "::1", here, short:
		default:
			return usagef("%s %s: %q is not this host (%s); %s", name, v[0], host, here, severalHosts)
		}
	}
	o.Notes = append(o.Notes, name+" "+v[0]+" is ignored: "+whyOneHost)
	return nil
}

// splitSlots reads host, host:slots, IPv6 or [IPv6]:slots.
func splitSlots(h string) (host, slots string) {
	host, slots = h, "1"
	if i := strings.LastIndexByte(h, ':'); i >= 0 && (strings.Count(h, ":") == 1 || strings.HasSuffix(h[:i], "]")) {
		host, slots = h[:i], h[i+1:]
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), slots
}

func refuseHostfile(_ *Options, name string, v []string) error {
	return usagef("%s %s: %s", name, v[0], severalHosts)
}

// count is "1 rank", "3 ranks".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
