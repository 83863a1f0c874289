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
// the offset in the fetch; in a put, whether it is not to be answered (see
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
		w.expect(rank)
		if _, err := w.rma.eng.Send(to, &h, part, w, delayed{w, rank}); err != nil {
			w.answers[rank].Add(1) // none will come
			return errs.New(errs.Buffer, "%s on rank %d of the window: %v", call, rank, err)
		}
	}
	return nil
}

// delayed is a put by message that had to wait, and is sent from the program's memory.
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

// report has the next call that completes operations return an error that has to do
// with rank, unless there is one already.
func (w *Win) report(rank int, e *errs.Error) {
	w.culprit.Store(int32(rank))
	w.failure.CompareAndSwap(nil, e)
}

// expect counts one more answer to come from rank. A target serves what one
// origin sends in order, so that the count of answers tells which came.
func (w *Win) expect(rank int) { w.sent[rank].Add(1) }

// fetch is data on its way to this process.
type fetch struct {
	w      *Win
	rank   int
	token  uint64
	into   unsafe.Pointer
	size   int
	left   int
	finish func()         // what came is complete
	fault  error          // what came can't be put where it belongs
	failed func()         // the target refused; or nil
	at     unsafe.Pointer // where a piece is about to come, in into; or nil
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

// cancel ends a fetch that was not asked for, or not for all of it.
func (f *fetch) cancel() {
	f.w.rma.fetchMu.Lock()
	defer f.w.rma.fetchMu.Unlock()
	if f.w.rma.fetches[f.token] == f {
		delete(f.w.rma.fetches, f.token)
		f.w.answers[f.rank].Add(1) // no answer is waited for
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

// inside checks again, at the target, what came in a message.
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

// arrived writes the payload of a put to this process's part; errs.Success says that
// it is there.
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

// arrive copies a payload to where it belongs, unless it has landed there. The error
// is a *sys.Fault.
func arrive(p unsafe.Pointer, payload []byte) (err error) {
	defer sys.CatchFault(&err)
	if unsafe.Pointer(unsafe.SliceData(payload)) != p {
		copy(engine.Bytes(p, len(payload)), payload)
	}
	return nil
}

// placePut lets the payload of a put come straight into the window.
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

// placement is a put whose payload is coming straight into a window.
type placement struct {
	w  *Win
	at unsafe.Pointer
}

// divert has what is coming into a window go nowhere, since its memory goes.
// Pollers are excluded.
func (m *RMA) divert(w *Win) {
	for src, l := range m.placements {
		if l.w == w {
			m.eng.Redirect(l.at)
			delete(m.placements, src)
		}
	}
}

// placeGetData lets what was asked for come straight to where it belongs.
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

// forget gives up fetches from a rank of a window, nil for all there are: what
// still comes for them goes nowhere, since their memory is the program's again.
// Pollers are excluded.
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

// holds reports whether a piece that came lies in what was asked for.
func (f *fetch) holds(h *fabric.Header, n int) bool {
	size := uint64(f.size)
	return h.Len <= size && h.B <= size-h.Len && uint64(n) <= size-h.Len-h.B
}

// answer tells the origin that its operation is done at this target.
func (m *RMA) answer(src int, w *Win, ack *fabric.Header) {
	if w != nil {
		ack.Src = int32(w.Rank)
	} else {
		ack.Src = -1
	}
	m.eng.Send(src, ack, nil, nil, nil)
}

func (m *RMA) onAck(src int, h *fabric.Header, _ []byte) {
	w := m.window(h.Ctx)
	if w == nil {
		return
	}
	w.answered(src, h.Aux)
}

// answered counts an answer of world rank src; class is an error's, or 0.
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
	// Pieces carry their offset in the fetch in Len, since B is the stream's.
	answer.Len = uint64(h.Aux) | uint64(uint32(h.Tag))<<32
	m.eng.Stream(src, &answer, data, w, replying{m, src, reply})
}

// replying is a reply that is sent from the window's memory.
type replying struct {
	m    *RMA
	to   int
	head fabric.Header
}

// Sent implements engine.Sender. The origin learns that no more will come.
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

// fetched finds what n bytes that came were asked for by, and reports whether they
// are the last; nil if they belong to nothing.
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
