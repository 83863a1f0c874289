package rma

import (
	"sync"

	"gormapy/gocore/engine"
	"gormapy/gocore/fabric"
)

// Puts and accumulates by message, many of them before a flush, cost a system call each if
// each is sent at once. So a message is held back (engine.Gather) while an answer of its
// target is still to come, and travels with those that follow it.
//
// # Protocol
//
// Everything that is held back is sent at the end of the next poll. The poll that takes an
// answer is such a poll, so a message that is held back while an answer is still to come
// does not depend on the program: it leaves this process even if the program only computes
// from then on. Waits poll, so a flush sends at once what is held back.
//
// Under mu, a rank counts the answer that it expects, and passes the message to the
// engine. sure is how many answers are expected for messages that have certainly been
// sent, or stand in a queue from which polls send: not those that were held back since. As
// long as fewer have come, one of them is still to come. A message is held back if this is
// so before it is passed on, and it is sent at once if it is no longer so after that,
// because the poll that took the last answer may have ended in between.
//
// Answers come in any order and from any thread; only their number counts. One that will
// not come, because its message could not be sent, counts as come.

// asking is what a rank knows of its messages to one target.
type asking struct {
	mu   sync.Mutex
	sure uint64
}

// asked are the operations of ask on what other threads share. sent and answered are the
// numbers of answers that are expected, and that have come.
type asked struct {
	sent, answered func() uint64
	send           func(hold bool) error
	push           func()
}

func (a *asking) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sure = 0
}

func (a *asking) underWay(answers uint64) bool { return answers < a.sure }

// ask passes on a message whose answer has been counted, under mu.
func (a *asking) ask(o asked) error {
	hold := a.underWay(o.answered())
	if err := o.send(hold); err != nil {
		return err
	}
	if hold {
		if a.underWay(o.answered()) {
			return nil
		}
		o.push()
	}
	a.sure = o.sent()
	return nil
}

// Push sends what is held back of the operations on rank (-1: on any rank), which the caller
// is going to wait for: a poll would read before it sends.
func (w *Win) Push(rank int) {
	for r, world := range w.World {
		if (rank < 0 || r == rank) && w.paths[r] == pathMessage && w.answers[r].Load() != w.sent[r].Load() {
			w.rma.eng.Push(world)
		}
	}
}

// ask sends rank a message that it answers. Sent is told of it like that of engine.Send.
func (w *Win) ask(rank int, h *fabric.Header, payload []byte, sent engine.Sender) error {
	a, to, eng := &w.asking[rank], w.World[rank], w.rma.eng
	a.mu.Lock()
	defer a.mu.Unlock()
	w.expect(rank)
	err := a.ask(asked{sent: w.sent[rank].Load, answered: w.answers[rank].Load, push: func() { eng.Push(to) }, send: func(hold bool) (err error) {
		if hold {
			_, err = eng.Gather(to, h, payload, w, sent)
		} else {
			_, err = eng.Send(to, h, payload, w, sent)
		}
		return err
	}})
	if err != nil {
		w.answers[rank].Add(1) // no answer will come
	}
	return err
}
