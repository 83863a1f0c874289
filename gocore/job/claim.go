package job

import (
	"sync/atomic"
	"time"

	"gormapy/gocore/sys/atom"
)

// # Who prints a traceback
//
// Of the ranks whose program fails in the same place only one prints a traceback. The
// first of a node claims it by putting the place's hash into ErrorHash. On several nodes it
// then waits for the verdict of its agent, which asks the others (package agent). An agent
// that is asked notes the hash in its own segment, where later ranks find it; it denies the
// claim if a rank of its node has claimed the same before. Of claims that are made at the
// same time, that of the node with the lowest number is granted: a node that grants it knows
// that its own is denied, and does not need the answer, since the other node's processes may
// end before it is sent. A claim that is not answered in claimTime counts as granted: twice is
// better than not at all.

// claimTime bounds how long a rank that has failed waits for the other nodes.
const claimTime = 5 * time.Second

// The verdicts on a node's claim.
const (
	ClaimPending uint32 = iota
	ClaimGranted
	ClaimDenied
)

// errorWord is the value of ErrorHash for a hash that a rank of this node, or of another
// one, has claimed.
func errorWord(hash uint64, here bool) uint64 {
	word := hash<<2 | 2
	if here {
		word |= 1
	}
	return word
}

// ClaimError reports whether the calling rank is the first of the job to claim this hash, of
// up to 62 bits. Only one hash can be claimed; of others it returns true.
func (s *Segment) ClaimError(hash uint64) bool {
	h := s.Head
	if !atomic.CompareAndSwapUint64(&h.ErrorHash, 0, errorWord(hash, true)) {
		return atomic.LoadUint64(&h.ErrorHash)|1 != errorWord(hash, true)
	}
	if h.Nodes <= 1 {
		return true
	}
	s.RingAgent()
	for end := time.Now().Add(claimTime); ; {
		verdict, left := atom.Load32(&h.ErrorVerdict), time.Until(end)
		if verdict != ClaimPending || left <= 0 {
			return verdict != ClaimDenied
		}
		atom.Wait(&h.ErrorVerdict, ClaimPending, left)
	}
}

// ClaimedError returns the hash that a rank of this node has claimed, and the verdict.
func (s *Segment) ClaimedError() (hash uint64, verdict uint32, yes bool) {
	word := atomic.LoadUint64(&s.Head.ErrorHash)
	return word >> 2, atom.Load32(&s.Head.ErrorVerdict), word&1 != 0
}

// JudgeError tells the rank of this node that has claimed a hash the verdict.
func (s *Segment) JudgeError(verdict uint32) {
	atom.Store32(&s.Head.ErrorVerdict, verdict)
	atom.Wake(&s.Head.ErrorVerdict)
}

// ClaimedElsewhere returns this node's answer to the claim of a hash by another node.
func (s *Segment) ClaimedElsewhere(hash uint64, node int) uint32 {
	if atomic.CompareAndSwapUint64(&s.Head.ErrorHash, 0, errorWord(hash, false)) {
		return ClaimGranted
	}
	switch own, verdict, yes := s.ClaimedError(); {
	case !yes || own != hash || verdict == ClaimDenied:
	case verdict == ClaimGranted || s.Node() < node:
		return ClaimDenied
	default:
		s.JudgeError(ClaimDenied)
	}
	return ClaimGranted
}
