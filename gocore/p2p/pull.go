package p2p

import (
	"encoding/binary"
	"errors"
	"time"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/sys"
)

// # Long messages over a network that reads registered memory
//
// The sender registers the data and announces it with its key (FlagKey; the payload of
// the RTS is the fabric.RemoteKey). The receiver reads it straight into the user's
// memory and sends Fin, upon which the sender closes the region.
//
// A region whose request is given up (Ctrl-C, reset) stays until Fin: if it were
// closed before, a receiver that reads there would lose its connection. After a
// reset Fin comes only for messages that had been matched, and the address may be
// other memory by then: so the region is unpublished, and the transport does not find
// it any more. A peer that has ended reads nothing: its region is closed at once.

// keyBytes is the length of a key in an RTS.
const keyBytes = 16

// offer registers the data of a long message for the receiver to read, unless it is
// kept registered, and returns its key. It returns nil if the data can't be registered
// and has to be sent in pieces.
func (p *P2P) offer(r *Request, data []byte) []byte {
	at := unsafe.Pointer(&data[0])
	// Networks and their libraries end the connection if memory can't be read, or wait.
	// If the data is sent in pieces, this process meets the fault.
	if sys.Touch(func() { fabric.Probe(at, len(data)) }) != nil {
		return nil
	}
	kept, key := p.eng.Kept(at, len(data))
	if kept != nil {
		r.region = kept
	} else {
		region, err := fabric.RegisterReadOnly(p.eng.Net(), at, len(data))
		if err != nil {
			return nil
		}
		r.region, key = region, region.Key()
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, key.Addr), key.Key)
}

// withdraw closes the region of a send whose receiver has the data.
func (r *Request) withdraw() {
	if r.region != nil {
		_ = r.region.Close()
		r.region = nil
	}
}

// unpublish leaves the region to the receiver alone: the transport does not use it for
// other operations any more.
func (r *Request) unpublish() {
	if h, ok := r.region.(fabric.Unpublisher); ok {
		h.Unpublish()
	}
}

// reading is a receive that reads its data from the sender's memory. Request.reading is
// the state of its buffer. read sets it from idle to underWay. Completed sets it to
// finishing, in which only Completed writes to the buffer, and then to idle. A receive
// that is given up goes from underWay to abandoned if the network does not finish in
// time; Completed then only notifies the sender. P2P.abandonedReads counts those.
type reading struct {
	p      *P2P
	r      *Request
	src    int
	head   fabric.Header
	cookie uint64
}

// read starts the transfer. It may run under the poll lock.
func (p *P2P) read(r *Request, src int, h *fabric.Header, key []byte, local unsafe.Pointer) {
	if len(key) != keyBytes {
		r.fail(errs.New(errs.Intern, "the announcement of a long message has a key of %d bytes, not %d", len(key), keyBytes))
		return
	}
	if fault := sys.Touch(func() { fabric.Probe(local, r.total) }); fault != nil {
		p.fin(r, src, h)
		r.end(fault)
		return
	}
	x := &reading{p: p, r: r, src: src, head: *h}
	x.cookie = p.eng.Enroll(x)
	r.reading.Store(underWay)
	from := fabric.RemoteKey{Addr: binary.LittleEndian.Uint64(key), Key: binary.LittleEndian.Uint64(key[8:])}
	if done, err := p.eng.Get(src, local, from, r.total, x.cookie); done || err != nil {
		x.Completed(err)
	}
}

// Completed implements engine.Completer.
func (x *reading) Completed(err error) {
	x.p.eng.Cancel(x.cookie)
	r := x.r
	if !r.reading.CompareAndSwap(underWay, finishing) {
		if err == nil {
			x.p.fin(r, x.src, &x.head)
		}
		x.p.abandonedReads.Add(-1)
		return
	}
	if err != nil {
		r.reading.Store(idle)
		r.fail(x.failure(err))
		return
	}
	failed := r.unpack()
	x.p.fin(r, x.src, &x.head)
	r.reading.Store(idle)
	r.end(failed) // from here on its owner can reuse the request
}

// failure returns the error of the receive: that of its own memory or of a reset, else
// that the sender's memory could not be read.
func (x *reading) failure(err error) *errs.Error {
	var e *errs.Error
	if errors.As(err, &e) || sys.IsFault(err) {
		return x.r.refusal(err)
	}
	return errs.New(errs.ProcFailed, "a message of %d bytes from %s could not be read: %v", x.head.Len, x.r.q.peer(int(x.head.Src), int(x.head.Tag)), err)
}

// The states of Request.reading.
const (
	idle = iota
	underWay
	finishing
	abandoned
)

// readLimit is how long a receive that is given up waits for the network to finish
// its write to the user's memory. It may not finish: a peer can be stopped.
const readLimit = time.Second

// awaitNetwork waits until no network writes to the buffer of a request any more, or after
// readLimit counts the read as abandoned.
func (p *P2P) awaitNetwork(r *Request) {
	for start := time.Now(); r.reading.Load() != idle; {
		if time.Since(start) > readLimit && r.reading.CompareAndSwap(underWay, abandoned) {
			p.abandonedReads.Add(1)
			return
		}
		p.eng.PollSure()
	}
}

// Left reports whether there are abandoned reads: a network may still write to the
// buffers of receives that were given up.
func (p *P2P) Left() bool { return p.abandonedReads.Load() > 0 }

// placeData is the Placer of Data: a piece of a long message is stored straight in the
// user's memory.
func (p *P2P) placeData(_ int, h *fabric.Header, n int) unsafe.Pointer {
	p.tokens.Lock()
	defer p.tokens.Unlock()
	r := p.byID[h.A]
	if r == nil || r.flat != nil || !r.recv || h.B > uint64(r.total) || uint64(n) > uint64(r.total)-h.B {
		return nil
	}
	r.placing = unsafe.Add(r.buf.Addr, h.B)
	return r.placing
}

// redirect discards the rest of a piece that is being written to the buffer of a
// request. The caller excludes pollers.
func (p *P2P) redirect(r *Request) {
	if r.placing != nil {
		p.eng.Redirect(r.placing)
		r.placing = nil
	}
}
