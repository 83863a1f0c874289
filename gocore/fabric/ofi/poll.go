//go:build cgo

package ofi

import (
	"encoding/binary"
	"fmt"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/libfabric"
)

// addressOf returns the address of memory that is not Go's.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Poll implements fabric.Transport.
func (t *transport) Poll(sink fabric.Sink) int {
	n := 0
	for range 4 {
		full := t.readQueue()
		n += len(t.deliver)
		for k, r := range t.deliver {
			t.receive(sink, t.frames.Bytes(int32(r))[:t.lengths[k]])
			t.repost = append(t.repost, r)
		}
		t.deliver, t.lengths = t.deliver[:0], t.lengths[:0]
		if len(t.repost) > 0 {
			if err := t.postReceives(); err != nil {
				t.die(fmt.Errorf("post receives: %w", err))
			}
		}
		if !full {
			break
		}
	}
	if t.work.Load() {
		n += t.resume(sink)
	}
	return n
}

// readQueue reads completions. Those of receives go to t.deliver, others end slots. It
// reports whether there may be more.
func (t *transport) readQueue() bool {
	done, failed, err := t.cq.Read()
	if err != nil {
		t.die(err)
		return false
	}
	if failed != nil {
		t.failed(failed)
		return true
	}
	if len(done) == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range done {
		c := &done[k]
		if c.Flags&(libfabric.FlagRemoteCQData|libfabric.FlagRemoteWrite) != 0 && c.Flags&libfabric.FlagRecv == 0 {
			t.arrived(c)
		} else if r := t.recvs.Index(c.Context); r >= 0 {
			t.deliver, t.lengths = append(t.deliver, r), append(t.lengths, int(min(c.Len, frameBytes)))
		} else if s := t.txs.Index(c.Context); s >= 0 {
			t.ended(s, waitLocal, nil)
		}
	}
	return len(done) == libfabric.Batch
}

// ended ends one of the waits of a slot. The caller has the lock.
func (t *transport) ended(s int, wait uint8, err error) {
	sl := &t.slots[s]
	if !sl.used || sl.wait&wait == 0 {
		return
	}
	sl.wait &^= wait
	if err != nil {
		sl.wait = 0 // the target will never acknowledge it
	}
	e, o := sl.ep, sl.op
	if o != nil && err == nil && o.old != nil {
		t.fetched(o, s)
	}
	if sl.wait != 0 {
		return
	}
	e.give(s)
	if e.broken != nil || e.pending != nil {
		t.work.Store(true)
	}
	if o == nil {
		return
	}
	if err != nil {
		o.drop(err)
		if e.pending == o {
			e.pending = nil
		}
	}
	if o.open--; o.open == 0 && o.posted() {
		t.finish(o)
	}
}

// arrived notes that a peer's put without FI_DELIVERY_COMPLETE has arrived, and has to be
// acknowledged. The caller has the lock.
func (t *transport) arrived(c *libfabric.Completion) {
	src, s := int(c.Data>>16&0xffff), uint16(c.Data)
	if src >= t.size {
		return
	}
	e := t.eps[src]
	if e.broken != nil || len(e.acks) >= slotCount {
		return
	}
	if len(e.acks) == 0 {
		t.ackTo = append(t.ackTo, src)
	}
	e.acks = append(e.acks, s)
	t.work.Store(true)
}

// connection reports whether an error concerns the connection, and not only one
// operation.
func connection(no libfabric.Errno) bool {
	switch syscall.Errno(no) {
	case syscall.EIO, syscall.EPIPE, syscall.ECONNABORTED, syscall.ECONNRESET, syscall.ENOTCONN, syscall.ESHUTDOWN,
		syscall.ETIMEDOUT, syscall.ECONNREFUSED, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.ENETDOWN,
		syscall.ENETUNREACH, syscall.ECANCELED, syscall.ENODEV, syscall.ENOENT:
		return true
	}
	return false
}

// failed handles a request that has failed.
func (t *transport) failed(f *libfabric.Failure) {
	if r := t.recvs.Index(f.Context); r >= 0 {
		t.repost = append(t.repost, r) // too long, or cut off: nothing to deliver
		return
	}
	s := t.txs.Index(f.Context)
	if s < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	sl := &t.slots[s]
	if !sl.used {
		return
	}
	e, op := sl.ep, "send"
	if sl.op != nil {
		op = sl.op.name()
	}
	detail := ""
	if f.Text != "" {
		detail = fmt.Sprintf("error %d, %s", f.ProvErrno, f.Text)
	}
	err := e.failure(op, f.Errno, detail)
	// The peer would wait for a lost message for ever, so the connection fails.
	if sl.op == nil || connection(f.Errno) {
		e.fail(err)
	}
	t.ended(s, waitLocal|waitAck, err)
}

// die fails all connections, because the provider does not work any more.
func (t *transport) die(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead != nil {
		return
	}
	t.dead = err
	for _, e := range t.eps {
		e.fail(e.failure("connect", err, "its completion queue or receives failed"))
	}
}

// receive handles a frame.
func (t *transport) receive(sink fabric.Sink, b []byte) {
	f, ok := decodeFrame(b, t.size)
	if !ok {
		return
	}
	e := t.eps[f.src]
	if e.in == nil {
		e.in, _ = newSeal(t.dir.Secret(), e.peer, t.me, t.nonce, t.o.Sealed) // newTransport has made one
	}
	if e.in == nil || !e.in.check(b) || e.told {
		return // not from this job, or too late
	}
	if f.number != e.received+1 {
		t.early(e, f.number, b)
		return
	}
	t.inTurn(sink, e, f)
	for len(e.early) > 0 {
		b, ok := e.early[e.received+1]
		if !ok {
			return
		}
		delete(e.early, e.received+1)
		if f, ok := decodeFrame(b, t.size); ok {
			t.inTurn(sink, e, f)
		}
	}
}

// inTurn handles the next frame of a peer.
func (t *transport) inTurn(sink fabric.Sink, e *endpoint, f frame) {
	e.received++
	if f.kind == frameMessage {
		sink.Deliver(f.src, f.header, f.rest)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch f.kind {
	case frameAck:
		for ; len(f.rest) >= 2; f.rest = f.rest[2:] {
			if s := int(binary.LittleEndian.Uint16(f.rest)); s < len(t.slots) && t.slots[s].ep == e {
				t.ended(s, waitAck, nil)
			}
		}
	case frameBye:
		e.fail(&fabric.OpError{Op: "connect", Peer: e.peer, Status: "the peer has closed its transport"})
	}
}

// early keeps a frame whose turn has not come.
func (t *transport) early(e *endpoint, number uint64, b []byte) {
	if number <= e.received {
		return // it has come before: it was duplicated on its way, or somebody has sent it again
	}
	ahead := number - e.received - 1
	if t.ordered || ahead > maxEarly {
		t.mu.Lock()
		e.fail(&fabric.OpError{
			Op: "receive", Peer: e.peer, Status: "messages were lost",
			Detail: fmt.Sprintf("number %d came after %d; provider %s", number, e.received, t.info.Provider),
		})
		t.mu.Unlock()
		return
	}
	if e.early == nil {
		e.early = map[uint64][]byte{}
	}
	// Go aligns an allocation larger than a word to 8 bytes, as decodeFrame requires.
	e.early[number] = slices.Clone(b)
}

// resume does work that could not be done at once, and notifies the sink of operations
// and connections that have ended.
func (t *transport) resume(sink fabric.Sink) int {
	t.mu.Lock()
	t.work.Store(false)
	if !t.closed {
		t.connectWaiting()
		t.postStalled()
		t.sendAcks()
	}
	told := t.endBroken()
	if len(t.waiting)+len(t.stalled)+len(t.breaking)+len(t.ackTo) > 0 {
		t.work.Store(true)
	}
	t.finished, t.finishing = t.finishing[:0], t.finished
	t.mu.Unlock()
	// The thread that polls owns finishing.
	n := len(t.finishing)
	for _, f := range t.finishing {
		sink.Completed(f.cookie, f.err)
	}
	clear(t.finishing)
	for _, e := range told {
		e.told, e.early = true, nil
		sink.Broken(e.peer, e.broken)
		n++
	}
	return n
}

// connectWaiting connects the endpoints whose peers' cards were missing.
func (t *transport) connectWaiting() {
	waiting := t.waiting
	t.waiting = nil
	for _, e := range waiting {
		e.queued = false
		_ = e.connect() // it queues the endpoint again if there is no card, and fails it on an error
	}
}

// postStalled continues operations whose requests are not all posted.
func (t *transport) postStalled() {
	stalled := t.stalled
	t.stalled = t.stalled[:0]
	for _, e := range stalled {
		o := e.pending
		if o == nil {
			continue
		}
		err := e.post(o)
		if e.pending == nil {
			continue // the endpoint has failed, and with it the operation
		}
		if err == fabric.ErrAgain {
			t.stalled = append(t.stalled, e)
			continue
		}
		e.pending = nil
		if o.open == 0 {
			t.finish(o)
		}
	}
}

// sendAcks tells origins that their puts have arrived.
func (t *transport) sendAcks() {
	to := t.ackTo
	t.ackTo = t.ackTo[:0]
	for _, peer := range to {
		e := t.eps[peer]
		if e.broken != nil || len(e.acks) == 0 {
			continue
		}
		t.acks = t.acks[:0]
		for _, s := range e.acks {
			t.acks = binary.LittleEndian.AppendUint16(t.acks, s)
		}
		err := e.ready()
		if err == nil {
			err = e.sendFrame(frameAck, nil, t.acks)
		}
		if err == nil {
			e.acks = e.acks[:0]
		} else if err == fabric.ErrAgain {
			t.ackTo = append(t.ackTo, peer)
		}
	}
}

// endBroken returns the broken endpoints that the sink is to be notified of. Nothing is
// under way on them any more, or their grace is over.
func (t *transport) endBroken() (told []*endpoint) {
	breaking := t.breaking
	t.breaking = nil
	for _, e := range breaking {
		if e.open > 0 && time.Since(e.since) < grace {
			t.breaking = append(t.breaking, e)
			continue
		}
		for s := range t.slots {
			if sl := &t.slots[s]; sl.used && sl.ep == e && sl.op != nil {
				o := sl.op
				sl.op = nil // the slot stays taken until the provider completes it
				o.drop(e.broken)
				if o.open--; o.open == 0 {
					o.leak()
					t.finish(o)
				}
			}
		}
		told = append(told, e)
	}
	return told
}

// leak leaves memory that the provider may still use as it is. The transport does not get
// it back.
func (o *operation) leak() { o.bounce, o.temp, o.region = -1, nil, nil }
