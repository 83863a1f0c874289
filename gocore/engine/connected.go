package engine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/sys"
)

// # Processes of other jobs
//
// Their numbers are those from Size on, see package job, connected.go. A number is given when this process learns of the other one,
// because both become members of a communicator, or because a message of it arrives first. It is taken back once that process has
// ended and nothing of the program names the number any more; that is looked at when numbers are given.

// connected are the processes of other jobs that this one knows.
type connected struct {
	mu     sync.Mutex
	jobs   map[string]*otherJob // by ID
	slots  []*otherProcess      // by number - Size; nil: free
	links  linkTransport
	used   func(number int) bool // reports whether the program's objects name the number
	forget []func(number int)
	watch  bool         // the watcher of these processes has begun
	live   atomic.Bool  // a number has been given
	known  atomic.Int32 // 1 + the highest number given so far, or Size
}

// linkTransport is the transport to them, shm.Links.
type linkTransport interface {
	fabric.Transport
	Waiting() int
	Forget(peer int)
}

type otherJob struct {
	seg       *job.Segment
	processes int // that have a number
}

type otherProcess struct {
	job  *otherJob
	id   string
	rank int
	told bool // that it has ended
}

// Identity names a process of any job of this host, and says how the segment of its job is opened.
type Identity struct {
	Job                 string // ID
	Rank                int
	OpenerPID, OpenerFD int
}

// OnUsed sets the function that reports whether the program's objects name the number of a process of another job.
func (e *Engine) OnUsed(used func(number int) bool) { e.connected.used = used }

// OnForget adds a function that is called, under the poll lock, when a number of a process of another job is taken back: another
// process may get it.
func (e *Engine) OnForget(forget func(number int)) {
	e.connected.forget = append(e.connected.forget, forget)
}

// Places returns how many world ranks and numbers of other processes there can be.
func (e *Engine) Places() int { return e.Size + job.MaxConnected }

// Identity returns the identity of a world rank, or of a number.
func (e *Engine) Identity(r int) Identity {
	seg, rank := e.Job, r
	if !e.Job.Own(r) {
		c := &e.connected
		c.mu.Lock()
		defer c.mu.Unlock()
		p := c.slots[r-e.Size]
		if p == nil {
			return Identity{}
		}
		seg, rank = p.job.seg, p.rank
	}
	pid, fd := seg.Opener()
	return Identity{seg.ID(), rank, pid, fd}
}

// Number returns the world rank of a process of this job, or the number of one of another job, which it gives it if it has none.
// It must not be called under the poll lock.
func (e *Engine) Number(id Identity) (n int, err error) {
	if id.Job == e.Job.ID() {
		return e.number(id)
	}
	e.Exclude(func() {
		e.release()
		n, err = e.number(id)
	})
	return n, err
}

// number is Number, for other jobs under the poll lock.
func (e *Engine) number(id Identity) (int, error) {
	if id.Job == e.Job.ID() {
		if id.Rank < 0 || id.Rank >= e.Size {
			return 0, fmt.Errorf("there is no rank %d in this job of %d ranks", id.Rank, e.Size)
		}
		return id.Rank, nil
	}
	if e.netOnly || e.Job.Nodes() > 1 {
		return 0, fmt.Errorf("processes of different jobs communicate through shared memory, and this job %s", e.whyApart())
	}
	c := &e.connected
	c.mu.Lock()
	defer c.mu.Unlock()
	free := -1
	for i, p := range c.slots {
		switch {
		case p == nil && free < 0:
			free = i
		case p != nil && p.id == id.Job && p.rank == id.Rank:
			return e.Size + i, nil
		}
	}
	if free < 0 {
		if free = len(c.slots); free >= job.MaxConnected {
			return 0, fmt.Errorf("this process is connected to %d processes of other jobs, and can't be to more: disconnect from some", free)
		}
		c.slots = append(c.slots, nil)
	}
	j, err := c.open(id)
	if err != nil {
		return 0, err
	}
	if id.Rank < 0 || id.Rank >= len(j.seg.Ranks) {
		c.close(id.Job, j)
		return 0, fmt.Errorf("there is no rank %d in the other job of %d ranks", id.Rank, len(j.seg.Ranks))
	}
	j.processes++
	n, entry := e.Size+free, &j.seg.Ranks[id.Rank]
	c.slots[free] = &otherProcess{job: j, id: id.Job, rank: id.Rank}
	e.peers[n] = peer{via: c.links}
	e.gone[n].Store(0)
	e.judged[n].Store(0)
	e.Job.SetConnected(n, entry)
	c.known.Store(max(c.known.Load(), int32(n)+1))
	c.live.Store(true)
	if !c.watch {
		c.watch = true
		go guarded("watcher of other jobs", e.watchConnected)
	}
	log.Debugf("engine", "rank %d of job %.8s (pid %d) is connected, as number %d", id.Rank, id.Job, entry.PID(), n)
	return n, nil
}

// whyApart says why this job can't be connected to others.
func (e *Engine) whyApart() string {
	if e.netOnly {
		return "uses a network inside the host: leave GORMAPY_FABRIC unset"
	}
	return fmt.Sprintf("is on %d nodes", e.Job.Nodes())
}

// open returns the other job, whose segment it maps if need be, under mu.
func (c *connected) open(id Identity) (*otherJob, error) {
	if j := c.jobs[id.Job]; j != nil {
		return j, nil
	}
	seg, err := job.Open(fmt.Sprintf("/proc/%d/fd/%d", id.OpenerPID, id.OpenerFD))
	if err != nil {
		return nil, fmt.Errorf("connect to another job: %w", err)
	}
	seg.CloseFD()
	switch {
	case seg.ID() != id.Job:
		err = fmt.Errorf("connect to another job: %s is gone, process %d has another one now", id.Job, id.OpenerPID)
	case seg.Nodes() > 1:
		err = fmt.Errorf("connect to another job: it is on %d nodes, and jobs communicate through the memory of one", seg.Nodes())
	}
	if err != nil {
		seg.Close()
		return nil, err
	}
	if c.jobs == nil {
		c.jobs = map[string]*otherJob{}
	}
	j := &otherJob{seg: seg}
	c.jobs[id.Job] = j
	return j, nil
}

// close unmaps the segment of a job of which no process has a number, under mu.
func (c *connected) close(id string, j *otherJob) {
	if j.processes == 0 {
		delete(c.jobs, id)
		j.seg.Close()
	}
}

// release takes back the numbers of processes that have ended and that nothing names any more, under the poll lock.
func (e *Engine) release() {
	c := &e.connected
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range c.slots {
		n := e.Size + i
		if p == nil || !p.told || e.gone[n].Load() == 0 || c.used == nil || c.used(n) {
			continue
		}
		e.dropAll(n)
		c.links.Forget(n)
		for _, forget := range c.forget {
			forget(n)
		}
		e.Job.SetConnected(n, nil)
		c.slots[i] = nil
		p.job.processes--
		c.close(p.id, p.job)
	}
}

// launcherOf returns the pid of the launcher that tells how a process has ended; 0: there is none.
func (e *Engine) launcherOf(r int) uint32 {
	if e.Job.Own(r) {
		return e.Job.Head.LauncherPID
	}
	c := &e.connected
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.slots[r-e.Size]; p != nil {
		return p.job.seg.Head.LauncherPID
	}
	return 0
}

// Name returns what errors call a world rank, or the number of a process of another job.
func (e *Engine) Name(r int) string {
	if e.Job.Own(r) {
		return fmt.Sprintf("rank %d", r)
	}
	return fmt.Sprintf("rank %d of another job", e.Identity(r).Rank)
}

// dropAll drops what is queued for a process that has ended.
func (e *Engine) dropAll(n int) {
	p := &e.peers[n]
	p.mu.Lock()
	defer p.mu.Unlock()
	e.countQueued(p, -len(p.queue)-len(p.ops))
	p.queue, p.ops = nil, nil
}

// watchConnected notices the end of processes of other jobs.
func (e *Engine) watchConnected() {
	c := &e.connected
	for !e.stop.Load() {
		time.Sleep(watchOthers)
		c.mu.Lock()
		for i, p := range c.slots {
			n := e.Size + i
			if p == nil || p.told {
				continue
			}
			entry := e.Job.Rank(n)
			w := watched{rank: n, pid: entry.PID(), startTime: entry.StartTime, fd: -1}
			if atomic.LoadUint32(&entry.Exit) != 0 || sys.Look(w.pid, w.startTime) == sys.Ended {
				p.told = true
				e.ended(n, func() {})
			}
		}
		c.mu.Unlock()
	}
}

// watchOthers is how often the watcher looks for the end of processes of other jobs.
const watchOthers = 50 * time.Millisecond

// Jobs returns the number of other jobs that this process is connected to.
func (e *Engine) Jobs() int {
	e.connected.mu.Lock()
	defer e.connected.mu.Unlock()
	return len(e.connected.jobs)
}
