package launch

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gormapy/gocore/job"
	"gormapy/gocore/settings"
)

// option is one option of the command line.
type option struct {
	args int
	set  func(ps *parser, name string, v []string) error
	job  bool // for the whole job: before the first program only
}

// flag returns an option without arguments, for the whole job.
func flag(set func(*Options)) option {
	return option{0, func(ps *parser, _ string, _ []string) error { set(ps.o); return nil }, true}
}

// ask returns a flag that may precede any program.
func ask(set func(*Options)) option {
	o := flag(set)
	o.job = false
	return o
}

// ignored returns an option without effect; why completes the sentence "is ignored: …".
func ignored(args int, why string) option {
	return option{args, func(ps *parser, name string, v []string) error {
		ps.note("%s is ignored: %s", strings.Join(append([]string{name}, v...), " "), why)
		return nil
	}, false}
}

// refused returns an option that is an error; instead completes the sentence "is not
// supported: …".
func refused(args int, instead string) option {
	return option{args, func(_ *parser, name string, v []string) error {
		return usagef("%s is not supported: %s", strings.Join(append([]string{name}, v...), " "), instead)
	}, false}
}

const (
	whyMany    = "more ranks than cores and root are always fine"
	whyPlace   = "the operating system places the ranks, or --bind-to core does"
	whyMCA     = "it is for Open MPI"
	whyOneHost = "all ranks run on this host"
	whyEnv     = "the ranks always get the whole environment"
	whyQuiet   = "the launcher says nothing when all goes well"
	whyVerbose = "-v says it"
	whyTimeout = "--timeout always does"

	useDir     = "use --output-dir DIR, which makes DIR/rank.0.out, DIR/rank.0.err, …"
	useTag     = "use --tag-output"
	useColon   = "give the programs on the command line, with \":\" between them"
	useEnv     = "the ranks always get the launcher's environment; start it as: env -i NAME=VALUE … mpiexec …"
	useTaskset = "use taskset -c LIST mpiexec --bind-to core …"

	// severalHosts names the ways to run on more than this host.
	severalHosts = "name the hosts with -hosts a,b or -hostfile FILE"
)

// options are all options by their name without dashes. One dash or two make no
// difference, since users have habits from several launchers.
var options = map[string]option{
	"n": {1, setRanks, false}, "np": {1, setRanks, false}, "c": {1, setRanks, false},
	"env": {2, setEnv, false}, "x": {1, exportEnv, false}, "genv": {2, setJobEnv, true},
	"wdir": {1, setDir, false}, "wd": {1, setDir, false},
	"timeout":                {1, setTimeout, true},
	"output-dir":             {1, setOutputDir, true},
	"output-directory":       {1, setOutputDir, true},
	"bind-to":                {1, setBinding, true},
	"trace":                  {1, setTrace, true},
	"summary":                flag(func(o *Options) { o.Summary = true }),
	"shared-arrays":          flag(func(o *Options) { o.Env = append(o.Env, settings.SharedArrays.Name+"=1") }),
	"l":                      flag(func(o *Options) { o.Tag = true }),
	"tag-output":             flag(func(o *Options) { o.Tag = true }),
	"prepend-rank":           flag(func(o *Options) { o.Tag = true }),
	"merge-stderr-to-stdout": flag(func(o *Options) { o.Merge = true }),
	"stderr-to-stdout":       flag(func(o *Options) { o.Merge = true }),
	"enable-recovery":        flag(func(o *Options) { o.Recovery = true }),
	"disable-auto-cleanup":   flag(func(o *Options) { o.Recovery = true }), // MPICH's name
	"continuous":             flag(func(o *Options) { o.Recovery = true }), // an older one of Open MPI
	"with-ft":                {1, setFaultTolerance, true},                 // Open MPI's
	"v":                      flag(func(o *Options) { o.Verbose = true }),
	"verbose":                flag(func(o *Options) { o.Verbose = true }),
	"h":                      ask(func(o *Options) { o.Help = true }),
	"help":                   ask(func(o *Options) { o.Help = true }),
	"version":                ask(func(o *Options) { o.Version = true }),
	"V":                      ask(func(o *Options) { o.Version = true }),
	"python":                 {1, setPython, true}, // of python -m gormapy.launch

	"host": {1, addHosts, false}, "H": {1, addHosts, false}, "hosts": {1, addHosts, false},
	"hostfile": {1, addHostFile, true}, "machinefile": {1, addHostFile, true}, "f": {1, addHostFile, true},
	"launcher": {1, setRemote, true}, "bootstrap": {1, setRemote, true}, "launcher-exec": {1, setRemoteProgram, true},
	"ppn": {1, setPerHost, false}, "perhost": {1, setPerHost, false}, "npernode": {1, setPerHost, false}, "N": {1, setPerHost, false},
	"s": {1, checkInput, true}, "stdin": {1, checkInput, true},

	"oversubscribe": ignored(0, whyMany), "allow-run-as-root": ignored(0, whyMany),
	"use-hwthread-cpus": ignored(0, whyPlace), "map-by": ignored(1, whyPlace), "rank-by": ignored(1, whyPlace),
	"membind": ignored(1, whyPlace), "bycore": ignored(0, whyPlace), "byslot": ignored(0, whyPlace),
	"mca": ignored(2, whyMCA), "gmca": ignored(2, whyMCA), "prtemca": ignored(2, whyMCA), "pmixmca": ignored(2, whyMCA),
	"prefix": ignored(1, whyMCA), "tune": ignored(1, whyMCA), "personality": ignored(1, whyMCA),
	"rmk":   ignored(1, whyOneHost),
	"iface": ignored(1, whyOneHost), "localonly": ignored(0, whyOneHost), "usize": ignored(1, whyOneHost),
	"envall": ignored(0, whyEnv), "genvall": ignored(0, whyEnv), "envlist": ignored(1, whyEnv), "genvlist": ignored(1, whyEnv),
	"q": ignored(0, whyQuiet), "quiet": ignored(0, whyQuiet),
	"report-bindings": ignored(0, whyVerbose), "display-map": ignored(0, whyVerbose), "display-allocation": ignored(0, whyVerbose),
	"print-rank-map": ignored(0, whyVerbose), "print-all-exitcodes": ignored(0, whyVerbose),
	"get-stack-traces": ignored(0, whyTimeout), "report-state-on-timeout": ignored(0, whyTimeout),

	"default-hostfile": refused(1, severalHosts), "pernode": refused(0, severalHosts), "nolocal": refused(0, severalHosts),
	"output-filename": refused(1, useDir), "outfile-pattern": refused(1, useDir), "errfile-pattern": refused(1, useDir),
	"output":          refused(1, "use --tag-output, --merge-stderr-to-stdout or --output-dir DIR"),
	"prepend-pattern": refused(1, useTag), "timestamp-output": refused(0, useTag), "xml": refused(0, useTag),
	"configfile": refused(1, useColon), "app": refused(1, useColon),
	"envnone": refused(0, useEnv), "genvnone": refused(0, useEnv),
	"cpu-set": refused(1, useTaskset), "cpu-list": refused(1, useTaskset), "cpus-per-proc": refused(1, useTaskset), "cpus-per-rank": refused(1, useTaskset),
	"bind-to-core": refused(0, "use --bind-to core"), "bind-to-none": refused(0, "use --bind-to none"),
	"bind-to-socket":  refused(0, "use --bind-to core or --bind-to none"),
	"nooversubscribe": refused(0, "more ranks than cores always work; leave it out"),
	"path":            refused(1, "set PATH, or name the program with its directory"),
	"arch":            refused(1, "all ranks run on this host; leave it out"),
	"soft":            refused(1, "say how many ranks with -n"),
	"gdb":             refused(0, "attach to the process of a rank, which -v says: gdb -p PID"), "debug": refused(0, "attach to the process of a rank, which -v says: gdb -p PID"),
}

// optional are options whose value, if they have one, follows "=": they set the Options to it.
var optional = map[string]func(o *Options, value string) error{"check": setCheck, "unkind": setUnkind}

func setRanks(ps *parser, name string, v []string) error {
	n, err := strconv.Atoi(v[0])
	if err != nil {
		return usagef("%s %s: %q is not a number of ranks (1 to %d)", name, v[0], v[0], job.MaxRanks)
	}
	if n < 1 || n > job.MaxRanks {
		return usagef("%s %d: this launcher starts 1 to %d ranks on one host", name, n, job.MaxRanks)
	}
	ps.p.Ranks, ps.counted = n, true
	return nil
}

func setEnv(ps *parser, name string, v []string) error {
	return addEnv(&ps.p.Env, name, v)
}

func setJobEnv(ps *parser, name string, v []string) error {
	return addEnv(&ps.o.Env, name, v)
}

func addEnv(to *[]string, name string, v []string) error {
	if v[0] == "" || strings.ContainsAny(v[0], "=\x00") {
		return usagef("%s %s %s: %q is not the name of an environment variable (%s NAME VALUE)", name, v[0], v[1], v[0], name)
	}
	*to = append(*to, v[0]+"="+v[1])
	return nil
}

// exportEnv takes NAME=VALUE, or NAME for a variable that the launcher has:
// the ranks get the whole environment, so the latter is a check only.
func exportEnv(ps *parser, name string, v []string) error {
	key, _, given := strings.Cut(v[0], "=")
	if key == "" {
		return usagef("%s %s: no name of an environment variable (%s NAME or %s NAME=VALUE)", name, v[0], name, name)
	}
	if given {
		ps.p.Env = append(ps.p.Env, v[0])
	} else if _, ok := os.LookupEnv(key); !ok {
		ps.note("%s %s: there is no such environment variable to export", name, key)
	}
	return nil
}

func setDir(ps *parser, name string, v []string) error {
	if st, err := os.Stat(v[0]); err != nil {
		return usagef("%s %s: %v", name, v[0], reason(err))
	} else if !st.IsDir() {
		return usagef("%s %s: not a directory", name, v[0])
	}
	ps.p.Dir = v[0]
	return nil
}

func setTimeout(ps *parser, name string, v []string) error {
	s, err := strconv.ParseFloat(v[0], 64)
	if err != nil || !(s > 0) || math.IsInf(s, 0) {
		return usagef("%s %s: %q is not a number of seconds greater than 0", name, v[0], v[0])
	}
	ps.o.Timeout = time.Duration(min(s, 1e9) * float64(time.Second))
	return nil
}

func setOutputDir(ps *parser, name string, v []string) error {
	if v[0] == "" {
		return usagef("%s: the name of the directory is empty", name)
	}
	ps.o.OutputDir = v[0]
	return nil
}

func setTrace(ps *parser, name string, v []string) error {
	if v[0] == "" {
		return usagef("%s: the name of the file is empty", name)
	}
	if err := writable(v[0]); err != nil {
		return usagef("%s %s: %v", name, v[0], reason(err))
	}
	ps.o.Trace = v[0]
	return nil
}

// setBinding takes MPICH's and Open MPI's values for a core, also with Open MPI's
// permission to put several ranks on one, which this launcher always does.
func setBinding(ps *parser, name string, v []string) error {
	switch v[0] {
	case "none":
		ps.o.Bind = false
	case "core", "core:overload-allowed", "core:if-supported":
		ps.o.Bind = true
	default:
		return usagef("%s %s: the choices are none and core", name, v[0])
	}
	return nil
}

// setFaultTolerance takes Open MPI's values.
func setFaultTolerance(ps *parser, name string, v []string) error {
	switch v[0] {
	case "ulfm", "mpi", "true", "yes", "1":
		ps.o.Recovery = true
	case "none", "false", "no", "0":
		ps.o.Recovery = false
	default:
		return usagef("%s %s: the choices are ulfm and none", name, v[0])
	}
	return nil
}

func setPython(ps *parser, _ string, v []string) error {
	ps.interpreter = v[0]
	return nil
}

func setPerHost(ps *parser, name string, v []string) error {
	n, err := strconv.Atoi(v[0])
	if err != nil || n < 1 {
		return usagef("%s %s: %q is not a number of ranks", name, v[0], v[0])
	}
	ps.perName, ps.perHost = name, n
	return nil
}

func checkInput(ps *parser, name string, v []string) error {
	if v[0] != "0" {
		return usagef("%s %s is not supported: standard input goes to rank 0, the others have /dev/null", name, v[0])
	}
	ps.note("%s 0 is ignored: standard input goes to rank 0", name)
	return nil
}

// addHosts takes a list of hosts.
func addHosts(ps *parser, name string, v []string) error {
	hosts, err := hostList(v[0])
	if err != nil {
		return usagef("%s %s: %v", name, v[0], err)
	}
	return ps.addHosts(name, v[0], hosts)
}

// addHostFile takes a file of hosts.
func addHostFile(ps *parser, name string, v []string) error {
	hosts, err := hostFile(v[0])
	if err != nil {
		return usagef("%s %s: %v", name, v[0], err)
	}
	return ps.addHosts(name, v[0], hosts)
}

func (ps *parser) addHosts(name, value string, hosts []Host) error {
	if len(ps.o.Programs) > 0 && len(ps.o.Hosts) == 0 {
		return usagef("%s is for the whole job: put it before the first program", name)
	}
	if len(ps.o.Hosts) > 0 && !slices.Equal(ps.o.Hosts, hosts) {
		return usagef("%s %s: other hosts were given before; one list is for the whole job", name, value)
	}
	if ps.o.Hosts = hosts; !ps.o.elsewhere() {
		ps.note("%s %s is ignored: %s", name, value, whyOneHost)
	}
	return nil
}

func setRemote(ps *parser, _ string, v []string) error {
	ps.o.Remote = v[0]
	return nil
}

func setRemoteProgram(ps *parser, _ string, v []string) error {
	ps.o.RemoteProgram = v[0]
	return nil
}
