package mpi

import (
	"sync"
	"sync/atomic"
	"time"

	"gormapy/gocore/agent"
	"gormapy/gocore/boot"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
)

// nodeAgent is the agent of this node, if this rank is it.
type nodeAgent struct {
	mu    sync.Mutex
	agent *agent.Agent
	over  bool // this rank has finalized: it does not become the agent any more
}

// nodesChanged is called when there is news of the nodes.
func (n *process) nodesChanged() {
	if n.seg.HasCutOff() {
		n.monitor.CutOff()
	}
	n.succeed()
}

// againTime is the pause after which a rank that could not become the agent of its node tries again.
const againTime = 100 * time.Millisecond

// succeed makes this rank the agent of its node, if it is the heir of one that has ended.
func (n *process) succeed() {
	heir, before, ok := n.seg.Heir()
	if !ok || heir != n.rank {
		return
	}
	n.agent.mu.Lock()
	defer n.agent.mu.Unlock()
	if n.agent.over || !n.seg.TakeOver(n.rank, before) {
		return
	}
	a, err := boot.Succeed(n.seg, n.rank)
	if err != nil {
		log.Errorf("mpi", "rank %d can't take the place of rank %d, which was the agent of this node and has ended: %v", n.rank, before, err)
		n.seg.GiveBack(n.rank, before)
		time.AfterFunc(againTime, n.seg.RingRanks) // this rank, or the next heir, tries again
		return
	}
	log.Infof("mpi", "rank %d is now the agent of this node, in place of rank %d", n.rank, before)
	n.agent.agent = a
}

// take returns the agent, nil if this rank is not it. It will not become the agent any more.
func (n *nodeAgent) take() *agent.Agent {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	return n.agent
}

// handOverTime is how long an agent that has finalized waits for the other ranks of its node
// before it hands over: at the end of a job all finalize.
const handOverTime = int64(time.Second)

// awaitNode waits until no rank of this node needs its agent any more, or another one is the
// agent. To have that, and so that no rank waits for this one in vain, it tells after handOverTime
// that this rank has ended.
func (n *process) awaitNode() error {
	done := func() bool {
		agent, _ := n.seg.Agent(n.seg.Node())
		return agent != n.rank || n.nodeDone()
	}
	if done() {
		return nil
	}
	switch now := job.Now(); {
	case finalizing.handOver == 0:
		finalizing.handOver = now + handOverTime
	case now >= finalizing.handOver:
		n.seg.SetEnded(n.rank)
		n.seg.RingAll()
	}
	return n.eng.Wait(finalizing.why, done, nil)
}

// nodeDone reports whether no rank of this node needs its agent any more.
func (n *process) nodeDone() bool {
	for _, r := range n.seg.RanksOf(n.seg.Node()) {
		if !n.eng.Finalized(r) && atomic.LoadUint32(&n.seg.Ranks[r].Ended) == 0 && atomic.LoadUint32(&n.seg.Ranks[r].Exit) == 0 {
			return false
		}
	}
	return true
}
