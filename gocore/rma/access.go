package rma

import (
	"errors"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// TargetSpec is the target side of an operation, as the program describes it: a
// displacement in the target's units, and count items of a type.
type TargetSpec struct {
	Rank        int
	Disp        int
	Count       int
	Type        *dtype.Type
	Outstanding *Outstanding // the request's; nil: the target's
}

// location is a TargetSpec that locate has resolved: its offset in the target's part and,
// if the target is direct, its address in this process.
type location struct {
	rank        int
	off         int // bytes from the start of the part; in a dynamic window, the address at the target
	direct      bool
	addr        unsafe.Pointer
	outstanding *Outstanding
}

// locate checks the target side before anything moves, and resolves the displacement.
// span returns the bytes lo to hi, from there, that a count of items covers.
func (w *Win) locate(s TargetSpec, bytes int, span func(count int) (lo, hi int)) (location, *errs.Error) {
	p := location{rank: s.Rank, outstanding: s.Outstanding}
	if e := w.checkTarget(s.Rank); e != nil {
		return p, e
	}
	if p.outstanding == nil {
		p.outstanding = w.outstanding[s.Rank].Load()
	}
	if e := s.checkSize(bytes); e != nil || bytes == 0 {
		return p, e
	}
	lo, hi := span(s.Count)
	if w.Flavor == FlavorDynamic {
		return p, w.locateAttached(&p, s.Disp, lo, hi)
	}
	if e := w.checkRange(s, lo, hi); e != nil {
		return p, e
	}
	t := w.Desc.Target(s.Rank)
	p.off = s.Disp * int(t.Unit)
	if t.Base != nil {
		p.direct, p.addr = true, unsafe.Add(t.Base, p.off)
	}
	return p, nil
}

// CheckTransfer returns the error that a Put or Get of so many bytes has whenever it is done, to a rank of the window.
func (w *Win) CheckTransfer(s TargetSpec, bytes int) *errs.Error {
	return w.checkPlace(s, bytes, s.Type.Span)
}

// checkPlace returns an error if the part of a rank has no such place; of a dynamic window, only the target knows.
func (w *Win) checkPlace(s TargetSpec, bytes int, span func(count int) (lo, hi int)) *errs.Error {
	if e := s.checkSize(bytes); e != nil || bytes == 0 || w.Flavor == FlavorDynamic {
		return e
	}
	lo, hi := span(s.Count)
	return w.checkRange(s, lo, hi)
}

// checkSize returns an error if the target side does not describe so many bytes.
func (s TargetSpec) checkSize(bytes int) *errs.Error {
	if s.Count < 0 {
		return errs.New(errs.Count, "the target count %d is negative", s.Count)
	}
	if n := s.Count * s.Type.Size(); n != bytes {
		return errs.New(errs.Type, "the target side describes %d bytes (%d x %s), the origin side %d", n, s.Count, s.Type.Name(), bytes)
	}
	if s.Disp < 0 {
		return errs.New(errs.Disp, "the target displacement %d is negative", s.Disp)
	}
	return nil
}

// checkRange returns an error if bytes lo to hi from the displacement on are not all in the target's part.
func (w *Win) checkRange(s TargetSpec, lo, hi int) *errs.Error {
	t := w.Desc.Target(s.Rank)
	off := s.Disp * int(t.Unit)
	// What does not fit in an int is the largest or the smallest int in lo and hi.
	if s.Disp > (1<<62)/max(int(t.Unit), 1) || hi > 1<<62 {
		return errs.New(errs.RMARange, "a displacement of %d units of %d bytes is beyond rank %d's part of %s, which has %d bytes",
			s.Disp, t.Unit, s.Rank, w.name(), t.Bytes)
	}
	if s.Disp > int(t.Bytes)/max(int(t.Unit), 1) || lo < -off || hi > int(t.Bytes)-off {
		return errs.New(errs.RMARange, "bytes %d to %d of rank %d's part of %s were asked for (displacement %d in units of %d bytes), it has %d bytes",
			off+lo, off+hi, s.Rank, w.name(), s.Disp, t.Unit, t.Bytes)
	}
	return nil
}

// packed returns b's data in one run.
func packed(b p2p.Buf) unsafe.Pointer {
	if b.Type.Dense() || b.Count == 0 {
		return b.Addr
	}
	flat := make([]byte, max(b.Bytes(), 1))
	b.Type.Pack(flat, b.Addr, b.Count)
	return unsafe.Pointer(&flat[0])
}

// Put writes origin to the target. It may return ErrUnsettled: the caller waits until
// the target is Settled, and calls it again.
func (w *Win) Put(origin p2p.Buf, s TargetSpec) *errs.Error {
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

// write puts one run, for the named call, on the target's path.
func (w *Win) write(call string, to location, at int, p unsafe.Pointer, n int) *errs.Error {
	switch {
	case to.direct:
		fabric.Copy(unsafe.Add(to.addr, at), p, n)
	case w.paths[to.rank] == pathRDMA:
		return w.byNet(call, true, to, at, p, n)
	case w.paths[to.rank] == pathCopy:
		k := w.keys[to.rank]
		k.Addr += uint64(to.off + at)
		if err := w.rma.eng.PutFastest(w.World[to.rank], p, k, n, w.rma.eng.Pairs()); err != nil {
			return w.failed(call, to.rank, p, n, err)
		}
		w.copied(to.rank)
	default:
		return w.sendPut(call, to.rank, to.off+at, p, n)
	}
	return nil
}

// Get reads from the target into origin.
func (w *Win) Get(origin p2p.Buf, s TargetSpec) *errs.Error {
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

// read gets one run of a target whose path is direct, copy or rdma.
func (w *Win) read(call string, from location, at int, p unsafe.Pointer, n int) *errs.Error {
	if from.direct {
		fabric.Copy(p, unsafe.Add(from.addr, at), n)
		return nil
	}
	if w.paths[from.rank] == pathRDMA {
		return w.byNet(call, false, from, at, p, n)
	}
	k := w.keys[from.rank]
	k.Addr += uint64(from.off + at)
	if err := w.rma.eng.GetFastest(w.World[from.rank], p, k, n, w.rma.eng.Pairs()); err != nil {
		return w.failed(call, from.rank, p, n, err)
	}
	w.copied(from.rank)
	return nil
}

// atomicsByMessage reports whether accumulates and atomics on a location go by messages.
// They do on the path rdma, too.
func (w *Win) atomicsByMessage(p location) bool { return !p.direct && w.paths[p.rank] >= pathRDMA }

// failed returns the error of an operation between n bytes of local memory and rank
// that was refused when it was started.
func (w *Win) failed(call string, rank int, local unsafe.Pointer, n int, err error) *errs.Error {
	if errors.Is(err, fabric.ErrPeerGone) {
		w.rma.eng.AwaitVerdict(w.World[rank])
	}
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
