package job

import (
	"math/bits"
	"net/netip"
	"sync/atomic"
	"time"

	"gormapy/gocore/sys/atom"
)

// # Several nodes
//
// A node is a set of ranks that share memory: those of one host, or of one of its
// containers. Each node has a segment with entries for all ranks of the job. Those of
// its own ranks are written as the package comment says. Those of the others are
// shadows: the agent of this node (package agent) writes there what the agents of the
// other nodes tell it of State, Gen, Claim, Exit, ExitStatus, Ended and Card; all other
// words of a shadow are unused. A launcher of all nodes writes Exit, ExitStatus and Ended there, too. Rings and blocks of far ranks are not used either, and
// their memory is never touched.
//
// A mail for a far rank lies in its slot as in an outbox. The sender rings the agent,
// which takes it as the receiver would, and sends it to the receiver's node, where the
// agent puts it into the slot as the sender would.

// CutOff records that this node is cut off from the larger part of the job, because hosts don't reach each other
// or because what arrives there is forged: its ranks have to end. The agent calls it, and then RingRanks.
func (s *Segment) CutOff(forged bool) {
	why := cutUnreached
	if forged {
		why = cutForged
	}
	atomic.CompareAndSwapUint32(&s.Head.CutOff, 0, why)
}

// The values of Head.CutOff.
const (
	cutUnreached uint32 = iota + 1
	cutForged
)

// CutByForgery reports whether CutOff has been called because of what was forged.
func (s *Segment) CutByForgery() bool { return atomic.LoadUint32(&s.Head.CutOff) == cutForged }

// HasCutOff reports whether CutOff has been called.
func (s *Segment) HasCutOff() bool { return atomic.LoadUint32(&s.Head.CutOff) != 0 }

// Flags of shadows.
const (
	// NodeLeft: there will be no news of the rank, because its node has left the job.
	NodeLeft uint32 = 1 << (30 + iota)
	// Unreachable: the node has left before the rank had ended or finalized.
	Unreachable
	// Forged, beside Unreachable: because what came from a node was not what it had sent.
	Forged uint32 = 1 << 29
)

// LostToForgery reports whether the rank's node has left the job because of what was forged on the way.
func (r *Rank) LostToForgery() bool {
	return atomic.LoadUint32(&r.Flags)&(Unreachable|Forged) == Unreachable|Forged
}

// LostToForgeryText says so of a rank, behind its name.
const LostToForgeryText = " can't be reached any more: its host has left the job, because something on the way forges what hosts send each other"

// Nodes returns the number of nodes of the job.
func (s *Segment) Nodes() int { return int(s.Head.Nodes) }

// Node returns the number of this node.
func (s *Segment) Node() int { return int(s.Head.Node) }

// NodeOf returns the number of the node of rank r. Connected processes are on this one.
func (s *Segment) NodeOf(r int) int {
	if !s.Own(r) {
		return s.Node()
	}
	return int(s.Ranks[r].Node)
}

// Local reports whether rank r is on this node.
func (s *Segment) Local(r int) bool { return s.NodeOf(r) == s.Node() }

// RanksOf returns the ranks of a node, in ascending order.
func (s *Segment) RanksOf(node int) (ranks []int) {
	for r := range s.Ranks {
		if s.NodeOf(r) == node {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// SameNode reports whether all these ranks are on one node.
func (s *Segment) SameNode(ranks []int) bool {
	for _, r := range ranks {
		if s.NodeOf(r) != s.NodeOf(ranks[0]) {
			return false
		}
	}
	return true
}

// SetState changes the state of rank r, which is the calling process.
func (s *Segment) SetState(r int, state uint32) {
	atomic.StoreUint32(&s.Ranks[r].State, state)
	if s.Head.Nodes > 1 || state == StateFinalized {
		s.RingAll() // the rank that is the agent may wait for it; others may wait for this rank
	}
}

// SetEnded records that the process of rank r has ended.
func (s *Segment) SetEnded(r int) {
	atomic.StoreUint32(&s.Rank(r).Ended, 1)
	s.RingAgent()
}

// RingAgent makes the node's agent look for what it has to tell the other nodes.
func (s *Segment) RingAgent() {
	if s.Head.Nodes > 1 {
		atom.Add32(&s.Head.AgentBell, 1)
		atom.Wake(&s.Head.AgentBell)
	}
}

// AwaitAgentBell waits until the agent's doorbell has been rung since it had the value
// seen, and returns its value.
func (s *Segment) AwaitAgentBell(seen uint32) uint32 { return await(&s.Head.AgentBell, seen) }

// AwaitNews waits until RingRanks has been called since News had the value seen, and returns
// its value. A segment of one node has no news.
func (s *Segment) AwaitNews(seen uint32) uint32 { return await(&s.Head.News, seen) }

func await(word *uint32, seen uint32) uint32 {
	for {
		if now := atom.Load32(word); now != seen {
			return now
		}
		atom.Wait(word, seen, 10*time.Second)
	}
}

// Status is what the agents tell each other of a rank.
type Status struct {
	PID, State, Gen, Exit uint32
	ExitStatus            int32
	Ended                 uint32
}

// Status returns the status of rank r.
func (s *Segment) Status(r int) Status {
	rk := &s.Ranks[r]
	st := Status{Exit: atomic.LoadUint32(&rk.Exit)} // before ExitStatus
	st.PID, st.State = atomic.LoadUint32(&rk.Claim), atomic.LoadUint32(&rk.State)
	st.Gen, st.Ended = atomic.LoadUint32(&rk.Gen), atomic.LoadUint32(&rk.Ended)
	st.ExitStatus = atomic.LoadInt32(&rk.ExitStatus)
	return st
}

// Shadow writes the status of a rank of another node. The agent calls it, and then
// RingRanks.
func (s *Segment) Shadow(r int, st Status) {
	rk := &s.Ranks[r]
	atomic.StoreUint32(&rk.Claim, st.PID)
	atomic.StoreUint32(&rk.Gen, st.Gen)
	atomic.StoreUint32(&rk.State, st.State)
	if st.Ended != 0 {
		atomic.StoreUint32(&rk.Ended, 1)
	}
	if st.Exit != 0 {
		atomic.StoreInt32(&rk.ExitStatus, st.ExitStatus)
		atomic.StoreUint32(&rk.Exit, 1)
	}
}

// Lose records that the node of rank r, which is not this one, has left the job: the rank
// has ended. The agent calls it, and then RingRanks.
func (s *Segment) Lose(r int, forged bool) {
	rk := &s.Ranks[r]
	flags := NodeLeft
	if forged {
		flags |= Forged
	}
	if st := atomic.LoadUint32(&rk.State); st != StateFinalized && atomic.LoadUint32(&rk.Ended) == 0 {
		flags |= Unreachable
	}
	atomic.OrUint32(&rk.Flags, flags)
	atomic.StoreUint32(&rk.Ended, 1)
}

// The states of the map of nodes in a segment whose leader makes the map after the ranks
// have claimed their places (package boot). They only grow.
const (
	MapNone    uint32 = iota // it is not known yet who is on this node
	MapSeveral               // there are several nodes; the map is being made
	MapOneNode               // all ranks are on this node
	MapDone                  // the map of several nodes is complete
)

// SetMap changes the state of the map, and wakes the ranks that wait for it.
func (s *Segment) SetMap(state uint32) {
	atom.Store32(&s.Head.Map, state)
	atom.Wake(&s.Head.Map)
}

// AwaitMap waits until the state of the map has grown beyond seen, or end, and returns it.
func (s *Segment) AwaitMap(seen uint32, end time.Time) uint32 {
	for {
		state := atom.Load32(&s.Head.Map)
		left := time.Until(end)
		if state > seen || left <= 0 {
			return state
		}
		atom.Wait(&s.Head.Map, state, left)
	}
}

// Claimed returns the ranks that processes have claimed, in ascending order.
func (s *Segment) Claimed() (ranks []int) {
	for r := range s.Ranks {
		if s.Ranks[r].PID() != 0 {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// CountCores sets the number of cores that the node's ranks may use, when all have claimed their
// places and none has begun to work: a launcher may have bound each of them to other cores.
func (s *Segment) CountCores() {
	n := 0
	for i := range s.Head.CoreMask {
		n += bits.OnesCount64(atomic.LoadUint64(&s.Head.CoreMask[i]))
	}
	if n > 0 {
		s.Head.Cores = uint32(n)
	}
}

// Belong gives the segment the id and the secret of its job.
func (s *Segment) Belong(id string, secret []byte) {
	copy(s.Head.ID[:], id)
	copy(s.Head.Secret[:], secret)
}

// SetNodes writes the map: the number of the node of each rank, of this node, and of hosts.
func (s *Segment) SetNodes(nodes []int, node, hosts int) {
	for r, n := range nodes {
		s.Ranks[r].Node = uint32(n)
		s.Head.Nodes = max(s.Head.Nodes, uint32(n)+1)
	}
	s.Head.Node, s.Head.Hosts = uint32(node), uint32(hosts)
}

// SetAddress records the address of this node that a link of its agent uses. The first one
// stays.
func (s *Segment) SetAddress(a netip.Addr) {
	if atomic.LoadUint32(&s.Head.HasAddress) == 0 {
		s.Head.Address = a.As16()
		atomic.StoreUint32(&s.Head.HasAddress, 1)
	}
}

// Address returns the address that SetAddress has recorded, no valid one if there is none yet.
func (s *Segment) Address() netip.Addr {
	if atomic.LoadUint32(&s.Head.HasAddress) == 0 {
		return netip.Addr{}
	}
	return netip.AddrFrom16(s.Head.Address).Unmap()
}
