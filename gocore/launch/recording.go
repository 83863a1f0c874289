package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gormapy/gocore/trace"
	"gormapy/gocore/trace/chrome"
)

// recording is the memory that the ranks record into. The launcher holds it, so that
// it outlives them however they end.
type recording struct{ parts []*trace.Part }

// newRecording makes a part for each rank. It returns nil if the options ask for no
// recording.
func newRecording(opt *Options, ranks int) (*recording, error) {
	if opt.Trace == "" && !opt.Summary {
		return nil, nil
	}
	n, err := trace.Capacity()
	if err != nil {
		return nil, UsageError(err.Error())
	}
	c := &recording{}
	for range ranks {
		p, err := trace.NewPart(n)
		if err != nil {
			c.close()
			return nil, err
		}
		c.parts = append(c.parts, p)
	}
	return c, nil
}

// variables returns the environment variable by which a rank finds its part.
func (c *recording) variables(rank int) []string {
	if c == nil {
		return nil
	}
	return []string{trace.EnvPart + "=" + c.parts[rank].Path(os.Getpid())}
}

func (c *recording) close() {
	if c != nil {
		for _, p := range c.parts {
			p.Close()
		}
	}
}

// report writes the recording to a file and prints its summary, as the options ask.
func (l *launcher) report() {
	if l.recording == nil {
		return
	}
	r := chrome.New(l.recording.parts, len(l.ranks))
	if l.opt.Trace != "" {
		if err := r.WriteFile(l.opt.Trace); err != nil {
			l.messages.print(fmt.Sprintf("mpiexec: can't write the recording: %v", err))
			if l.status == 0 {
				l.status = 1
			}
		} else if l.opt.Verbose {
			l.messages.print(fmt.Sprintf("mpiexec: wrote %s; open it at https://ui.perfetto.dev, or with python -m gormapy.trace", l.opt.Trace))
		}
		if !l.opt.Summary {
			for _, line := range r.Incomplete() {
				l.messages.print("mpiexec: " + line)
			}
		}
	}
	if l.opt.Summary {
		for _, line := range strings.Split(strings.TrimRight(r.Summary(), "\n"), "\n") {
			l.messages.print(line)
		}
	}
}

// writable returns an error if a file can't be created or replaced.
func writable(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return unix.EISDIR
	}
	return unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK)
}
