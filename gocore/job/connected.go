package job

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// # Processes of other jobs
//
// A process can be connected to processes of other jobs on this host (MPI's dynamic processes). It maps the segment of
// each such job, and numbers the processes itself, from the size of its own job on: these numbers are valid in this
// process alone, and take the place of world ranks in the layers above. Rank returns the entry of a world rank or of
// such a number.
//
// Messages to a process of another job go through a link: a memfd that the sender makes, with a ring for its messages
// (package fabric/shm). The sender announces it in one of the receiver's Announcements:
//
//  1. by compare-and-swap of Claim from 0 to its pid;
//  2. it stores FD+1 in Ready;
//  3. it stores 1 in Announced and wakes the receiver's progress engine.
//
// The receiver, under its poll lock, whenever it finds 1 in Announced, stores 0 there and then looks at all entries. One that is Ready it opens,
// as /proc/Claim/fd/(Ready-1); then it stores 0 in Ready and in Claim, in this order. It does the same with entries of
// processes that have ended, whether they are Ready or not. The sender keeps its descriptor until Ready is 0, or Claim is not its pid any more. If no entry is
// free the sender does step 3 all the same, since entries of the dead may be found, and tries again later.

// MaxConnected bounds the processes of other jobs that a process is connected to at a time.
const MaxConnected = 1024

// Announcement tells a process of a link to it.
type Announcement struct {
	Claim uint32 // pid of the sender; 0: free
	Ready uint32 // 1 + its descriptor of the link; 0: not announced yet
}

// Announcements is how many links to one process can be announced at a time.
const Announcements = 14

// alive is sys.Alive; the interleaving test replaces it.
var alive = sys.Alive

// nobody is the entry of a number that names no process: of one that has ended.
var nobody = &Rank{State: StateFinalized, Exit: 1, Ended: 1}

// Rank returns the entry of a world rank, or of the number of a connected process.
func (s *Segment) Rank(r int) *Rank {
	if r < len(s.Ranks) {
		return &s.Ranks[r]
	}
	if other := s.connected[r-len(s.Ranks)].Load(); other != nil {
		return other
	}
	return nobody
}

// Own reports whether r is a world rank of this job.
func (s *Segment) Own(r int) bool { return r < len(s.Ranks) }

// SetConnected sets the entry of number r, which is not a world rank. With nil r names no process.
func (s *Segment) SetConnected(r int, entry *Rank) {
	s.connected[r-len(s.Ranks)].Store(entry)
	if entry != nil {
		atomic.StoreUint32(&s.Head.Connected, 1)
	}
}

// HasConnected reports whether a rank of the job has been connected to a process of another one.
func (s *Segment) HasConnected() bool { return atomic.LoadUint32(&s.Head.Connected) != 0 }

// Opener returns the process and its descriptor by which other processes of this user open the segment.
func (s *Segment) Opener() (pid, fd int) {
	if s.shm.FD >= 0 {
		return os.Getpid(), s.shm.FD
	}
	_, _ = fmt.Sscanf(s.origin, "/proc/%d/fd/%d", &pid, &fd) // boot has checked it
	return pid, fd
}

// Announce claims an announcement of r for a link that is descriptor fd of this process, and returns it; nil if none is
// free now.
func (r *Rank) Announce(fd int) *Announcement {
	a := announce(r.Announcements[:], &r.Announced, os.Getpid(), fd)
	r.RingProgress()
	r.Ring()
	return a
}

// announce is Announce by process pid without the bells.
func announce(list []Announcement, announced *uint32, pid, fd int) (a *Announcement) {
	for i := range list {
		if c := &list[i]; atom.CAS32(&c.Claim, 0, uint32(pid)) {
			a = c
			atom.Store32(&a.Ready, uint32(fd)+1)
			break
		}
	}
	atom.Store32(announced, 1)
	return a
}

// Taken reports whether the receiver has opened the link of an announcement of process pid, or can't.
func (a *Announcement) Taken(pid int) bool {
	return atom.Load32(&a.Ready) == 0 || atom.Load32(&a.Claim) != uint32(pid)
}

// Done frees the announcement.
func (a *Announcement) Done() {
	atom.Store32(&a.Ready, 0)
	atom.Store32(&a.Claim, 0)
}

// Sender returns the process and its descriptor of the link; ok is false if there is none to open. It frees the announcement of
// a process that has ended.
func (a *Announcement) Sender() (pid, fd int, ok bool) {
	pid = int(atom.Load32(&a.Claim))
	switch {
	case pid == 0:
		return 0, 0, false
	case !alive(pid): // so it writes nothing any more
		a.Done()
		return 0, 0, false
	}
	ready := atom.Load32(&a.Ready)
	return pid, int(ready) - 1, ready != 0
}

// SetParent records, for the ranks of a job that another one starts, the port of the process that has started it.
func (s *Segment) SetParent(port string) error {
	if len(port) > len(s.Head.Parent) {
		return fmt.Errorf("the name of the parent's port has %d characters, %d are possible", len(port), len(s.Head.Parent))
	}
	copy(s.Head.Parent[:], port)
	return nil
}

// Parent returns what SetParent has set, "" if the job was not started by another one.
func (s *Segment) Parent() string { return strings.TrimRight(string(s.Head.Parent[:]), "\x00") }
