package rma

import (
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/sys"
)

// The messages of the message path. Ctx is the window, Src the origin's rank in
// it, A the offset in the target's part or the fetch's token, B the token or
// the offset in the fetch. In a put, B is not 0 if it is unacknowledged (see
// unacked.go).

func (w *Win) header(k fabric.Kind) fabric.Header {
	return fabric.Header{Kind: k, Flags: engine.FlagUrgent, Gen: w.rma.gen.Load(), Ctx: w.ID, Src: int32(w.Rank)}
}

func (w *Win) sendPut(call string, rank, at int, p unsafe.Pointer, n int) *errs.Error {
	to := w.World[rank]
	piece := w.rma.eng.MaxShort(to)
	for done := 0; done < n; done += piece {
		part := engine.Bytes(unsafe.Add(p, done), min(piece, n-done))
		h := w.header(fabric.KindPut)
		h.A, h.Len = uint64(at+done), uint64(len(part))
		if err := w.ask(rank, &h, part, delayed{w, rank}); err != nil {
			return errs.New(errs.Buffer, "%s on rank %d of the window: %v", call, rank, err)
		}
	}
	return nil
}

// delayed is a put by message that waits for room. Its data is still in the program's
// memory.
type delayed struct {
	w    *Win
	rank int
}

// Sent implements engine.Sender.
func (d delayed) Sent(err error) {
	if err != nil {
		d.w.report(d.rank, errs.New(errs.Buffer, "a put on rank %d of the window: %v", d.rank, err))
		d.w.answers[d.rank].Add(1)
	}
}

// report records an error that concerns rank. The next call that completes operations
// returns it. The first error is kept.
func (w *Win) report(rank int, e *errs.Error) {
	w.culprit.Store(int32(rank))
	w.failure.CompareAndSwap(nil, e)
}

// expect counts one more answer to come from rank. A target serves the messages of an
// origin in order, so the number of answers shows which have come.
func (w *Win) expect(rank int) { w.sent[rank].Add(1) }

// fetch is data that this process has asked a target for.
type fetch struct {
	w      *Win
	rank   int
	token  uint64
	into   unsafe.Pointer
	size   int
	left   int
	finish func()         // called when all data has come
	fault  error          // a fault at its destination, or in finish
	failed func()         // called if the target refused; or nil
	at     unsafe.Pointer // where in into a piece is being received; or nil
}

func (m *RMA) fetchInto(w *Win, rank int, into unsafe.Pointer, n int, finish func()) *fetch {
	f := &fetch{w: w, rank: rank, into: into, size: n, left: n, finish: finish}
	m.fetchMu.Lock()
	m.next++
	f.token = m.next
	m.fetches[f.token] = f
	m.fetchMu.Unlock()
	w.expect(rank)
	return f
}

// cancel ends a fetch that could not be requested, or not as a whole.
func (f *fetch) cancel() {
	defer f.w.rma.eng.Push(f.w.World[f.rank]) // what was held back until its answer
	f.w.rma.fetchMu.Lock()
	defer f.w.rma.fetchMu.Unlock()
	if f.w.rma.fetches[f.token] == f {
		delete(f.w.rma.fetches, f.token)
		f.w.answers[f.rank].Add(1) // no answer will come
	}
}

func (w *Win) sendGet(f *fetch, at, from, n int) {
	h := w.header(fabric.KindGet)
	h.A, h.B, h.Len = uint64(at), f.token, uint64(n)
	h.Aux, h.Tag = uint32(from), int32(from>>32) // where in the fetch the data belongs
	w.rma.eng.Send(w.World[f.rank], &h, nil, w, nil)
}

func (m *RMA) window(id uint32) *Win {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.wins[id]
}

// inside checks again, at the target, the range that a message names. It returns the
// range's address, or nil.
func (w *Win) inside(at, n uint64) unsafe.Pointer {
	if w.Flavor == FlavorDynamic {
		if at > 1<<62 || n > 1<<62 || w.attached(w.Rank).find(at, n) == nil {
			return nil
		}
		return fabric.Pointer(at)
	}
	t := w.Desc.Target(w.Rank)
	if n > uint64(t.Bytes) || at > uint64(t.Bytes)-n || t.Base == nil {
		return nil
	}
	return unsafe.Add(t.Base, at)
}

func (m *RMA) onPut(src int, h *fabric.Header, payload []byte) {
	ack := fabric.Header{Kind: fabric.KindAck, Gen: h.Gen, Ctx: h.Ctx, Src: h.Src}
	w := m.window(h.Ctx)
	delete(m.placements, src)
	if h.B != 0 { // see unacked.go
		if w != nil {
			w.unacked.take(int(h.Src), h.Aux, h.A, payload)
		}
		return
	}
	switch {
	case w == nil:
		ack.Aux = uint32(errs.Win)
	case h.Tag != 0:
		ack.Aux = uint32(w.scatter(payload, int(h.Tag)))
	default:
		ack.Aux = uint32(w.arrived(h.A, payload))
	}
	m.answer(src, w, &ack)
}

// arrived writes the payload of a put to this process's part. It returns the class of
// the error, errs.Success if there is none.
func (w *Win) arrived(at uint64, payload []byte) errs.Class {
	p := w.inside(at, uint64(len(payload)))
	if p == nil {
		return errs.RMARange
	}
	if arrive(p, payload) != nil {
		return errs.Buffer
	}
	return errs.Success
}

// arrive copies a payload to p, unless it has been received there. The error is a
// *sys.Fault.
func arrive(p unsafe.Pointer, payload []byte) (err error) {
	defer sys.CatchFault(&err)
	if unsafe.Pointer(unsafe.SliceData(payload)) != p {
		copy(engine.Bytes(p, len(payload)), payload)
	}
	return nil
}

// placePut returns the place in the window where a put's payload is received, without a
// copy; nil if it can't be.
func (m *RMA) placePut(src int, h *fabric.Header, n int) unsafe.Pointer {
	w := m.window(h.Ctx)
	if w == nil || h.Gen != m.gen.Load() || h.B != 0 || h.Tag != 0 {
		return nil
	}
	p := w.inside(h.A, uint64(n))
	if p != nil {
		m.placements[src] = placement{w, p}
	}
	return p
}

// placement is a put whose payload is being received straight into a window.
type placement struct {
	w  *Win
	at unsafe.Pointer
}

// divert discards the rest of payloads that are being received into a window, because
// its memory goes. Pollers are excluded.
func (m *RMA) divert(w *Win) {
	for src, l := range m.placements {
		if l.w == w {
			m.eng.Redirect(l.at)
			delete(m.placements, src)
		}
	}
}

// placeGetData returns the place where a piece of a fetch is received, without a copy;
// nil if it can't be.
func (m *RMA) placeGetData(src int, h *fabric.Header, n int) unsafe.Pointer {
	m.fetchMu.Lock()
	defer m.fetchMu.Unlock()
	f := m.fetches[h.A]
	if f == nil || f.w.World[f.rank] != src || h.Gen != m.gen.Load() || h.Aux != 0 || !f.holds(h, n) {
		return nil
	}
	f.at = unsafe.Add(f.into, h.Len+h.B)
	return f.at
}

// forget gives up the fetches from a rank of a window, or all fetches if w is nil.
// Data that still comes for them is discarded, because their memory is the program's
// again. Pollers are excluded.
func (m *RMA) forget(w *Win, rank int) {
	m.fetchMu.Lock()
	defer m.fetchMu.Unlock()
	for token, f := range m.fetches {
		if w != nil && (f.w != w || f.rank != rank) {
			continue
		}
		if f.at != nil {
			m.eng.Redirect(f.at)
		}
		delete(m.fetches, token)
	}
}

// holds reports whether a piece of n bytes lies within the fetch.
func (f *fetch) holds(h *fabric.Header, n int) bool {
	size := uint64(f.size)
	return h.Len <= size && h.B <= size-h.Len && uint64(n) <= size-h.Len-h.B
}

// answer sends the origin the answer to its operation.
func (m *RMA) answer(src int, w *Win, ack *fabric.Header) {
	if w != nil {
		ack.Src = int32(w.Rank)
	} else {
		ack.Src = -1
	}
	m.eng.Gather(src, ack, nil, nil, nil)
}

func (m *RMA) onAck(src int, h *fabric.Header, _ []byte) {
	w := m.window(h.Ctx)
	if w == nil {
		return
	}
	w.answered(src, h.Aux)
}

// answered counts an answer of world rank src. class is that of an error, or 0.
func (w *Win) answered(src int, class uint32) {
	for r, world := range w.World {
		if world == src {
			switch errs.Class(class) {
			case errs.Success:
			case errs.Buffer:
				w.report(r, errs.New(errs.Buffer, "an operation on rank %d of %s: that rank can't access the memory of its own part (has the file that is mapped there been truncated?)", r, w.name()))
			default:
				w.report(r, errs.New(errs.Class(class), "rank %d refused an operation on %s", r, w.name()))
			}
			w.answers[r].Add(1)
			return
		}
	}
}

func (m *RMA) onGet(src int, h *fabric.Header, payload []byte) {
	w := m.window(h.Ctx)
	reply := fabric.Header{Kind: fabric.KindGetData, Gen: h.Gen, Ctx: h.Ctx, A: h.B}
	var data []byte
	class := errs.RMARange
	switch {
	case w == nil:
	case len(payload) > 0:
		data, class = w.gather(payload, h.Len)
	default:
		if p := w.inside(h.A, h.Len); p != nil {
			data = engine.Bytes(p, int(h.Len))
		}
	}
	answer := reply
	if data == nil {
		answer.Aux = uint32(class)
		m.eng.Send(src, &answer, nil, nil, nil)
		return
	}
	// Pieces carry their offset in the fetch in Len, because the stream uses B.
	answer.Len = uint64(h.Aux) | uint64(uint32(h.Tag))<<32
	m.eng.Stream(src, &answer, data, 0, w, replying{m, src, reply})
}

// replying is a reply that is sent from the window's memory.
type replying struct {
	m    *RMA
	to   int
	head fabric.Header
}

// Sent implements engine.Sender. After a fault it answers the origin with an error.
func (r replying) Sent(err error) {
	if sys.IsFault(err) {
		r.head.Aux = uint32(errs.Buffer)
		r.m.eng.Send(r.to, &r.head, nil, nil, nil)
	}
}

func (m *RMA) onGetData(src int, h *fabric.Header, payload []byte) {
	f, last := m.fetched(src, h, len(payload))
	if f == nil {
		return
	}
	if len(payload) > 0 && f.fault == nil {
		f.fault = arrive(unsafe.Add(f.into, h.Len+h.B), payload)
	}
	if !last {
		return
	}
	if h.Aux == 0 && f.fault == nil {
		f.fault = sys.Touch(f.finish)
	} else if f.failed != nil {
		f.failed()
	}
	if f.fault != nil {
		f.w.report(f.rank, errs.New(errs.Buffer, "what was asked of rank %d of the window: %v", f.rank, f.fault))
	}
	f.w.answered(src, h.Aux)
}

// fetched returns the fetch that n bytes which came belong to, and reports whether they
// are its last. The fetch is nil if they belong to none.
func (m *RMA) fetched(src int, h *fabric.Header, n int) (f *fetch, last bool) {
	m.fetchMu.Lock()
	defer m.fetchMu.Unlock()
	f = m.fetches[h.A]
	if f == nil || f.w.World[f.rank] != src || !f.holds(h, n) {
		return nil, false
	}
	f.at = nil
	f.left -= n
	if last = f.left <= 0 || h.Aux != 0; last {
		delete(m.fetches, h.A)
	}
	return f, last
}
