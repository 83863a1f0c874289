package job

import (
	"os"
	"sync/atomic"

	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// Claim makes this process rank r of the job. It fails if another process has claimed
// the rank before; held is then the pid of that process.
func (s *Segment) Claim(r int) (held int, ok bool) {
	me := uint32(os.Getpid())
	rk := &s.Ranks[r]
	if !atomic.CompareAndSwapUint32(&rk.Claim, 0, me) {
		return int(atomic.LoadUint32(&rk.Claim)), false
	}
	rk.StartTime = sys.StartTime(int(me))
	for _, cpu := range sys.Allowed() {
		if cpu/64 < len(s.Head.CoreMask) {
			atomic.OrUint64(&s.Head.CoreMask[cpu/64], 1<<(cpu%64))
		}
	}
	s.SetState(r, StateClaimed)
	return int(me), true
}

// Abort records that rank r ends the job with the exit status code; only the
// first call counts. It wakes all ranks, and reports whether this was the first call.
func (s *Segment) Abort(r int, code int) bool {
	h := s.Head
	first := atomic.CompareAndSwapUint32(&h.AbortClaim, 0, uint32(r+1))
	if first {
		atomic.StoreInt32(&h.AbortCode, int32(code))
		atomic.StoreUint32(&h.AbortState, 1)
	}
	s.RingAll()
	return first
}

// ClaimTimeout reports whether the calling rank is the one of its node that says, at a
// time-out, what the node's ranks do.
func (s *Segment) ClaimTimeout() bool {
	return atomic.CompareAndSwapUint32(&s.Head.TimedOut, 0, 1)
}

// HasTimedOut reports whether a rank of this node has claimed that.
func (s *Segment) HasTimedOut() bool { return atomic.LoadUint32(&s.Head.TimedOut) != 0 }

// Aborted returns the rank that aborted the job and the exit status that it set.
func (s *Segment) Aborted() (rank, code int, yes bool) {
	if atomic.LoadUint32(&s.Head.AbortState) == 0 {
		return 0, 0, false
	}
	return int(atomic.LoadUint32(&s.Head.AbortClaim)) - 1, int(atomic.LoadInt32(&s.Head.AbortCode)), true
}

// Exited records, for the launcher, that rank r ended with wait status ws.
func (s *Segment) Exited(r int, ws int) {
	s.SetExited(r, ws)
	s.RingAll()
}

// SetExited is Exited without waking anybody.
func (s *Segment) SetExited(r int, ws int) {
	atomic.StoreUint32(&s.Ranks[r].Ended, 1)
	atomic.StoreInt32(&s.Ranks[r].ExitStatus, int32(ws))
	atomic.StoreUint32(&s.Ranks[r].Exit, 1)
}

// RingAll wakes every sleeping thread and progress engine of the node's ranks, and the
// node's agent.
func (s *Segment) RingAll() {
	s.RingRanks()
	s.RingAgent()
}

// RingRanks wakes every sleeping thread and progress engine of the node's ranks.
func (s *Segment) RingRanks() {
	for i := range s.Ranks {
		s.Ranks[i].Ring()
		s.Ranks[i].RingProgress()
	}
	if s.Head.Nodes > 1 {
		atom.Add32(&s.Head.News, 1)
		atom.Wake(&s.Head.News)
	}
}
