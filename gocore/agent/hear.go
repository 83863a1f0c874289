package agent

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
)

// Deliver implements fabric.Sink.
func (a *Agent) Deliver(peer int, h *fabric.Header, payload []byte) {
	node := a.seg.NodeOf(peer)
	from, l := int(h.A), a.link(node)
	if h.A >= uint64(len(a.seg.Ranks)) || l == nil {
		return
	}
	if h.Aux == msgAgent && len(payload) > 0 && len(payload) <= fabric.CardBytes {
		a.heard(l, peer, from, payload)
	}
	if l.peer != peer || l.lost {
		return // it was the agent before, or its node was evicted
	}
	switch {
	case h.Aux == msgCut && h.B < uint64(len(a.seg.Ranks)):
		a.noteCut(a.seg.NodeOf(from), a.seg.NodeOf(int(h.B)), h.Tag == forged)
	case h.Aux == msgEvicted:
		a.evicted(a.seg.NodeOf(from), h.Tag == forged)
	case h.Aux == msgAbort:
		l.aborted = true
		a.seg.Abort(from, int(h.Tag))
	case h.Aux == msgClaim && len(payload) == 8:
		l.answer = a.seg.ClaimedElsewhere(binary.LittleEndian.Uint64(payload), node)
	case h.Aux == msgVerdict:
		l.verdict = uint32(h.Tag)
	case a.seg.NodeOf(from) != node:
	case h.Aux == msgStatus && len(payload) == statusBytes:
		var st job.Status
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&st)), statusBytes), payload)
		a.seg.Shadow(from, st)
		a.seg.RingRanks()
	case h.Aux == msgCard && len(payload) > 0 && len(payload) <= fabric.CardBytes:
		_ = a.dirs[from].Publish(payload) // it has this length
		a.seg.RingRanks()
	case h.Aux == msgMail && h.B < uint64(len(a.seg.Ranks)) && a.seg.Local(int(h.B)) && len(payload) <= fabric.MailBytes:
		_ = a.dirs[from].Mail(int(h.B), payload)
	}
}

// Place implements fabric.Sink.
func (a *Agent) Place(int, *fabric.Header, int) unsafe.Pointer { return nil }

// Completed implements fabric.Sink. There are no one-sided operations.
func (a *Agent) Completed(uint64, error) {}

// heard handles the message of peer, on the node of l, that rank is the agent of its node.
func (a *Agent) heard(l *link, peer, rank int, card []byte) {
	switch of := a.link(a.seg.NodeOf(rank)); {
	case of == nil: // this node
	case rank == peer && of.lost:
		a.late = append(a.late, peer)
	case rank == peer && of.peer != peer:
		a.adopt(of, rank, card)
	case of == l && l.peer == peer && rank != peer: // its successor: see Broken
		a.seg.SetAgent(rank, card)
	case of != l && l.peer == peer && of.over && !of.lost && of.peer != rank && atomic.LoadUint32(&a.seg.Ranks[rank].Ended) == 0:
		a.adopt(of, rank, card) // it can't know this agent, if both nodes lost theirs
	}
}

// adopt makes rank the other end of a link, and tells it everything.
func (a *Agent) adopt(l *link, rank int, card []byte) {
	log.Infof("agent", "rank %d is now the agent of node %d, in place of rank %d", rank, l.node, l.peer)
	card = bytes.Clone(card)
	a.seg.SetAgent(rank, card)
	l.news = noNews()
	for _, r := range a.seg.RanksOf(l.node) { // the mails may be lost: the last ones are sent again
		a.dirs[r], a.mails[r] = a.seg.Directory(r), 0
	}
	if err := a.connect(l, rank, card); err != nil {
		log.Errorf("agent", "connect to rank %d, the agent of node %d: %v", rank, l.node, err)
		a.lose(l)
	}
}
