//go:build cgo

package ofi

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/libfabric"
	"gormapy/gocore/sys"
)

// endpoint is a connection to one peer.
type endpoint struct {
	t    *transport
	peer int
	addr libfabric.Addr

	out *seal // once it is connected

	// Guarded by the transport's lock.
	connected bool
	queued    bool       // in transport.waiting
	open      int        // slots in use
	bufs      int        // buffers in use
	sent      uint64     // frames so far
	pending   *operation // its requests are not all posted
	acks      []uint16   // slots of puts of the peer that have arrived here
	broken    error
	since     time.Time // when it broke

	// Owned by the thread that polls.
	in       *seal // once something has come
	received uint64
	early    map[uint64][]byte // frames whose turn has not come
	told     bool
}

// failure returns an OpError of this connection.
func (e *endpoint) failure(op string, err error, detail string) *fabric.OpError {
	status := err.Error()
	var no libfabric.Errno
	if errors.As(err, &no) {
		status = fmt.Sprintf("%s, %s", no.Name(), no.Error())
	}
	if detail == "" {
		detail = "provider " + e.t.info.Provider
	} else {
		detail = "provider " + e.t.info.Provider + ": " + detail
	}
	return &fabric.OpError{Op: op, Peer: e.peer, Status: status, Detail: detail}
}

// connect makes the peer known to the provider if the peer has published its card. If
// not, Poll tries again. The caller has the lock.
func (e *endpoint) connect() error {
	if e.connected || e.broken != nil {
		return nil
	}
	b := e.t.dir.Card(e.peer)
	if b == nil {
		if !e.queued {
			e.queued = true
			e.t.waiting = append(e.t.waiting, e)
			e.t.work.Store(true)
		}
		return nil
	}
	c, err := decodeCard(b)
	if err == nil && c.provider != e.t.info.Provider {
		err = fmt.Errorf("it uses provider %s, this rank %s", c.provider, e.t.info.Provider)
	}
	if err == nil {
		e.out, err = newSeal(e.t.dir.Secret(), e.t.me, e.peer, c.nonce, e.t.o.Sealed)
	}
	if err == nil {
		e.addr, err = e.t.av.Insert(c.name)
	}
	if err != nil {
		failed := e.failure("connect", err, "")
		e.fail(failed)
		return failed
	}
	e.connected = true
	return nil
}

// ready returns nil if requests can be posted, ErrAgain if they can be later. The caller
// has the lock.
func (e *endpoint) ready() error {
	switch {
	case e.t.closed:
		return errClosed
	case e.broken != nil:
		return e.broken
	case e.connected:
		return nil
	}
	if err := e.connect(); err != nil {
		return err
	}
	if !e.connected {
		return fabric.ErrAgain
	}
	return nil
}

// fail breaks the connection. The caller has the lock.
func (e *endpoint) fail(err error) {
	if e.broken != nil {
		return
	}
	e.broken, e.since = err, time.Now()
	if op := e.pending; op != nil {
		op.drop(err)
		e.pending = nil
		if op.open == 0 {
			e.t.finish(op)
		}
	}
	e.acks = nil
	e.t.breaking = append(e.t.breaking, e)
	e.t.work.Store(true)
}

// take takes a slot. It returns -1 if there is none. The caller has the lock.
func (e *endpoint) take(op *operation, wait uint8) int {
	if len(e.t.free) <= reserved || e.open >= slotsEach {
		return -1
	}
	return e.mustTake(op, wait)
}

// mustTake takes a slot, also of those reserved for frames that free other slots.
// Without the reserve, peers whose puts wait for each other's acknowledgements would wait
// for ever.
func (e *endpoint) mustTake(op *operation, wait uint8) int {
	t := e.t
	if len(t.free) == 0 {
		return -1
	}
	s := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.slots[s] = slot{ep: e, op: op, buf: -1, wait: wait, used: true}
	e.open++
	return s
}

// takeBuf takes a buffer. It returns -1 if there is none.
func (e *endpoint) takeBuf() int {
	t := e.t
	if t.bufs.Free() <= reserved || e.bufs >= bufsEach {
		return -1
	}
	return e.mustTakeBuf()
}

// mustTakeBuf is to buffers what mustTake is to slots.
func (e *endpoint) mustTakeBuf() int {
	b := int(e.t.bufs.Take())
	if b >= 0 {
		e.bufs++
	}
	return b
}

func (e *endpoint) giveBuf(b int) {
	e.t.bufs.Give(int32(b))
	e.bufs--
}

// give frees a slot and what it holds.
func (e *endpoint) give(s int) {
	t := e.t
	if b := t.slots[s].buf; b >= 0 {
		e.giveBuf(b)
	}
	t.slots[s] = slot{}
	t.free = append(t.free, s)
	e.open--
}

// Send implements fabric.Endpoint.
func (e *endpoint) Send(h *fabric.Header, payload []byte) error {
	if len(payload) > maxShort {
		return e.failure("send", fmt.Errorf("a message of %d bytes is longer than %d", len(payload), maxShort), "")
	}
	e.t.mu.Lock()
	defer e.t.mu.Unlock()
	if err := e.ready(); err != nil {
		return err
	}
	return e.sendFrame(frameMessage, h, payload)
}

// greet sends the peer a frame before the first operation, because the peer does not
// notice the operation itself. The caller has the lock.
func (e *endpoint) greet() error {
	if e.sent > 0 || e.peer == e.t.me {
		return nil
	}
	return e.sendFrame(frameHello, nil, nil)
}

// sendFrame sends the next frame. The caller has the lock.
func (e *endpoint) sendFrame(kind byte, h *fabric.Header, payload []byte) error {
	t := e.t
	n := prefixBytes + len(payload)
	if h != nil {
		n += fabric.HeaderBytes
	}
	b, s := -1, -1
	if kind == frameMessage {
		b = e.takeBuf()
	} else {
		b = e.mustTakeBuf()
	}
	if b < 0 {
		return fabric.ErrAgain
	}
	if kind == frameMessage {
		s = e.take(nil, waitLocal)
	} else {
		s = e.mustTake(nil, waitLocal)
	}
	if s < 0 {
		e.giveBuf(b)
		return fabric.ErrAgain
	}
	t.slots[s].buf = b
	mem := t.bufs.Bytes(int32(b))
	putPrefix(mem, kind, t.me, e.sent+1)
	rest := mem[prefixBytes:]
	if h != nil {
		copy(rest, unsafe.Slice((*byte)(unsafe.Pointer(h)), fabric.HeaderBytes))
		rest = rest[fabric.HeaderBytes:]
	}
	if err := sys.Touch(func() { copy(rest, payload) }); err != nil {
		e.give(s)
		return err
	}
	e.out.put(mem[:n])
	// The request lies in the transport, because what is passed to C escapes.
	t.requests[0] = libfabric.Request{
		Kind: libfabric.Send, Flags: libfabric.Completed, Local: addressOf(mem), Len: uint64(n), Desc: t.desc(),
		Addr: e.addr, Context: t.txs.At(s),
	}
	if n <= t.inject {
		t.requests[0].Flags |= libfabric.Inject
	}
	if _, err := t.ep.Post(t.requests[:1]); err != nil {
		e.give(s)
		return e.refused("send", err)
	}
	e.sent++
	if n <= t.inject {
		t.slots[s].buf = -1
		e.giveBuf(b)
	}
	return nil
}

// refused returns the error of a request that could not be posted: ErrAgain, or one that
// breaks the connection. The caller has the lock.
func (e *endpoint) refused(op string, err error) error {
	if errors.Is(err, libfabric.EAGAIN) {
		e.t.again.Store(true)
		return fabric.ErrAgain
	}
	failed := e.failure(op, err, "")
	e.fail(failed)
	return failed
}
