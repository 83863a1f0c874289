package job

import (
	"bytes"
	"sync/atomic"

	"gormapy/gocore/sys/atom"
)

// # Who is the agent
//
// A segment has the agent of each node, with its card, so that any rank of this node can take
// the place of its agent, and connect to the others. The entry of node k lies in the record of
// rank k: 1 + the rank of the agent, or 0. The card of an agent lies in the record of its own
// rank, and is written once, before the entry. The entry of this node is changed by
// compare-and-swap, by a rank that takes the place of one whose process has ended; those of
// the others by this node's agent.

// SetAgent records that rank is the agent of its node, and its card.
func (s *Segment) SetAgent(rank int, data []byte) {
	c := &s.Ranks[rank].AgentCard
	if atom.Load32(&c.n) == 0 {
		atom.Store32(&c.n, uint32(copy(c.data[:], data)))
	}
	atomic.StoreUint32(&s.Ranks[s.NodeOf(rank)].Agent, uint32(rank)+1)
	s.RingAgent()
}

// Agent returns the rank that is the agent of a node, and its card; -1 if none is known.
func (s *Segment) Agent(node int) (rank int, data []byte) {
	rank = int(atomic.LoadUint32(&s.Ranks[node].Agent)) - 1
	if rank < 0 || rank >= len(s.Ranks) {
		return -1, nil
	}
	c := &s.Ranks[rank].AgentCard
	return rank, bytes.Clone(c.data[:min(int(atom.Load32(&c.n)), len(c.data))])
}

// Heir returns the rank that is to take the place of this node's agent, whose process has
// ended, and that agent's rank. The heir is the lowest rank that lives and has not finalized.
// ok is false if the agent lives, or if there is no such rank.
func (s *Segment) Heir() (heir, agent int, ok bool) {
	agent, _ = s.Agent(s.Node())
	if agent < 0 || !s.ended(agent) {
		return 0, 0, false
	}
	for _, r := range s.RanksOf(s.Node()) {
		if atomic.LoadUint32(&s.Ranks[r].State) == StateReady && !s.ended(r) {
			return r, agent, true
		}
	}
	return 0, 0, false
}

func (s *Segment) ended(r int) bool {
	return atomic.LoadUint32(&s.Ranks[r].Ended)|atomic.LoadUint32(&s.Ranks[r].Exit) != 0
}

// TakeOver makes rank heir the agent of this node in place of agent. It reports whether no
// other rank was faster.
func (s *Segment) TakeOver(heir, agent int) bool {
	return atomic.CompareAndSwapUint32(&s.Ranks[s.Node()].Agent, uint32(agent)+1, uint32(heir)+1)
}

// GiveBack undoes TakeOver: heir could not become the agent.
func (s *Segment) GiveBack(heir, agent int) {
	atomic.CompareAndSwapUint32(&s.Ranks[s.Node()].Agent, uint32(heir)+1, uint32(agent)+1)
}
