package boot

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"gormapy/gocore/boot/pmi"
	"gormapy/gocore/job"
)

// viaPMI joins a job of Hydra or of srun --mpi=pmi2: rank 0 makes the segment and
// publishes its descriptor; all others map it.
func viaPMI() (*Place, error) {
	c, err := pmi.Connect()
	if err != nil {
		return nil, fmt.Errorf("join the job of the PMI-1 launcher: %w", err)
	}
	p := &Place{Rank: c.Rank(), Launcher: "PMI-1"}
	if os.Getenv("HYDI_CONTROL_FD") != "" {
		p.Launcher = "Hydra"
	} else if os.Getenv("SLURM_STEP_ID") != "" {
		p.Launcher = "Slurm (pmi2)"
	}
	if p.Program, err = c.Program(); err != nil {
		return nil, fmt.Errorf("join the job of %s: %w", p.Launcher, err)
	}
	p.Abort = func(code int) {
		letOutputPass()
		_ = c.Abort(code)
	}
	p.Finalize = func() { _ = c.Finalize() }
	if p.Segment, err = share(c); err != nil {
		return nil, fmt.Errorf("join the job of %s: %w", p.Launcher, err)
	}
	if held, ok := p.Segment.Claim(p.Rank); !ok {
		return nil, fmt.Errorf("rank %d of the job of %s was granted to process %d before", p.Rank, p.Launcher, held)
	}
	return p, nil
}

// share publishes or opens the segment. The value contains host and boot, so that ranks
// on other hosts report that instead of opening another process's descriptor.
func share(c *pmi.Client) (*job.Segment, error) {
	const key = "gormapy-segment"
	host := hostID()
	if c.Rank() == 0 {
		seg, err := job.Create(c.Size())
		if err != nil {
			return nil, err
		}
		if err := c.Put(key, fmt.Sprintf("%s;%d;%d;%s", host, os.Getpid(), seg.FD(), seg.ID())); err != nil {
			return nil, err
		}
		if err := c.Barrier(); err != nil {
			return nil, err
		}
		return seg, c.Barrier() // the others have mapped it
	}
	if err := c.Barrier(); err != nil {
		return nil, err
	}
	val, err := c.Get(key)
	if err != nil {
		return nil, err
	}
	f := strings.Split(val, ";")
	if len(f) != 4 {
		return nil, fmt.Errorf("rank 0 published %q: all ranks must use the same gormapy", val)
	}
	if f[0] != host {
		return nil, fmt.Errorf("rank 0 runs on another host: jobs on several hosts are not supported yet, start all ranks on one")
	}
	pid, _ := strconv.Atoi(f[1])
	fd, _ := strconv.Atoi(f[2])
	seg, err := job.Open(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
	if err != nil {
		return nil, err
	}
	if seg.ID() != f[3] || len(seg.Ranks) != c.Size() {
		return nil, fmt.Errorf("the segment that rank 0 published is of another job")
	}
	return seg, c.Barrier()
}

// hostID returns the same text in all processes that share a kernel and a host name.
func hostID() string {
	name, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return name + "/" + strings.TrimSpace(string(boot))
}
