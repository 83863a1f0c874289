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

// Long messages over a network that reads registered memory: the sender registers
// the data and announces it with its key (FlagKey; the payload of the RTS is the
// fabric.RemoteKey), the receiver reads it, straight into the user's memory, and
// says so (Fin), upon which the sender closes the region.
//
// A region whose request is given up (Ctrl-C, reset) stays until Fin: were it
// closed before, a receiver that reads there would lose its connection. After a
// reset Fin comes only of messages that had been matched, and the memory may be
// other memory by then: so the transport does not find it any more (hide). A peer
// that has ended reads nothing: its region goes at once.

// keyBytes is the length of a key in an RTS.
const keyBytes = 16

// offer registers the data of a long message for the receiver to read, unless it
// is kept registered, and returns its key; nil if it can't be registered, and has to be sent in pieces.
func (p *P2P) offer(r *Request, data []byte) []byte {
	at := unsafe.Pointer(&data[0])
	// Networks and their libraries take memory that can't be read for the end of the
	// connection, or wait. In pieces, the fault is met here.
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

// unpublish has the region be for the receiver only.
func (r *Request) unpublish() {
	if h, ok := r.region.(fabric.Unpublisher); ok {
		h.Unpublish()
	}
}

// reading is a receive that reads its data from the sender's memory. What happens to
// its buffer is in Request.reading: read goes from still to underWay, and Completed
// by finishing, in which it is the one that writes there, to still. A receive that is
// given up goes from underWay to leftAlone when the network does not end in time, and
// Completed only tells the sender. P2P.left counts those.
type reading struct {
	p      *P2P
	r      *Request
	src    int
	head   fabric.Header
	cookie uint64
}

// read starts it. It may run under the poll lock.
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
		x.p.left.Add(-1)
		return
	}
	if err != nil {
		r.reading.Store(still)
		r.fail(x.failure(err))
		return
	}
	failed := r.unpack()
	x.p.fin(r, x.src, &x.head)
	r.reading.Store(still)
	r.end(failed) // from here on it can be another one
}

// failure is the error of the receive: of its own memory or of a reset, else of the
// sender, whose memory could not be read.
func (x *reading) failure(err error) *errs.Error {
	var e *errs.Error
	if errors.As(err, &e) || sys.IsFault(err) {
		return x.r.refusal(err)
	}
	return errs.New(errs.ProcFailed, "a message of %d bytes from rank %d with tag %d could not be read: %v", x.head.Len, x.head.Src, x.head.Tag, err)
}

// The states of Request.reading.
const (
	still = iota
	underWay
	finishing
	leftAlone
)

// readLimit is how long a receive that is given up waits for the network to end
// its write to the user's memory. It may not: a peer can be stopped.
const readLimit = time.Second

// settle waits until no network writes to the buffer of a request any more, or
// counts it as left to the network.
func (p *P2P) settle(r *Request) {
	for start := time.Now(); r.reading.Load() != still; {
		if time.Since(start) > readLimit && r.reading.CompareAndSwap(underWay, leftAlone) {
			p.left.Add(1)
			return
		}
		p.eng.PollSure()
	}
}

// Left reports whether there are receives that were given up and into whose buffers a
// network may still write.
func (p *P2P) Left() bool { return p.left.Load() > 0 }

// placeData lets a piece of a long message come straight into the user's memory.
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

// redirect has what is landing in the buffer of a request go nowhere. Pollers are
// excluded.
func (p *P2P) redirect(r *Request) {
	if r.placing != nil {
		p.eng.Redirect(r.placing)
		r.placing = nil
	}
}
