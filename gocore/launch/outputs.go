package launch

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// outputs are the files of --output-dir: DIR/rank.N.out and DIR/rank.N.err. The ranks
// write to them without the launcher, unless the launcher prefixes lines with the
// rank.
type outputs struct {
	dir   string
	merge bool
	files [][2]int // descriptors by rank; the second is -1 if there is no such file
}

// openOutputs makes the directory and opens the files of all ranks. It empties those of
// an earlier job once all can be opened.
func openOutputs(dir string, ranks int, merge bool) (*outputs, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("--output-dir: can't make the directory %s: %w", dir, reason(err))
	}
	o := &outputs{dir: dir, merge: merge}
	for r := range ranks {
		pair := [2]int{-1, -1}
		for i := range pair {
			if i == 1 && merge {
				continue
			}
			path := o.path(r, i)
			// Non-blocking: a FIFO without a reader becomes an error, not a wait.
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o666)
			if err != nil {
				o.files = append(o.files, pair)
				o.close()
				return nil, fmt.Errorf("--output-dir: can't open %s: %w", path, err)
			}
			pair[i] = fd
		}
		o.files = append(o.files, pair)
	}
	for _, pair := range o.files {
		for _, fd := range pair {
			if fd >= 0 {
				_ = unix.SetNonblock(fd, false)
				_ = unix.Ftruncate(fd, 0) // fails for a terminal, which has no length
			}
		}
	}
	return o, nil
}

var outputNames = [2]string{"out", "err"}

func (o *outputs) path(rank, stream int) string {
	return filepath.Join(o.dir, fmt.Sprintf("rank.%d.%s", rank, outputNames[stream]))
}

// errors returns the path of the file with rank's standard error.
func (o *outputs) errors(rank int) string {
	if o.merge {
		return o.path(rank, 0)
	}
	return o.path(rank, 1)
}

// take returns the descriptors of a rank, which the caller closes, and their paths.
func (o *outputs) take(r int) (fds [2]int, paths [2]string, err error) {
	fds, o.files[r] = o.files[r], [2]int{-1, -1}
	paths = [2]string{o.path(r, 0), o.path(r, 1)}
	if o.merge {
		fds[1], err = unix.FcntlInt(uintptr(fds[0]), unix.F_DUPFD_CLOEXEC, 3)
		paths[1] = paths[0]
	}
	return fds, paths, os.NewSyscallError("fcntl", err)
}

// close closes the descriptors that were not taken.
func (o *outputs) close() {
	for _, pair := range o.files {
		for _, fd := range pair {
			if fd >= 0 {
				unix.Close(fd)
			}
		}
	}
}
