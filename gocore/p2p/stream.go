package p2p

import (
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// A long message in pieces: the receiver asks for it (CTS), and the sender sends it (Data).

// clear asks the sender of the message h for its data, from an offset to total.
func (p *P2P) clear(src int, h *fabric.Header, token uint64, total, from int) {
	reply := fabric.Header{Kind: fabric.KindCTS, Flags: engine.FlagUrgent, Gen: h.Gen, Ctx: h.Ctx, Aux: uint32(from), A: h.A, B: token, Len: uint64(total)}
	p.eng.Send(src, &reply, nil, nil, nil)
}

// streaming reports whether this rank is receiving a message of rank src in pieces.
func (p *P2P) streaming(src int) bool {
	p.tokens.Lock()
	defer p.tokens.Unlock()
	return p.byID[p.streams[src]] != nil
}

// onCTS sends the data that the receiver asks for.
func (p *P2P) onCTS(src int, h *fabric.Header, _ []byte) {
	r := p.recall(h.A)
	if r == nil {
		return
	}
	data := fabric.Header{Kind: fabric.KindData, Gen: h.Gen, Ctx: h.Ctx, A: h.B, Len: h.Len}
	if r.given && r.flat == nil { // from here on the caller need not keep the memory
		if err := r.pack(r.buf.Bytes()); err != nil {
			streaming{p, r, src, data}.Sent(err)
			return
		}
	}
	all := r.flat
	if all == nil && h.Len > 0 {
		all = engine.Bytes(r.buf.Addr, int(h.Len))
	}
	p.eng.Stream(src, &data, all[:h.Len], int(min(uint64(h.Aux), h.Len)), r, streaming{p, r, src, data})
}

// streaming is a long send whose data is being sent in pieces.
type streaming struct {
	p    *P2P
	r    *Request
	to   int
	head fabric.Header
}

// Sent implements engine.Sender. If the data can't be read it notifies the receiver
// that no more will come.
func (s streaming) Sent(err error) {
	if sys.IsFault(err) {
		s.head.Flags = FlagFailed
		_, _ = s.p.eng.Send(s.to, &s.head, nil, nil, nil)
	}
	s.r.Sent(err)
}

// onData stores a piece of a long message and completes the receive with the last one.
func (p *P2P) onData(_ int, h *fabric.Header, payload []byte) {
	p.tokens.Lock()
	r := p.byID[h.A]
	p.tokens.Unlock()
	if r == nil {
		return
	}
	r.placing = nil
	if h.Flags&FlagFailed != 0 {
		p.recall(h.A)
		r.fail(errs.New(errs.Buffer, "receive from %s: the sender can't read the memory that it sends", r.q.peer(r.status.Source, r.status.Tag)))
		return
	}
	if h.B > uint64(r.total) || len(payload) > r.total-int(h.B) { // a faulty peer must not make this process write beyond the buffer
		return
	}
	if r.failed == nil {
		r.failed = r.piece(int(h.B), payload)
	}
	if r.got += len(payload); r.got >= r.total {
		p.recall(h.A)
		if r.timing != nil {
			r.timing.Learn(stream, job.Now()-r.start)
		}
		if r.failed == nil {
			r.failed = r.unpack()
		}
		r.end(r.failed)
	}
}

// piece stores a piece of a long message at its offset, unless the transport has
// placed it there.
func (r *Request) piece(at int, payload []byte) (err error) {
	defer sys.CatchFault(&err)
	if r.flat != nil {
		copy(r.flat[at:], payload)
	} else if to := unsafe.Add(r.buf.Addr, at); unsafe.Pointer(unsafe.SliceData(payload)) != to {
		copy(engine.Bytes(to, len(payload)), payload)
	}
	return nil
}
