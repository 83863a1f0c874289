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
	if l.recording != nil {
		l.status = l.opt.report(chrome.New(l.recording.parts, len(l.ranks)), l.status, l.messages.print)
	}
}

// report writes a recording to a file and prints its summary, as the options ask. It returns
// the exit status of a job that has ended with status.
func (o *Options) report(r *chrome.Recording, status int, print func(line string)) int {
	if o.Trace != "" {
		if err := r.WriteFile(o.Trace); err != nil {
			print(fmt.Sprintf("mpiexec: can't write the recording: %v", err))
			if status == 0 {
				status = 1
			}
		} else if o.Verbose {
			print(fmt.Sprintf("mpiexec: wrote %s; open it at https://ui.perfetto.dev, or with python -m gormapy.trace", o.Trace))
		}
		if !o.Summary {
			for _, line := range r.Incomplete() {
				print("mpiexec: " + line)
			}
		}
	}
	if o.Summary {
		for _, line := range strings.Split(strings.TrimRight(r.Summary(), "\n"), "\n") {
			print(line)
		}
	}
	return status
}

// report writes what the ranks have recorded, and returns the job's exit status.
func (a *away) report(status int) int {
	if a.opt.Trace == "" && !a.opt.Summary {
		return status
	}
	var parts []chrome.Source
	for n := range a.opt.Ranks() {
		g := a.ranks[n]
		if g == nil || g.record == nil || len(g.record.Data) == 0 {
			continue
		}
		p, err := trace.ReadPart(g.record.Data)
		if err != nil || int(p.Head.Rank) != n {
			a.say(fmt.Sprintf("the recording of rank %d is none: %v", n, err))
			continue
		}
		parts = append(parts, chrome.Source{Part: p, Host: fmt.Sprintf("%s %d", g.Host, g.Node), Shift: g.record.Times})
	}
	return a.opt.report(chrome.NewOf(parts, a.opt.Ranks(), 0), status, func(line string) { fmt.Fprintln(os.Stderr, line) })
}

// writable returns an error if a file can't be created or replaced.
func writable(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return unix.EISDIR
	}
	return unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK)
}
