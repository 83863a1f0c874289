package coll

import (
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// mapped returns the address of n bytes at offset off of rank r's data, or nil if this process does not map them.
func (d *SingleCopyOp) mapped(r, off, n int) unsafe.Pointer {
	share := d.from[r].share
	if share == 0 {
		return nil
	}
	return d.c.eng.Map(d.c.Chan.World[r], share+uint64(off), uint64(n))
}

// get copies n bytes from offset off of rank r's data.
func (d *SingleCopyOp) get(to unsafe.Pointer, r, off, n int) {
	if n == 0 || d.err != nil {
		return
	}
	if from := d.mapped(r, off, n); from != nil {
		atom.Reads(from, n)
		d.c.eng.CopyFastest(to, from, n, d.copying())
		return
	}
	from := fabric.RemoteKey{Addr: d.from[r].addr + uint64(off)}
	atom.Copies(fabric.Pointer(from.Addr), n)
	if err := d.c.eng.GetFastest(d.c.Chan.World[r], to, from, n, d.copying()); err != nil {
		d.refused(to, r, n, err)
	}
}

// copying returns how many ranks copy at the same time.
func (d *SingleCopyOp) copying() int {
	switch d.Kind {
	case KindGather, KindGatherv, KindReduce: // a reduction copies whole slices only to its root
		return 1
	case KindBcast, KindScatter, KindScatterv:
		return d.c.Size - 1
	}
	return d.c.Size
}

// refused sets the error of a copy of n bytes from rank r.
func (d *SingleCopyOp) refused(to unsafe.Pointer, r, n int, err error) {
	if err == fabric.ErrPeerGone {
		d.c.eng.AwaitVerdict(d.c.Chan.World[r])
		d.err = errs.New(errs.ProcFailed, "%s can't complete: %s", d.Kind, howEnded(d.c.eng, d.c.Chan.World, r))
		return
	}
	d.memoryErr = true
	if fault := sys.Touch(func() { fabric.Probe(to, n) }); fault != nil { // the kernel does not report whose memory it is
		d.err = d.faulted(fault)
	} else if d.offered(d.c.seq) { // else its program may have freed it
		d.unreadable = true
		d.err = errs.New(errs.Buffer, "%s: the %d bytes of rank %d of the communicator can't be read: %v", d.Kind, n, r, err)
	}
}

// fetch copies the i-th part of rank r's data to b.
func (d *SingleCopyOp) fetch(b p2p.Buf, r, i int) {
	n := b.Bytes()
	if b.Type.Dense() {
		d.get(b.Addr, r, i*n, n)
		return
	}
	flat := d.temp(n)
	if d.get(flat, r, i*n, n); d.err == nil && n > 0 {
		b.Type.Unpack(b.Addr, unsafe.Slice((*byte)(flat), n), b.Count)
	}
}

// collect fetches the other ranks' parts of a gather, or what they have for this rank in an alltoall.
func (d *SingleCopyOp) collect() {
	me, i := d.c.Rank, 0
	if d.Kind == KindAlltoall {
		i = me
	}
	if n := d.Recv.Bytes(); d.Kind == KindGather && d.Recv.Type.Dense() && d.c.eng.Divides(n*d.c.Size, d.copying()) {
		d.collectDivided(n)
	} else {
		for n := 1; n < d.c.Size; n++ {
			r := (me + n) % d.c.Size
			d.fetch(part(d.Recv, r), r, i)
		}
	}
}

// collectDivided fetches the parts of the other ranks, of unit bytes each, by one thread or several: their bytes together
// are divided, since one part alone may not be worth it.
func (d *SingleCopyOp) collectDivided(unit int) {
	err := d.c.eng.Fastest(engine.CopyGather, unit*d.c.Size, d.copying(), func(at, n int) error {
		for n > 0 {
			r, off := at/unit, at%unit
			m := min(n, unit-off)
			if r != d.c.Rank {
				if e := d.copyFrom(r, off, unsafe.Add(d.Recv.Addr, at), m); e != nil {
					return e
				}
			}
			at, n = at+m, n-m
		}
		return nil
	})
	d.copied(err)
}

// copied sets the error of this rank's threads that have copied.
func (d *SingleCopyOp) copied(err error) {
	if x, ok := err.(*refusedCopy); ok {
		d.refused(x.to, x.rank, x.n, x.err)
	} else if err != nil {
		panic(err) // a fault, as of any other access
	}
}

// refusedCopy is the error of a copy that one of several threads has made.
type refusedCopy struct {
	to   unsafe.Pointer
	rank int
	n    int
	err  error
}

func (x *refusedCopy) Error() string { return x.err.Error() }

// copyFrom copies n bytes from offset off of rank r's data. Several threads may call it at the same time.
func (d *SingleCopyOp) copyFrom(r, off int, to unsafe.Pointer, n int) error {
	if from := d.mapped(r, off, n); from != nil {
		atom.Reads(from, n)
		fabric.Copy(to, from, n)
		return nil
	}
	from := fabric.RemoteKey{Addr: d.from[r].addr + uint64(off)}
	atom.Copies(fabric.Pointer(from.Addr), n)
	if _, err := d.c.eng.Get(d.c.Chan.World[r], to, from, n, 0); err != nil {
		return &refusedCopy{to, r, n, err}
	}
	return nil
}
