package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// # Output of ranks on other hosts
//
// --output-dir and --merge-stderr-to-stdout are not for the engine, whose options for that
// differ: it starts this program in place of the rank's, which redirects its own standard
// output and error and becomes the rank's program. So each rank writes on its own host.

// redirectorName is argument 1 of this program when it redirects. It is no name of an option.
const redirectorName = "--as-rank"

// redirected puts this program in front of each program, if the options ask for that.
func (o *Options) redirected() error {
	if o.OutputDir == "" && !o.Merge {
		return nil
	}
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, which redirects the ranks' output: %w", err)
	}
	dir := o.OutputDir
	if dir != "" {
		dir = inDir(workingDir(), dir)
	}
	for i := range o.Programs {
		p := &o.Programs[i]
		p.Args = append([]string{redirectorName, dir, strconv.FormatBool(o.Merge), p.Name}, p.Args...)
		p.Name = own
	}
	return nil
}

func isRedirector(args []string) bool { return len(args) >= 5 && args[1] == redirectorName }

// redirect redirects and becomes a program; args are the directory, whether standard error
// goes where the output goes, and the program's. It returns an exit status if that fails.
func redirect(args []string) int {
	dir, merge, program := args[0], args[1] == "true", args[2:]
	err := func() error {
		path, err := findProgram(program[0], "", searchPath(os.Environ()))
		if err != nil {
			return err
		}
		if dir != "" {
			rank, err := rankByEnvironment(os.Getenv)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return fmt.Errorf("--output-dir: can't make the directory: %w", err)
			}
			o := outputs{dir: dir, merge: merge}
			for i := range outputNames {
				if i == 1 && merge {
					continue
				}
				fd, err := unix.Open(o.path(rank, i), unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_APPEND|unix.O_CLOEXEC, 0o666)
				if err != nil {
					return fmt.Errorf("--output-dir: can't open %s: %w", o.path(rank, i), err)
				}
				if err := unix.Dup3(fd, i+1, 0); err != nil {
					return os.NewSyscallError("dup3", err)
				}
			}
		}
		if merge {
			if err := unix.Dup3(1, 2, 0); err != nil {
				return os.NewSyscallError("dup3", err)
			}
		}
		return os.NewSyscallError("execve", syscall.Exec(path, program, os.Environ()))
	}()
	host, _ := os.Hostname()
	fmt.Fprintf(os.Stderr, "mpiexec: on %s: %v\n", filepath.Base(host), err)
	if p, ok := err.(*ProgramError); ok {
		return p.Status
	}
	return 1
}

// rankByEnvironment returns the rank that an engine gives this process.
func rankByEnvironment(getenv func(string) string) (int, error) {
	for _, name := range []string{"PMI_RANK", "PMIX_RANK", "FLUX_TASK_RANK", "SLURM_PROCID"} {
		if n, err := strconv.Atoi(getenv(name)); err == nil && n >= 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("--output-dir: the launcher has not said which rank this is")
}
