package agent

import (
	"maps"
	"time"

	"gormapy/gocore/log"
)

// # A network that is divided
//
// A link that the kernel gives up because the other host does not answer is cut: the host may
// have crashed, or both may live and not reach each other. So that the ranks of both do not go
// on, each without the other, the agents agree who leaves the job:
//
//	an agent whose link is cut,         tells all others which two nodes are cut from one
//	or that hears of two nodes that     another, and sends a probe over each link that
//	are: the first time                 it has
//	half of settleTime after the        takes the links for cut whose probes are not
//	probes have been sent               acknowledged, and tells that
//	another half later                  decides, and tells whom it has evicted; these and the others
//	                                    evict them, too
//
// The decision follows from the cuts alone (function evict): as long as two nodes that are left
// are cut from one another, that one leaves which is cut from the most ranks. Where a network is
// divided into two parts, each agent knows all cuts between the parts, because it has heard of
// those of its own part. So both sides evict the nodes of the part with fewer ranks, or, of
// equal parts, of that without rank 0. If the agents of a part do not know the same cuts, more nodes
// leave than have to; those who go on reach each other in any case.
//
// A link on which something comes that the other node has not sent (seal.ErrForged) is cut, too: these nodes
// can't communicate either. The agent that has found it says so, and the reason goes with the cuts and with the decision, so
// that nobody is told of a network that is divided. The node at the other end of that link sees only its end; it
// learns the reason if another one tells it.
//
// The ranks of an evicted node end with exit status 1 (job.Segment.CutOff). For the others it has
// left the job.

// divided is what an agent knows of a network that may be divided.
type divided struct {
	cuts     map[[2]int]bool // pairs of nodes, the lower first
	forged   map[[2]int]bool // those of them between which something was forged
	probe    int             // counts the times that links were to be probed
	begun    time.Time       // when the first cut became known; zero: there is nothing to decide
	checked  bool            // silent links have been taken for cut
	decideAt time.Time       // once they have been
}

// settleTime is how long the agents take to decide, of the time without an answer after which a
// host has left the job.
func settleTime(patience time.Duration) time.Duration { return max(patience/5, 100*time.Millisecond) }

// noteCut notes that two nodes are cut from one another.
func (a *Agent) noteCut(x, y int, forged bool) {
	if x == y || a.hasLeft(x) || a.hasLeft(y) {
		return
	}
	pair := [2]int{min(x, y), max(x, y)}
	if a.cuts == nil {
		a.cuts, a.forged = map[[2]int]bool{}, map[[2]int]bool{}
	}
	a.forged[pair] = a.forged[pair] || forged
	if a.cuts[pair] {
		return
	}
	if forged {
		log.Infof("agent", "what comes from one of the nodes %d and %d to the other is forged", x, y)
	} else {
		log.Infof("agent", "nodes %d and %d don't reach each other", x, y)
	}
	a.cuts[pair] = true
	if a.begun.IsZero() {
		a.probe++
		a.begun, a.checked = time.Now(), false
	}
}

// hasLeft reports whether a node has left the job for this agent.
func (a *Agent) hasLeft(node int) bool {
	l := a.link(node)
	return l != nil && l.lost
}

// settling decides who leaves, when it is time. It reports whether it will have to be called
// again.
func (a *Agent) settling() bool {
	now := time.Now()
	switch {
	case a.begun.IsZero():
		return false
	case a.checked && now.After(a.decideAt):
		a.decide()
		return false
	case a.checked || !a.probed(now):
		return true
	}
	// This process may have been stopped meanwhile: the kernel has noted what was acknowledged.
	a.checked, a.decideAt = true, now.Add(a.settle/2)
	for _, l := range a.links {
		if !l.over && a.net.Silent(l.peer, a.settle/2) {
			a.noteCut(a.seg.Node(), l.node, false)
		}
	}
	return true
}

// probed reports whether all links have had half of settle to acknowledge their probes. A link that
// has no room for one has as long from the beginning.
func (a *Agent) probed(now time.Time) bool {
	for _, l := range a.links {
		since := a.begun
		switch {
		case l.over || l.lost:
			continue
		case l.probed == a.probe:
			since = l.probedAt
		}
		if now.Sub(since) < a.settle/2 {
			return false
		}
	}
	return true
}

// decide has nodes leave so that those who are left reach each other.
func (a *Agent) decide() {
	a.begun = time.Time{}
	cuts, of := a.cuts, a.forged
	a.cuts, a.forged = nil, nil
	maps.DeleteFunc(cuts, func(c [2]int, _ bool) bool { return a.hasLeft(c[0]) || a.hasLeft(c[1]) })
	ranks := make([]int, a.seg.Nodes())
	for r := range a.seg.Ranks {
		ranks[a.seg.NodeOf(r)]++
	}
	for _, node := range evict(cuts, ranks) {
		why := 0
		for c := range cuts {
			if of[c] && (c[0] == node || c[1] == node) {
				why = forged
			}
		}
		for _, l := range a.links {
			if !l.over && !l.lost {
				l.send(msgEvicted, a.seg.RanksOf(node)[0], 0, why, nil) // without room: that agent decides itself
			}
		}
		a.evicted(node, why == forged)
	}
}

// evict returns the nodes that have to leave so that no two of those who stay are cut from one
// another. ranks has the number of ranks of each node; rank 0 is on node 0.
func evict(cuts map[[2]int]bool, ranks []int) (leave []int) {
	cuts = maps.Clone(cuts)
	weight := func(node int) int {
		w := 2 * ranks[node]
		if node == 0 {
			w++
		}
		return w
	}
	for len(cuts) > 0 {
		from := make([]int, len(ranks)) // by node: what it is cut from
		for c := range cuts {
			from[c[0]] += weight(c[1])
			from[c[1]] += weight(c[0])
		}
		worst := 0
		for node := range from {
			if from[node] > from[worst] || from[node] == from[worst] && weight(node) <= weight(worst) {
				worst = node
			}
		}
		leave = append(leave, worst)
		maps.DeleteFunc(cuts, func(c [2]int, _ bool) bool { return c[0] == worst || c[1] == worst })
	}
	return leave
}

// evicted has a node leave the job.
func (a *Agent) evicted(node int, forged bool) {
	if node != a.seg.Node() {
		if l := a.link(node); l != nil && !l.lost {
			if !l.over {
				a.late = append(a.late, l.peer)
			}
			l.forged = forged
			a.lose(l)
		}
		return
	}
	a.seg.CutOff(forged)
	a.seg.RingRanks()
}
