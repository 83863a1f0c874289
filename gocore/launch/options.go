package launch

import (
	"fmt"
	"os"
	"strings"
	"time"

	"gormapy/gocore/job"
	"gormapy/gocore/settings"
)

// Options are the options and programs of a command line.
type Options struct {
	Programs []Program // in the order of their ranks

	Env        []string // KEY=VALUE, for the ranks of all programs, in order
	Timeout    time.Duration
	OutputDir  string // for a file per rank and stream, "" for the launcher's own output
	Bind       bool   // each rank to a core
	Tag        bool   // prefix lines with the rank
	Merge      bool   // send the ranks' standard error where their output goes
	Verbose    bool
	Recovery   bool   // the job goes on when a rank fails
	Check      bool   // find races and misuse of one-sided communication
	Unkind     string // the seed of --unkind, "" for none
	CheckExact bool   // look at each load and store
	CheckFile  string // file for what was found, "" for standard error
	Trace      string // file for a recording of what the ranks did, "" for none
	Summary    bool   // a table of the time that their calls took, at the end
	Hosts      []Host // of -hosts or -hostfile
	PerHost    int    // ranks on each host, 0 if it was not given
	Remote     string // how an engine starts processes on other hosts: ssh, rsh, …
	// RemoteProgram is the program for that, in place of ssh.
	RemoteProgram string
	Version       bool
	Help          bool

	// Notes are sentences about options that were accepted and have no effect.
	Notes []string
}

// Program is a program that consecutive ranks run.
type Program struct {
	Ranks int
	Name  string
	Args  []string // without the name
	Env   []string // KEY=VALUE, added to the environment, in order
	Dir   string   // working directory, "" for the launcher's
}

// Ranks returns the number of ranks of all programs.
func (o *Options) Ranks() int {
	n := 0
	for _, p := range o.Programs {
		n += p.Ranks
	}
	return n
}

// UsageError is an error on the command line: one line, exit status 2.
type UsageError string

func (e UsageError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return UsageError(fmt.Sprintf(format, args...)) }

// parser is the state of Parse.
type parser struct {
	args []string // the arguments that are not read yet
	o    *Options
	p    *Program // the program whose options are being read

	counted     bool   // p has a number of ranks from an option
	perHost     int    // of -ppn, 0 for none
	perName     string // the option that it came from
	interpreter string // runs programs that are Python files
}

// Parse reads the arguments of mpiexec, without its own name.
func Parse(args []string) (*Options, error) {
	ps := &parser{args: args, o: &Options{}}
	for more := true; more; {
		ps.p = &Program{Ranks: 1}
		ps.counted, ps.perHost = false, 0
		var err error
		if more, err = ps.program(); err != nil {
			if n := len(ps.o.Programs) + 1; n > 1 || more {
				return nil, usagef("program %d: %v", n, err)
			}
			return nil, err
		}
		if ps.o.Help || ps.o.Version {
			return ps.o, nil
		}
		ps.o.Programs = append(ps.o.Programs, *ps.p)
	}
	if n := ps.o.Ranks(); n > job.MaxRanks {
		return nil, usagef("the programs have %d ranks in all: this launcher starts 1 to %d on one host", n, job.MaxRanks)
	}
	if ps.o.Timeout == 0 && settings.Timeout.Given() {
		return ps.o, setTimeout(ps, settings.Timeout.Name, []string{settings.Timeout.Value()})
	}
	return ps.o, nil
}

// program reads the options and the command line of one program. more reports whether
// a ":" followed it; after an error, whether one was found.
func (ps *parser) program() (more bool, err error) {
	if err := ps.options(); err != nil {
		return false, err
	}
	if ps.o.Help || ps.o.Version {
		return false, nil
	}
	command := ps.args
	for i, a := range ps.args {
		if a == ":" {
			command, ps.args, more = ps.args[:i], ps.args[i+1:], true
			break
		}
	}
	if len(command) == 0 || command[0] == "" {
		return more, usagef("no program to run was given, for example: mpiexec -n 4 python script.py")
	}
	if ps.interpreter != "" && isScript(command[0]) {
		command = append([]string{ps.interpreter}, command...)
	}
	ps.p.Name, ps.p.Args = command[0], command[1:]
	return more, ps.checkPerHost()
}

// options reads the options before a program.
func (ps *parser) options() error {
	for len(ps.args) > 0 && len(ps.args[0]) > 1 && ps.args[0][0] == '-' {
		if ps.args[0] == "--" {
			ps.args = ps.args[1:]
			return nil
		}
		given, value, attached := strings.Cut(ps.args[0], "=")
		if set := optional[strings.TrimLeft(given, "-")]; set != nil {
			if len(ps.o.Programs) > 0 {
				return usagef("%s is for the whole job: put it before the first program", given)
			}
			ps.args = ps.args[1:]
			if err := set(ps.o, value); err != nil {
				return err
			}
			continue
		}
		opt, known := options[strings.TrimPrefix(strings.TrimPrefix(given, "-"), "-")]
		if !known || attached && opt.args == 0 {
			return unknown(ps.args[0])
		}
		if opt.job && len(ps.o.Programs) > 0 {
			return usagef("%s is for the whole job: put it before the first program", given)
		}
		ps.args = ps.args[1:]
		var v []string
		if attached { // --np=4, --mca=a b
			v = []string{value}
		}
		missing := opt.args - len(v)
		if missing > len(ps.args) {
			return usagef("option %s needs %s; see mpiexec --help", given, count(opt.args, "argument"))
		}
		v = append(v, ps.args[:missing]...)
		ps.args = ps.args[missing:]
		if err := opt.set(ps, given, v); err != nil {
			return err
		}
		if ps.o.Help || ps.o.Version {
			return nil
		}
	}
	return nil
}

func unknown(given string) error {
	name := strings.TrimRight(given, "0123456789")
	switch number := given[len(name):]; strings.TrimLeft(name, "-") {
	case "n", "np", "c":
		return usagef("unknown option %q: write %s %s", given, name, number)
	}
	return usagef("unknown option %q; see mpiexec --help", given)
}

// checkPerHost refuses a number of ranks per host that requires several hosts.
func (ps *parser) checkPerHost() error {
	switch {
	case ps.perHost == 0:
		return nil
	case ps.o.elsewhere() || allocated(os.Getenv) != "":
		if ps.o.PerHost = ps.perHost; !ps.counted {
			ps.p.Ranks = ps.perHost * max(1, len(ps.o.Hosts))
		}
		return nil
	case !ps.counted:
		return usagef("%s %d: there is one host only: write -n %d", ps.perName, ps.perHost, ps.perHost)
	case ps.p.Ranks > ps.perHost:
		return usagef("%s %d: %d ranks would take several hosts; %s", ps.perName, ps.perHost, ps.p.Ranks, severalHosts)
	}
	ps.note("%s %d is ignored: %s", ps.perName, ps.perHost, whyOneHost)
	return nil
}

func (ps *parser) note(format string, args ...any) {
	ps.o.Notes = append(ps.o.Notes, fmt.Sprintf(format, args...))
}

// count returns "1 rank" or "3 ranks".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
