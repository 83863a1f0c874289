//go:build cgo

package verbs

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/ibverbs"
	"gormapy/gocore/sys"
)

// recvID marks the IDs of receives. Those of other requests are rank and number.
const recvID = 1 << 63

// giveBack puts a receive buffer on the list that restock posts.
func (t *Transport) giveBack(buffer int32) {
	t.repost = append(t.repost, ibverbs.RecvWR{
		ID: recvID | uint64(buffer), Addr: t.recvs.Addr(buffer), Len: bufferBytes, LKey: t.recvs.MR.LKey(),
	})
}

// Poll implements fabric.Transport.
func (t *Transport) Poll(sink fabric.Sink) int {
	if t.closed {
		return 0
	}
	return t.poll(sink)
}

func (t *Transport) poll(sink fabric.Sink) int {
	left := len(t.left)
	total := t.collect()
	n, err := t.cq.Poll(t.wcs[:])
	if err != nil {
		t.failAll(err)
	}
	// Completions of any kind count: a thread that has had some arms again before it
	// sleeps.
	total += n
	for i := range t.wcs[:n] {
		if wc := &t.wcs[i]; wc.ID&recvID != 0 {
			t.received(wc, sink)
		} else {
			t.ended(wc)
			t.notify(sink)
		}
	}
	if len(t.repost) >= repostBatch {
		t.restock()
	}
	if t.armed && (n > 0 || t.tries > 0) {
		t.takeEvent()
	}
	if n < len(t.wcs) && left > 0 {
		t.failLeft(left)
	}
	if t.working.Load() > 0 {
		t.tend()
		total += t.notify(sink)
	}
	return total
}

// takeEvent reads the event of completions that have been polled. The event may come a
// little later than the completions.
func (t *Transport) takeEvent() {
	if got, err := t.ch.Event(); got || err != nil {
		t.armed, t.tries = false, 0
	} else if t.tries == 0 {
		t.tries = 16
	} else {
		t.tries--
	}
}

// received delivers a message.
func (t *Transport) received(wc *ibverbs.WC, sink fabric.Sink) {
	buffer := int32(wc.ID)
	t.giveBack(buffer) // it is posted after the message is delivered
	if wc.Status != ibverbs.Success {
		return // its queue pair has failed, which its own requests show
	}
	t.mu.Lock()
	e := t.pairs[wc.QPNum]
	gone := e == nil || e.gone
	t.mu.Unlock()
	if gone {
		return
	}
	if wc.Bytes < uint32(fabric.HeaderBytes) || wc.Bytes > bufferBytes {
		t.mu.Lock()
		e.fail(&fabric.OpError{Op: "receive", Peer: e.peer, Status: "not a message", Detail: fmt.Sprintf("it has %d bytes", wc.Bytes)})
		t.mu.Unlock()
		return
	}
	p := t.recvs.At(buffer)
	payload := unsafe.Slice((*byte)(unsafe.Add(p, fabric.HeaderBytes)), int(wc.Bytes)-fabric.HeaderBytes)
	sink.Deliver(e.peer, (*fabric.Header)(p), payload)
}

// restock posts the free receive buffers. It keeps those that the device does not take
// for the next time.
func (t *Transport) restock() {
	n, _ := t.srq.PostRecv(t.repost)
	t.repost = t.repost[:copy(t.repost, t.repost[n:])]
}

// ended handles the completion of a request, and ends all before it.
func (t *Transport) ended(wc *ibverbs.WC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	peer, seq := int(wc.ID>>32), uint32(wc.ID)
	if peer >= len(t.eps) || t.eps[peer] == nil {
		return
	}
	e := t.eps[peer]
	if seq-e.tail >= e.head-e.tail {
		return // it was Completed when its queue pair was destroyed
	}
	for e.tail != seq {
		e.retire(e.err)
	}
	var err error
	if wc.Status != ibverbs.Success {
		rec := &e.ring[seq%uint32(len(e.ring))]
		state := "unknown"
		if s, err := e.qp.State(); err == nil {
			state = s.String()
		}
		failure := &fabric.OpError{Op: opNames[rec.op], Peer: e.peer, Status: wc.Status.String(), Detail: fmt.Sprintf(
			"%s; queue pair %d of %s is in state %s, vendor error %#x", wc.Status.Means(), e.qp.Num(), t.port.Context.Name(), state, wc.VendorErr)}
		if e.err != nil && wc.Status == ibverbs.WRFlushErr {
			failure.Detail = "an earlier request on this connection has failed: " + e.err.Error()
		}
		err = failure
		e.fail(err)
		if rec.op > opSend && !rec.last {
			// The other pieces of the operation are flushed; this error is why it has failed.
			e.blame(seq, err)
		}
	}
	e.retire(err)
	if e.long.active && e.err == nil {
		e.continueLong()
	}
	t.unused, t.over = append(t.unused, t.over...), t.over[:0]
}

// blame completes the operation whose piece seq has failed with that piece's error.
func (e *endpoint) blame(seq uint32, err error) {
	for seq++; seq != e.head; seq++ {
		rec := &e.ring[seq%uint32(len(e.ring))]
		if rec.last {
			e.t.done = append(e.t.done, completion{rec.cookie, err})
			rec.last = false
			e.open--
			return
		}
	}
	if e.long.active {
		e.t.done = append(e.t.done, completion{e.long.end.cookie, err})
		e.long.end.last = false
		e.open--
	}
}

// retire ends the oldest request.
func (e *endpoint) retire(err error) {
	rec := &e.ring[e.tail%uint32(len(e.ring))]
	e.tail++
	e.finish(rec, err)
}

// finish does what rec says.
func (e *endpoint) finish(rec *record, err error) {
	t := e.t
	if rec.dst != nil && err == nil {
		from := t.cells
		if rec.kind == bounced {
			from = t.bounce
		}
		err = sys.Touch(func() { fabric.Copy(rec.dst, from.At(rec.slot), int(rec.n)) })
	}
	t.undo(rec)
	if rec.last {
		e.open--
		if err != nil {
			err = e.lost(rec.op, err)
		}
		t.done = append(t.done, completion{rec.cookie, err})
	}
	*rec = record{}
}

// lost returns the error of an operation, given the error of its connection.
func (e *endpoint) lost(op opName, err error) error {
	var of *fabric.OpError
	var fault *sys.Fault
	switch {
	case errors.As(err, &fault):
		return err
	case errors.Is(err, fabric.ErrPeerGone):
		return fmt.Errorf("%s to rank %d failed: %w", opNames[op], e.peer, err)
	case errors.As(err, &of):
		return err
	}
	return &fabric.OpError{Op: opNames[op], Peer: e.peer, Status: "connection lost", Detail: err.Error()}
}

// continueLong posts more of an operation that is longer than the queue.
func (e *endpoint) continueLong() {
	c := e.long
	if _, err := e.advance(&c); err != nil {
		e.long = c
		return
	}
	if !c.active {
		e.open-- // both start and note have counted it
	}
	e.long = c
}

// fail brings the endpoint to the failed state.
func (e *endpoint) fail(err error) {
	if e.err != nil {
		return
	}
	t := e.t
	e.err, e.failedAt = err, time.Now()
	_ = e.qp.ToErr()
	if e.twin != nil {
		_ = e.twin.ToErr()
	}
	if e.peer != t.rank {
		e.mail(mailClosed, err.Error())
	}
	e.watch()
}

func (t *Transport) failAll(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.eps {
		if e != nil {
			e.fail(&fabric.OpError{Op: "poll", Peer: e.peer, Status: "the completion queue has failed", Detail: err.Error()})
		}
	}
}

// failLeft fails the first n endpoints whose peers have mailed closed. The messages that
// these peers had sent before have been delivered.
func (t *Transport) failLeft(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.left[:n] {
		e.fail(fmt.Errorf("%w, or its connection is: rank %d says: %s", fabric.ErrPeerGone, e.peer, e.reason))
	}
	t.left = t.left[:copy(t.left, t.left[n:])]
}

// tend attends to the endpoints that have something under way.
func (t *Transport) tend() {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.busy[:0]
	for _, e := range t.busy {
		if e.tend() {
			kept = append(kept, e)
		} else {
			e.busy = false
		}
	}
	clear(t.busy[len(kept):])
	t.busy = kept
	t.working.Store(int32(len(kept)))
	if len(kept) == 0 {
		t.starved = false
	}
	t.unused, t.over = append(t.unused, t.over...), t.over[:0]
}

// tend posts the rest of a long operation and a follower where one is needed, and ends a
// failed endpoint. It reports whether the endpoint has to be tended again.
func (e *endpoint) tend() bool {
	if e.err != nil {
		return e.endFailed()
	}
	if e.long.active {
		e.continueLong()
	}
	wanted := e.open > 0 || e.t.starved && e.head != e.tail
	if wanted && e.signaled != e.head {
		if int32(e.signaled-e.tail) <= 0 || e.seen == e.head {
			e.follow()
		}
	}
	e.seen = e.head
	return wanted
}

// endFailed ends a failed endpoint once the device has let go of its requests, or after
// flushPatience. It reports whether it has to be called again.
func (e *endpoint) endFailed() bool {
	t := e.t
	if e.gone {
		return false
	}
	if e.head != e.tail {
		if time.Since(e.failedAt) < flushPatience {
			return true
		}
		// A queue pair that is destroyed does not touch memory any more.
		if err := e.qp.Close(); err != nil {
			return true
		}
		for e.head != e.tail {
			e.retire(e.err)
		}
	}
	if e.long.active {
		e.long.active = false
		e.finish(&e.long.end, e.err)
	}
	e.gone = true
	t.broke = append(t.broke, e)
	return false
}

// release gives back what the requests hold when the transport is closed.
func (e *endpoint) release() {
	for ; e.tail != e.head; e.tail++ {
		e.t.undo(&e.ring[e.tail%uint32(len(e.ring))])
	}
	if e.long.active {
		e.t.undo(&e.long.end)
	}
}

// notify tells the sink which operations and connections have ended. It holds no lock.
func (t *Transport) notify(sink fabric.Sink) int {
	n := len(t.done) + len(t.broke)
	for _, mr := range t.unused {
		_ = mr.Close()
	}
	clear(t.unused)
	t.unused = t.unused[:0]
	for i := range t.done {
		sink.Completed(t.done[i].cookie, t.done[i].err)
	}
	clear(t.done)
	t.done = t.done[:0]
	for _, e := range t.broke {
		sink.Broken(e.peer, e.err)
	}
	t.broke = t.broke[:0]
	return n
}
