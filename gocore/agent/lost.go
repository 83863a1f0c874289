package agent

import (
	"errors"
	"sync/atomic"
	"time"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/seal"
)

// Broken implements fabric.Sink. If the agent's process has ended another rank of the node may
// take over; else the node has left.
func (a *Agent) Broken(peer int, err error) {
	l := a.link(a.seg.NodeOf(peer))
	if l.peer != peer || l.over || l.lost {
		return
	}
	log.Infof("agent", "the link of node %d to node %d has ended: %v", a.seg.Node(), l.node, err)
	l.over, l.until = true, time.Now().Add(heirTime)
	if a.adoptKnown(l) {
		return
	}
	switch {
	case errors.Is(err, seal.ErrForged):
		log.Errorf("agent", "what comes to this node %d from node %d is forged: %v. The nodes don't use this connection any more, and one of them will have to leave the job", a.seg.Node(), l.node, err)
		a.noteCut(a.seg.Node(), l.node, true)
		l.until = time.Now().Add(a.settle + heirTime)
	case !errors.Is(err, fabric.ErrPeerGone) && !errors.Is(err, fabric.ErrDisconnected):
		a.noteCut(a.seg.Node(), l.node, false) // its host does not answer
		l.until = time.Now().Add(a.settle + heirTime)
	case !a.hasHeir(l.node, l.peer):
		a.lose(l)
	}
}

// adoptKnown connects a link that is over to the node's new agent, if it is known already.
func (a *Agent) adoptKnown(l *link) bool {
	rank, card := a.seg.Agent(l.node)
	if rank < 0 || rank == l.peer || len(card) == 0 || atomic.LoadUint32(&a.seg.Ranks[rank].Ended) != 0 {
		return false
	}
	a.adopt(l, rank, card)
	return true
}

// hasHeir reports whether a rank of a node may take over from the agent there.
func (a *Agent) hasHeir(node, agent int) bool {
	for _, r := range a.seg.RanksOf(node) {
		if st := a.seg.Status(r); r != agent && st.State == job.StateReady && st.Ended|st.Exit == 0 {
			return true
		}
	}
	return false
}

// lose records that the node of a link has left the job.
func (a *Agent) lose(l *link) {
	l.over, l.lost = true, true
	for _, r := range a.seg.RanksOf(l.node) {
		a.seg.Lose(r, l.forged)
	}
	a.seg.RingRanks()
}

// waiting gives up the nodes that have had no agent for too long. It reports whether there
// are others that have none, or that may be cut off.
func (a *Agent) waiting() bool {
	some := a.settling()
	for _, l := range a.links {
		switch {
		case !l.over || l.lost || a.adoptKnown(l):
		case time.Now().After(l.until):
			a.giveUp(l)
			some = some || !l.lost
		default:
			some = true
		}
	}
	return some
}

// The states of link.there: what has been found of an agent that has no successor.
const (
	unasked int32 = iota
	asking
	refused  // nobody listens where it did
	answered // somebody does, or nothing comes back
)

// askTime bounds how long that takes.
const askTime = time.Second

// giveUp gives up a node that has had no agent for heirTime. If nobody listens any more where its
// agent did, its host says that the process has ended, and the node has left the job. Otherwise
// both may live and have lost only the connection: the agents agree who leaves.
func (a *Agent) giveUp(l *link) {
	switch l.there.Load() {
	case unasked:
		_, card := a.seg.Agent(l.node)
		l.there.Store(asking)
		a.work.Add(1)
		go func() {
			defer a.work.Done()
			found := answered
			if tcp.Refused(card, askTime) {
				found = refused
			}
			l.there.Store(found)
			a.rouse()
		}()
	case asking:
	case answered:
		a.noteCut(a.seg.Node(), l.node, false)
		l.until = time.Now().Add(a.settle + heirTime)
		l.there.Store(refused) // that is enough time to decide
	default:
		a.lose(l)
	}
}
