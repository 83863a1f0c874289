package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// # Several hosts
//
// This launcher starts ranks on its own host. For a job on others it hands over to a
// launcher that can start processes there (an engine): it says so in a line, and starts
// that program, with the options translated. The ranks find each other by the engine's
// process manager interface (package boot). A daemon of our own on each host would be
// one more thing to configure, and every cluster has one of these. What this launcher gives
// beyond the engines the ranks and this process give together: see away.go.

// engine is a launcher that starts processes on several hosts.
type engine struct {
	name    string
	program string // path
	command func(o *Options) ([]string, error)
}

// allocated describes the allocation that this process is in, by the environment: of Slurm
// or Flux, with more than one host, and outside of the steps there. It returns "" if there
// is none.
func allocated(getenv func(string) string) string {
	if getenv("SLURM_JOB_ID") != "" && slices.Contains(outside[:], getenv("SLURM_STEP_ID")) {
		for _, name := range []string{"SLURM_JOB_NUM_NODES", "SLURM_NNODES"} {
			if n, err := strconv.Atoi(getenv(name)); err == nil {
				if n > 1 {
					return "srun"
				}
				return ""
			}
		}
	}
	if getenv("FLUX_URI") != "" && getenv("FLUX_TASK_RANK") == "" {
		if n, err := strconv.Atoi(getenv("FLUX_JOB_NNODES")); err == nil && n > 1 {
			return "flux"
		}
	}
	return ""
}

// outside are the values of SLURM_STEP_ID outside of steps that run tasks: none, the step of
// a batch script, and the interactive step, which is the shell of salloc.
var outside = [...]string{"", "4294967291", "4294967290"}

// handOver runs the job by an engine if it is not to run on this host alone, and returns its
// exit status.
func handOver(o *Options) (status int, yes bool, err error) {
	by := allocated(os.Getenv)
	if len(o.Hosts) > 0 && !o.elsewhere() {
		return 0, false, nil
	}
	if len(o.Hosts) == 0 && by == "" {
		return 0, false, nil
	}
	if o.Recovery {
		return 0, true, usagef("--enable-recovery is for jobs on this host: a launcher that starts processes on others ends the job when one of them fails")
	}
	if o.Check {
		return 0, true, UsageError("--check can't look at ranks on several hosts: start as many on one, such as by --hosts localhost")
	}
	e, err := findEngine(by)
	if err != nil {
		return 0, true, err
	}
	if err := o.redirected(); err != nil {
		return 0, true, err
	}
	args, err := e.command(o)
	if err != nil {
		return 0, true, err
	}
	fmt.Fprintf(os.Stderr, "mpiexec: %s on several hosts: handing over to %s (%s)\n", count(o.Ranks(), "rank"), e.name, e.program)
	if o.Verbose {
		fmt.Fprintf(os.Stderr, "mpiexec: %s\n", strings.Join(append([]string{e.program}, args...), " "))
	}
	status, err = runAway(o, e, args)
	return status, true, err
}

// findEngine returns the engine of an allocation, or one that needs no more than ssh.
func findEngine(by string) (*engine, error) {
	var wanted []*engine
	switch by {
	case "srun":
		wanted = []*engine{{name: "srun", command: srunCommand}}
	case "flux":
		wanted = []*engine{{name: "flux", command: fluxCommand}}
	}
	wanted = append(wanted, &engine{name: "mpiexec.hydra", command: hydraCommand}, &engine{name: "prterun", command: prterunCommand})
	for _, e := range wanted {
		if e.program = findBeside(e.name); e.program != "" {
			return e, nil
		}
	}
	return nil, usagef("the job is to run on several hosts, for which this launcher needs another one, and found none: " +
		"pip install mpich brings mpiexec.hydra, which needs ssh without a password; prterun (Open MPI 5), srun and flux do, too")
}

// findBeside returns the path of a program on PATH, in the directory of this one, or where installers put the scripts of
// the package that this one is in; "" if there is none.
func findBeside(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	own, err := os.Executable()
	if err != nil {
		return ""
	}
	dirs := append([]string{filepath.Dir(own)}, scripts(own)...)
	if prefix := os.Getenv("VIRTUAL_ENV"); prefix != "" {
		dirs = append(dirs, filepath.Join(prefix, "bin"))
	}
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// scripts returns the folders for scripts of a prefix, and of a folder of packages, that PREFIX/lib/python3.N/site-packages/
// gormapy/_bin/mpiexec lies in.
func scripts(own string) []string {
	packages := filepath.Dir(filepath.Dir(filepath.Dir(own)))
	return []string{filepath.Join(packages, "../../../bin"), filepath.Join(packages, "bin")}
}

// programs adds the programs, with a ":" between them, each after its options.
func programs(args []string, o *Options, options func(p *Program) []string) []string {
	for i := range o.Programs {
		p := &o.Programs[i]
		if i > 0 {
			args = append(args, ":")
		}
		args = append(args, options(p)...)
		args = append(append(args, p.Name), p.Args...)
	}
	return args
}

func hydraCommand(o *Options) ([]string, error) {
	var args []string
	if len(o.Hosts) > 0 {
		var list []string
		for _, h := range o.placed(o.Ranks()) {
			list = append(list, h.String())
		}
		args = append(args, "-hosts", strings.Join(list, ","))
	} else if o.PerHost > 0 {
		args = append(args, "-ppn", strconv.Itoa(o.PerHost))
	}
	if o.Remote != "" {
		args = append(args, "-launcher", o.Remote)
	}
	if o.RemoteProgram != "" {
		args = append(args, "-launcher-exec", o.RemoteProgram)
	}
	if o.Tag {
		args = append(args, "-prepend-rank")
	}
	if o.Bind {
		args = append(args, "-bind-to", "core")
	}
	for _, kv := range o.Env {
		name, value, _ := strings.Cut(kv, "=")
		args = append(args, "-genv", name, value)
	}
	return programs(args, o, func(p *Program) (some []string) {
		some = []string{"-n", strconv.Itoa(p.Ranks)}
		for _, kv := range p.Env {
			name, value, _ := strings.Cut(kv, "=")
			some = append(some, "-env", name, value)
		}
		if p.Dir != "" {
			some = append(some, "-wdir", p.Dir)
		}
		return some
	}), nil
}

// exported are the variables that PRRTE does not send to other hosts unless it is told to.
func exported(o *Options) (args []string) {
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "PYTHON") || strings.HasPrefix(name, "GORMAPY_") && !strings.HasPrefix(name, "GORMAPY_JOB_") ||
			slices.Contains([]string{"PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "OMP_NUM_THREADS"}, name) {
			args = append(args, "-x", name)
		}
	}
	for _, kv := range o.home().Variables() {
		name, _, _ := strings.Cut(kv, "=")
		args = append(args, "-x", name)
	}
	for _, kv := range o.Env {
		args = append(args, "-x", kv)
	}
	return args
}

func prterunCommand(o *Options) ([]string, error) {
	var args []string
	if os.Geteuid() == 0 {
		args = append(args, "--allow-run-as-root")
	}
	if dir := filepath.Dir(findBeside("prterun")); !slices.Contains([]string{".", "/bin", "/usr/bin", "/usr/local/bin"}, dir) {
		args = append(args, "--prefix", filepath.Dir(dir)) // where its programs are on the other hosts
	}
	if len(o.Hosts) > 0 {
		var list []string
		for _, h := range o.placed(o.Ranks()) {
			list = append(list, h.String())
		}
		args = append(args, "--host", strings.Join(list, ","))
	}
	if o.RemoteProgram != "" {
		args = append(args, "--prtemca", "plm_ssh_agent", o.RemoteProgram)
	}
	bind := "none"
	if o.Bind {
		bind = "core"
	}
	args = append(args, "--bind-to", bind)
	if o.Tag {
		args = append(args, "--output", "tag")
	}
	shared := exported(o)
	return programs(args, o, func(p *Program) []string {
		some := append([]string{"-n", strconv.Itoa(p.Ranks)}, shared...)
		for _, kv := range p.Env {
			some = append(some, "-x", kv)
		}
		if p.Dir != "" {
			some = append(some, "--wdir", p.Dir)
		}
		return some
	}), nil
}

// oneProgram returns the only program, for engines that can't start several as one job.
func oneProgram(o *Options, engine string) (*Program, error) {
	if len(o.Programs) > 1 {
		return nil, usagef("%s starts one program as a job, %d were given with \":\" between them: use mpiexec.hydra (pip install mpich) in the allocation", engine, len(o.Programs))
	}
	return &o.Programs[0], nil
}

func srunCommand(o *Options) ([]string, error) {
	p, err := oneProgram(o, "srun")
	if err != nil {
		return nil, err
	}
	args := []string{"--mpi=" + slurmInterface(), "--kill-on-bad-exit=1", "--disable-status", "--ntasks=" + strconv.Itoa(p.Ranks)}
	if len(o.Hosts) > 0 {
		var names []string
		for _, h := range o.Hosts {
			names = append(names, h.Name)
		}
		args = append(args, "--nodelist="+strings.Join(names, ","), "--nodes="+strconv.Itoa(len(names)))
		args = append(args, "--ntasks-per-node="+strconv.Itoa(o.placed(p.Ranks)[0].Slots))
	} else if o.PerHost > 0 {
		args = append(args, "--ntasks-per-node="+strconv.Itoa(o.PerHost))
	}
	bind := "none"
	if o.Bind {
		bind = "cores"
	}
	args = append(args, "--cpu-bind="+bind)
	if o.Tag {
		args = append(args, "--label")
	}
	if p.Dir != "" {
		args = append(args, "--chdir="+p.Dir)
	}
	export := "ALL"
	for _, kv := range append(slices.Clone(o.Env), p.Env...) {
		if strings.ContainsAny(kv, ",\n") {
			return nil, usagef("srun can't set %q, since its value has a comma or a line break: export it before mpiexec", kv)
		}
		export += "," + kv
	}
	return append(append(args, "--export="+export, p.Name), p.Args...), nil
}

// slurmInterface returns the process manager interface of srun --mpi: that which this
// version joins and Slurm has.
func slurmInterface() string {
	list, _ := exec.Command("srun", "--mpi=list").CombinedOutput()
	for _, name := range []string{"pmi2", "pmix"} {
		if slices.Contains(strings.Fields(string(list)), name) {
			return name
		}
	}
	return "none"
}

func fluxCommand(o *Options) ([]string, error) {
	p, err := oneProgram(o, "flux")
	if err != nil {
		return nil, err
	}
	args := []string{"run", "-n", strconv.Itoa(p.Ranks)}
	if o.PerHost > 0 {
		args = append(args, "--tasks-per-node="+strconv.Itoa(o.PerHost))
	}
	if len(o.Hosts) > 0 {
		return nil, usagef("flux chooses the hosts of its allocation itself: leave out the list of hosts")
	}
	if o.Tag {
		args = append(args, "--label-io")
	}
	if p.Dir != "" {
		args = append(args, "--cwd="+p.Dir)
	}
	for _, kv := range append(slices.Clone(o.Env), p.Env...) {
		args = append(args, "--env="+kv)
	}
	return append(append(args, p.Name), p.Args...), nil
}
