package agent

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
)

// link is what this agent has told the one of another node.
type link struct {
	node     int
	peer     int // the rank that is the agent of the node
	ep       fabric.Endpoint
	over     bool         // the connection has ended
	until    time.Time    // if it is over: until then another rank of the node may take over
	there    atomic.Int32 // see giveUp
	lost     bool         // the node has left the job
	forged   bool         // because something was forged
	probed   int          // the last probe that was sent
	probedAt time.Time

	news
	mails   []mail
	verdict uint32 // the answer to this node's claim of a traceback
	answer  uint32 // what is to be answered to the other one's claim
}

// news is what an agent has been told. Another one that takes its place is told all again.
type news struct {
	agents  map[int]int // by node: the rank of its agent, plus 1
	told    map[int]job.Status
	cards   map[int]bool
	aborted bool
	asked   bool // for the verdict on this node's claim
	cuts    map[[2]int]bool
}

func noNews() news {
	return news{agents: map[int]int{}, told: map[int]job.Status{}, cards: map[int]bool{}, cuts: map[[2]int]bool{}}
}

type mail struct {
	from, to int
	data     []byte
}

// forged is why two nodes are cut, or one is evicted, in Header.Tag: what came to one of them was not what had been
// sent. 0 is that they don't reach each other.
const forged = 1

// The messages, in Header.Aux. A and B have the ranks, Tag the exit status of an abort, or forged.
const (
	msgStatus uint32 = iota + 1
	msgCard
	msgMail
	msgAbort
	msgClaim
	msgVerdict
	msgAgent
	msgCut
	msgProbe
	msgEvicted
)

// tellAll tells every link what it has not been told, and reports whether nothing is left.
func (a *Agent) tellAll() (done bool) {
	a.collectMails()
	done = true
	for _, l := range a.links {
		if !l.over && !a.tell(l) {
			done = false
		}
	}
	a.judge()
	return done
}

// judge tells the rank of this node that has claimed a traceback what the other nodes say.
func (a *Agent) judge() {
	if _, verdict, yes := a.seg.ClaimedError(); !yes || verdict != job.ClaimPending {
		return
	}
	verdict := job.ClaimGranted
	for _, l := range a.links {
		switch {
		case l.verdict == job.ClaimDenied:
			a.seg.JudgeError(job.ClaimDenied)
			return
		case l.verdict == job.ClaimPending && !l.lost:
			verdict = job.ClaimPending
		}
	}
	if verdict != job.ClaimPending {
		a.seg.JudgeError(verdict)
	}
}

// collectMails takes the mails of local ranks for far ones.
func (a *Agent) collectMails() {
	for to, dir := range a.dirs {
		n := dir.Mails()
		if n == a.mails[to] {
			continue
		}
		a.mails[to] = n
		for _, from := range a.local {
			if data := dir.Mailed(from); data != nil {
				if l := a.link(a.seg.NodeOf(to)); l != nil {
					l.mails = append(l.mails, mail{from, to, data})
				}
			}
		}
	}
}

func (a *Agent) link(node int) *link {
	for _, l := range a.links {
		if l.node == node {
			return l
		}
	}
	return nil
}

// tell tells a link what it has not been told, and reports whether nothing is left.
func (a *Agent) tell(l *link) (done bool) {
	done = true
	for c := range a.cuts {
		if l.news.cuts[c] {
			continue
		}
		why := 0
		if a.forged[c] {
			why = forged
		}
		if !l.send(msgCut, a.seg.RanksOf(c[0])[0], a.seg.RanksOf(c[1])[0], why, nil) {
			return false
		}
		l.news.cuts[c] = true
	}
	if l.probed != a.probe {
		if !l.send(msgProbe, a.dir.rank, 0, 0, nil) {
			return false
		}
		l.probed, l.probedAt = a.probe, time.Now()
	}
	for node := range a.seg.Nodes() {
		rank, card := a.seg.Agent(node)
		if node == l.node || rank < 0 || l.agents[node] == rank+1 {
			continue
		}
		if len(card) == 0 { // it has only just taken over
			done = done && node != a.seg.Node() // this agent hands over: it leaves when it has told
			continue
		}
		if !l.send(msgAgent, rank, 0, 0, card) {
			return false
		}
		l.agents[node] = rank + 1
	}
	for _, r := range a.local {
		if card := a.dirCard(r); card != nil && !l.cards[r] {
			if !l.send(msgCard, r, 0, 0, card) {
				return false
			}
			l.cards[r] = true
		}
	}
	for ; len(l.mails) > 0; l.mails = l.mails[1:] {
		if m := l.mails[0]; !l.send(msgMail, m.from, m.to, 0, m.data) {
			return false
		}
	}
	if hash, _, yes := a.seg.ClaimedError(); yes && !l.asked {
		if !l.send(msgClaim, a.dir.rank, 0, 0, binary.LittleEndian.AppendUint64(nil, hash)) {
			return false
		}
		l.asked = true
	}
	if l.answer != job.ClaimPending {
		if !l.send(msgVerdict, a.dir.rank, 0, int(l.answer), nil) {
			return false
		}
		l.answer = job.ClaimPending
	}
	if rank, code, yes := a.seg.Aborted(); yes && !l.aborted {
		if !l.send(msgAbort, rank, 0, code, nil) {
			return false
		}
		l.aborted = true
	}
	for _, r := range a.local {
		st := a.seg.Status(r)
		if st == l.told[r] {
			continue
		}
		if !l.send(msgStatus, r, 0, 0, unsafe.Slice((*byte)(unsafe.Pointer(&st)), statusBytes)) {
			return false
		}
		l.told[r] = st
	}
	return done
}

func (a *Agent) dirCard(r int) []byte { return a.seg.Directory(r).Card(r) }

// send sends a message. It returns false if there is no room now.
func (l *link) send(what uint32, from, to, code int, data []byte) bool {
	h := fabric.Header{Kind: fabric.KindEager, Aux: what, A: uint64(from), B: uint64(to), Tag: int32(code), Len: uint64(len(data))}
	err := l.ep.Send(&h, data)
	if err != nil && !errors.Is(err, fabric.ErrAgain) {
		return false // Broken is called, too
	}
	return err == nil
}
