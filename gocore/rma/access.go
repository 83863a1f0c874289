package rma

import (
	"errors"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// Spot is where an operation goes at the target: a displacement in the target's
// units, and count items of a type.
type Spot struct {
	Rank        int
	Disp        int
	Count       int
	Type        *dtype.Type
	Outstanding *Outstanding // of the request that this is for, nil: of the target
}

// place is where a displacement at a target lies: at a distance from what the
// target gave for its part and, if it is direct, at an address in this process.
type place struct {
	rank        int
	off         int // bytes from the start of the part; in a dynamic window, the address at the target
	direct      bool
	addr        unsafe.Pointer
	outstanding *Outstanding
}

// locate checks everything about the target side before anything moves, and
// finds the displacement. The count and type span bytes lo to hi from there.
func (w *Win) locate(s Spot, bytes int, span func(count int) (lo, hi int)) (place, *errs.Error) {
	p := place{rank: s.Rank, outstanding: s.Outstanding}
	if e := w.checkTarget(s.Rank); e != nil {
		return p, e
	}
	if p.outstanding == nil {
		p.outstanding = w.outstanding[s.Rank].Load()
	}
	if s.Count < 0 {
		return p, errs.New(errs.Count, "the target count %d is negative", s.Count)
	}
	if n := s.Count * s.Type.Size(); n != bytes {
		return p, errs.New(errs.Type, "the target side describes %d bytes (%d x %s), the origin side %d", n, s.Count, s.Type.Name(), bytes)
	}
	if s.Disp < 0 {
		return p, errs.New(errs.Disp, "the target displacement %d is negative", s.Disp)
	}
	if bytes == 0 {
		return p, nil
	}
	lo, hi := span(s.Count)
	if w.Flavor == FlavorDynamic {
		return p, w.locateAttached(&p, s.Disp, lo, hi)
	}
	t := w.Desc.Target(s.Rank)
	p.off = s.Disp * int(t.Unit)
	// A span that does not fit in an int is cut off at the end of the range.
	if s.Disp > (1<<62)/max(int(t.Unit), 1) || hi > 1<<62 {
		return p, errs.New(errs.RMARange, "a displacement of %d units of %d bytes is beyond rank %d's part of %s, which has %d bytes",
			s.Disp, t.Unit, s.Rank, w.name(), t.Bytes)
	}
	if s.Disp > int(t.Bytes)/max(int(t.Unit), 1) || lo < -p.off || hi > int(t.Bytes)-p.off {
		return p, errs.New(errs.RMARange, "bytes %d to %d of rank %d's part of %s were asked for (displacement %d in units of %d bytes), it has %d bytes",
			p.off+lo, p.off+hi, s.Rank, w.name(), s.Disp, t.Unit, t.Bytes)
	}
	if t.Base != nil {
		p.direct, p.addr = true, unsafe.Add(t.Base, p.off)
	}
	return p, nil
}

// packed is b's data in one run.
func packed(b p2p.Buf) unsafe.Pointer {
	if b.Type.Dense() || b.Count == 0 {
		return b.Addr
	}
	flat := make([]byte, max(b.Bytes(), 1))
	b.Type.Pack(flat, b.Addr, b.Count)
	return unsafe.Pointer(&flat[0])
}

// Put writes origin to the target. It may return ErrUnsettled.
func (w *Win) Put(origin p2p.Buf, s Spot) *errs.Error {
	to, err := w.locate(s, origin.Bytes(), s.Type.Span)
	if err != nil {
		return err
	}
	switch {
	case origin.Bytes() == 0:
		return nil
	case to.direct:
		dtype.Copy(to.addr, s.Type, s.Count, origin.Addr, origin.Type, origin.Count)
		return nil
	case w.putUnacked(origin, s, to):
		return nil
	case !w.Settled(s.Rank):
		return ErrUnsettled
	case origin.Type.Dense() && s.Type.Dense():
		return w.write("Put", to, 0, origin.Addr, origin.Bytes())
	case w.paths[s.Rank] == pathCopy:
		return w.copyRuns("Put", true, origin, s, to)
	case w.paths[s.Rank] == pathRDMA:
		return w.runsByNet("Put", true, origin, s, to)
	}
	data := packed(origin)
	if !s.Type.Dense() {
		w.sendPutRuns(s, to, data)
		return nil
	}
	return w.write("Put", to, 0, data, origin.Bytes())
}

// write puts one run, for the named call, on the way that the target has.
func (w *Win) write(call string, to place, at int, p unsafe.Pointer, n int) *errs.Error {
	switch {
	case to.direct:
		fabric.Copy(unsafe.Add(to.addr, at), p, n)
	case w.paths[to.rank] == pathRDMA:
		return w.byNet(call, true, to, at, p, n)
	case w.paths[to.rank] == pathCopy:
		ep, _ := w.rma.eng.Endpoint(w.World[to.rank])
		k := w.keys[to.rank]
		k.Addr += uint64(to.off + at)
		if _, err := ep.Put(p, k, n, 0); err != nil {
			return w.failed(call, to.rank, p, n, err)
		}
		w.copied(to.rank)
	default:
		return w.sendPut(call, to.rank, to.off+at, p, n)
	}
	return nil
}

// Get reads from the target into origin.
func (w *Win) Get(origin p2p.Buf, s Spot) *errs.Error {
	from, err := w.locate(s, origin.Bytes(), s.Type.Span)
	if err != nil {
		return err
	}
	n := origin.Bytes()
	if n == 0 {
		return nil
	}
	switch {
	case from.direct:
		dtype.Copy(origin.Addr, origin.Type, origin.Count, from.addr, s.Type, s.Count)
		return nil
	case w.paths[s.Rank] != pathMessage && origin.Type.Dense() && s.Type.Dense():
		return w.read("Get", from, 0, origin.Addr, n)
	case w.paths[s.Rank] == pathCopy:
		return w.copyRuns("Get", false, origin, s, from)
	case w.paths[s.Rank] == pathRDMA:
		return w.runsByNet("Get", false, origin, s, from)
	}
	into, finish := origin.Addr, func() {}
	if !origin.Type.Dense() {
		flat := make([]byte, n)
		into = unsafe.Pointer(&flat[0])
		finish = func() { origin.Type.Unpack(origin.Addr, flat, origin.Count) }
	}
	f := w.rma.fetchInto(w, s.Rank, into, n, finish)
	if s.Type.Dense() {
		w.sendGet(f, from.off, 0, n)
	} else {
		w.sendGetRuns(f, s, from)
	}
	return nil
}

// read gets one run of a target that is direct, or reached by copies or a network.
func (w *Win) read(call string, from place, at int, p unsafe.Pointer, n int) *errs.Error {
	if from.direct {
		fabric.Copy(p, unsafe.Add(from.addr, at), n)
		return nil
	}
	if w.paths[from.rank] == pathRDMA {
		return w.byNet(call, false, from, at, p, n)
	}
	ep, _ := w.rma.eng.Endpoint(w.World[from.rank])
	k := w.keys[from.rank]
	k.Addr += uint64(from.off + at)
	if _, err := ep.Get(p, k, n, 0); err != nil {
		return w.failed(call, from.rank, p, n, err)
	}
	w.copied(from.rank)
	return nil
}

// byMessage reports whether what is more than a put or get goes to a place by
// messages.
func (w *Win) byMessage(p place) bool { return !p.direct && w.paths[p.rank] >= pathRDMA }

// failed is the error of an operation between n bytes of local memory and rank that
// was refused when it was started.
func (w *Win) failed(call string, rank int, local unsafe.Pointer, n int, err error) *errs.Error {
	if errors.Is(err, fabric.ErrPeerGone) || w.paths[rank] == pathRDMA && w.rma.eng.Gone(w.World[rank]) {
		return errs.New(errs.ProcFailed, "%s: %s (rank %d of the window)", call, w.rma.eng.HowGone(w.World[rank]), rank)
	}
	fault := sys.Touch(func() { fabric.Probe(local, n) }) // the kernel does not say whose memory it is
	if fault == nil && sys.IsFault(err) {
		fault = err
	}
	if fault != nil {
		return errs.New(errs.Buffer, "%s on rank %d of the window: %v", call, rank, fault)
	}
	if w.paths[rank] == pathRDMA {
		return errs.New(errs.Win, "%s on rank %d of the window: %v", call, rank, err)
	}
	return errs.New(errs.Win, "%s to rank %d: the kernel refused the copy: %v (is the window's memory still there on that rank?)", call, rank, err)
}

// The messages of the third way. Ctx is the window, Src the origin's rank in
// it, A the offset in the target's part or the fetch's token, B the token or
// the offset in the fetch; in a put, whether it is to go without an answer.

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

// fast finds n bytes of a direct target, for the hot atomic calls (hot_win.c does
// the same for puts and gets). It returns nil when anything is not as it should
// be or not direct: the general call then finds out what.
func fast(d *Desc, n, rank, disp int) unsafe.Pointer {
	if d.Handle == 0 || uint(rank) >= uint(d.Size) || disp < 0 {
		return nil
	}
	t := d.Target(rank)
	if t.Base == nil || d.Open|t.Open == 0 {
		return nil
	}
	if t.Unit > 1 {
		if disp > int(t.Bytes)/int(t.Unit) {
			return nil
		}
		disp *= int(t.Unit)
	}
	if disp > int(t.Bytes) || n > int(t.Bytes)-disp {
		return nil
	}
	return unsafe.Add(t.Base, disp)
}
