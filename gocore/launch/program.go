package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ProgramError is the error of a program that can't be run. It has the exit status that
// shells use.
type ProgramError struct {
	Text   string
	Status int // 126 or 127
}

func (e *ProgramError) Error() string { return e.Text }

func notFound(format string, args ...any) error {
	return &ProgramError{fmt.Sprintf(format, args...), 127}
}

func notExecutable(format string, args ...any) error {
	return &ProgramError{fmt.Sprintf(format, args...), 126}
}

// findProgram resolves name as the ranks would, in directory dir and with their search
// path, so that an error is known before any rank is started.
func findProgram(name, dir, searchPath string) (string, error) {
	if strings.Contains(name, "/") {
		return name, runnable(name, inDir(dir, name))
	}
	var denied error
	for _, d := range filepath.SplitList(searchPath) {
		if d == "" {
			d = "."
		}
		path := filepath.Join(d, name)
		if d == "." {
			path = "./" + name
		}
		switch err := runnable(name, inDir(dir, path)); {
		case err == nil:
			return path, nil
		case errors.As(err, new(*ProgramError)) && err.(*ProgramError).Status == 126 && denied == nil:
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	if _, err := os.Stat(inDir(dir, name)); err == nil {
		if isScript(name) {
			return "", notFound("%s: not found on PATH; to run the Python program: mpiexec -n N python %s", name, name)
		}
		return "", notFound("%s: not found on PATH; to run the file in this directory: ./%s", name, name)
	}
	if name == "python" {
		if path, err := findProgram("python3", dir, searchPath); err == nil {
			return "", notFound("python: not found on PATH, but python3 is there (%s)", path)
		}
	}
	return "", notFound("%s: program not found on PATH", name)
}

// inDir returns path, which is relative to dir, as the launcher has to name it: the
// launcher does not change its directory.
func inDir(dir, path string) string {
	if dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func isScript(name string) bool { return strings.HasSuffix(name, ".py") }

// runnable returns an error if path can't be run.
func runnable(name, path string) error {
	st, err := os.Stat(path)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrPermission):
		return notExecutable("%s: permission denied", name)
	default:
		return notFound("%s: %v", name, reason(err))
	}
	if st.IsDir() {
		return notExecutable("%s: is a directory", name)
	}
	if unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) != nil {
		if isScript(name) {
			return notExecutable("%s: not executable; to run the Python program: mpiexec -n N python %s", name, name)
		}
		return notExecutable("%s: permission denied (not executable)", name)
	}
	return nil
}

// startError returns the error of a rank that can't be started, with the reason.
func startError(name string, rank int, err error) error {
	switch {
	case errors.Is(err, unix.ENOEXEC):
		return notExecutable("%s: not a program for this machine, nor a script that begins with #!", name)
	case errors.Is(err, unix.ENOENT):
		return notFound("%s: can't be started: %v (it is there; the interpreter that it names may be missing)", name, err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.ETXTBSY):
		return notExecutable("%s: can't be started: %v", name, err)
	case errors.Is(err, unix.E2BIG):
		return notExecutable("%s: can't be started: arguments and environment are too long", name)
	case errors.Is(err, unix.EMFILE):
		var limit unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
		return fmt.Errorf("can't start rank %d: %w (5 are needed for a rank, the limit ulimit -n is %d)", rank, err, limit.Cur)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("can't start rank %d: %w (the limit on processes, ulimit -u, may be reached)", rank, err)
	}
	return fmt.Errorf("can't start rank %d: %w", rank, err)
}

// reason returns the error of a path without the path, which the message names already.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
