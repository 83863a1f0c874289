//go:build interleave

package simulate

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
	"gormapy/gocore/sys"
)

// window is a window with the expected contents of its memory: counters into which all
// ranks accumulate, followed by a slot for the puts of each origin.
type window struct {
	*rma.Win
	r     *rank
	mem   []byte // memory of the program, for Win.Create
	view  []byte
	slot  int      // size of a slot
	model [][]byte // expected contents, by target
}

const counters = 4

// makeWindow makes a window as package mpi does.
func (r *rank) makeWindow(step int) {
	n := r.w.o.Ranks
	flavor := rma.FlavorCreate
	if r.plan.IntN(2) == 0 {
		flavor = rma.FlavorAllocate
	}
	slot := []int{64, 4096, 60_000, 1 << 20}[r.plan.IntN(4)] / 8 * 8
	size := 8*counters + n*slot
	win := &window{r: r, slot: slot}
	id := uint32(1000 + step)
	var addr unsafe.Pointer
	if flavor == rma.FlavorCreate {
		win.mem = r.w.memory(size)
		addr = unsafe.Pointer(&win.mem[0])
	}
	mine := []rma.Offer{r.rma.NewOffer(flavor, addr, size, 1)}
	offers := make([]rma.Offer, n)
	exchange := func() {
		b := p2p.Buf{Addr: unsafe.Pointer(&mine[0]), Count: rma.OfferBytes, Type: byteType}
		r.finish(r.coll.Allgather(&b, coll.Uniform(p2p.Buf{Addr: unsafe.Pointer(&offers[0]), Count: rma.OfferBytes, Type: byteType}, n)))
	}
	exchange()
	if r.n == 0 {
		seg, e := rma.CreateSegment(offers, 0, new(rma.Offer))
		r.end(e)
		r.w.segs[id] = seg
	}
	r.barrier()
	own, err := sys.OpenSegmentPath(fmt.Sprintf("/proc/self/fd/%d", r.w.segs[id].FD))
	r.must(err)
	region := r.rma.Register(&mine[0], r.n, r.all, offers, own)
	exchange()
	var bar *coll.Barrier
	if r.w.net == nil {
		bar = coll.NewBarrier(r.eng.Job, 3, r.all)
		if r.w.seed%2 == 0 {
			bar.Divide(r.n, 2)
		}
		bar.Zero()
	}
	var e *errs.Error
	win.Win, e = r.rma.NewWin(&rma.Setup{ID: id, Rank: r.n, World: r.all, Offers: offers, Segment: own, Region: region,
		Copies: r.rma.CanCopy(offers, r.all)})
	r.end(e)
	win.Bar = bar
	win.view = unsafe.Slice((*byte)(win.Desc.Target(r.n).Base), size)
	for range n {
		win.model = append(win.model, make([]byte, size))
	}
	r.win = win
	r.barrier()
}

func (r *rank) freeWindow() {
	r.barrier()
	r.dropWindow()
}

// dropWindow frees the window without a message. All ranks have reached this point.
func (r *rank) dropWindow() {
	r.win.Free(true)
	if r.win.mem != nil {
		r.w.reclaim(r.win.mem)
	}
	r.w.count["windows"]++
	r.win = nil
}

func (w *window) target(target, at, bytes int) rma.TargetSpec {
	return rma.TargetSpec{Rank: target, Disp: at, Count: bytes / 8, Type: longType}
}

func (w *window) settled(target int) {
	w.r.until(func() bool { return w.Settled(target) }, func() error { return w.CheckSettled(target) })
}

func (w *window) put(b p2p.Buf, target, at int) *errs.Error {
	e := w.Put(b, w.target(target, at, b.Bytes()))
	if e == rma.ErrUnsettled {
		w.settled(target)
		e = w.Put(b, w.target(target, at, b.Bytes()))
	}
	return e
}

func (w *window) get(b p2p.Buf, target, at int) *errs.Error {
	w.settled(target)
	return w.Get(b, w.target(target, at, b.Bytes()))
}

func (r *rank) flush(target int) {
	r.until(func() bool { return r.win.Quiet(target) }, func() error { return r.win.CheckQuiet(target) })
	r.end(r.win.Failure())
}

func (r *rank) lock(target int, exclusive bool) {
	l, e := r.win.Lock(target, exclusive, 0)
	r.end(e)
	r.until(l.Advance, l.Check)
	r.end(l.Err())
}

func (r *rank) unlock(target int) {
	r.end(r.win.CheckUnlock("Unlock", target))
	r.flush(target)
	r.win.Unlock(target)
}

func (r *rank) fence() {
	r.end(r.win.CheckFence(0))
	r.flush(-1)
	if bar := r.win.Bar; bar != nil {
		if !bar.Arrive() {
			r.until(bar.Passed, func() error { return bar.Check(r.eng) })
		}
	} else {
		r.barrier()
	}
	r.win.Settle(true)
	r.win.Fenced(0)
}

// access is what one origin does to one target in an epoch.
type access struct {
	origin, target int
	at, n          int // of the put and the get, in the origin's slot
	key            uint64
	add            int64
	counter        int
	fetch          bool
}

// epoch lets all ranks access some others, and compares memory with the model.
func (r *rank) epoch(step int) {
	n := r.w.o.Ranks
	kind := r.plan.IntN(4) // fence, shared locks, exclusive locks, lock of all
	var list []access
	for origin := range n {
		for range 1 + r.plan.IntN(3) {
			a := access{origin: origin, target: r.plan.IntN(n), key: r.plan.Uint64(), add: int64(1 + r.plan.IntN(100)), counter: r.plan.IntN(counters), fetch: r.plan.IntN(2) == 0}
			a.n = 8 * (1 + r.plan.IntN(r.win.slot/8))
			a.at = 8 * r.plan.IntN((r.win.slot-a.n)/8+1)
			repeated := false
			for _, b := range list {
				repeated = repeated || b.origin == a.origin && b.target == a.target
			}
			if !repeated { // two puts to one location in one epoch have no order
				list = append(list, a)
			}
		}
	}
	switch kind {
	case 0:
		r.fence()
	case 3:
		l, e := r.win.LockAll(0)
		r.end(e)
		r.until(l.Advance, l.Check)
		r.end(l.Err())
	}
	var mems [][]byte
	checks := []func(){}
	for i, a := range list {
		if a.origin != r.n {
			continue
		}
		if kind == 1 || kind == 2 {
			r.lock(a.target, kind == 2)
		}
		at := 8*counters + r.n*r.win.slot
		// The get reads data of an earlier epoch, where this epoch puts nothing.
		old := r.w.memory(8 * (1 + r.own.IntN(4)))
		place := at + 8*r.own.IntN(r.win.slot/8-len(old)/8+1)
		if place+len(old) <= at+a.at || place >= at+a.at+a.n {
			want := append([]byte(nil), r.win.model[a.target][place:place+len(old)]...)
			r.end(r.win.get(longsBuf(old), a.target, place))
			checks = append(checks, func() {
				r.check(string(old) == string(want), "step %d: a get from rank %d gave %v, not %v", step, a.target, longs(old), longs(want))
			})
		}
		data, operand, result := r.w.memory(a.n), r.w.memory(8), r.w.memory(8)
		fill(data, a.key)
		r.end(r.win.put(longsBuf(data), a.target, at+a.at))
		r.compute()
		longs(operand)[0] = a.add
		var res *p2p.Buf
		if a.fetch {
			b := longsBuf(result)
			res = &b
		}
		r.win.settled(a.target)
		r.end(r.win.Accumulate(longsBuf(operand), res, r.win.target(a.target, 8*a.counter, 8), op.Sum))
		if a.fetch {
			key := fmt.Sprint(step, a.target, a.counter)
			checks = append(checks, func() { r.w.taken[key] = append(r.w.taken[key], longs(result)[0], a.add) })
		}
		mems = append(mems, old, data, operand, result)
		if kind == 1 || kind == 2 {
			r.unlock(a.target)
		} else if kind == 3 && i%2 == 0 {
			r.flush(a.target)
		}
	}
	switch kind {
	case 0:
		r.fence()
		r.win.Fenced(rma.ModeNoSucceed)
	case 3:
		r.flush(-1)
		r.win.UnlockAll()
	}
	for _, check := range checks {
		check()
	}
	before := append([]byte(nil), r.win.model[r.n][:8*counters]...)
	for _, a := range list {
		m := r.win.model[a.target]
		at := 8*counters + a.origin*r.win.slot + a.at
		fill(m[at:at+a.n], a.key)
		longs(m)[a.counter] += a.add
	}
	r.barrier()
	if string(r.win.view) != string(r.win.model[r.n]) {
		for i := range longs(r.win.view) {
			got, want := longs(r.win.view)[i], longs(r.win.model[r.n])[i]
			r.check(got == want, "step %d: element %d of rank %d's window is %d, not %d (epoch %d, %s)", step, i, r.n, got, want, kind, r.win.Path((r.n+1)%n))
		}
	}
	r.fetched(step, longs(before))
	for _, mem := range mems {
		r.w.reclaim(mem)
	}
	r.w.count["epochs"]++
	r.barrier()
}

// fetched checks the results of fetching operations on this rank's counters: each must
// be a sum of operations that came before it, and no two may be the same.
func (r *rank) fetched(step int, before []int64) {
	for c, from := range before {
		list := r.w.taken[fmt.Sprint(step, r.n, c)]
		to := longs(r.win.model[r.n])[c]
		seen := map[int64]bool{}
		for i := 0; i < len(list); i += 2 {
			old, add := list[i], list[i+1]
			r.check(old >= from && old+add <= to && !seen[old], "step %d: counter %d of rank %d went from %d to %d, but one fetch found %d", step, c, r.n, from, to, old)
			seen[old] = true
		}
	}
}

// reset does what mpi.Reset does.
func (r *rank) reset() {
	to := r.p2p.Generation() + 2
	me := &r.w.seg.Ranks[r.n]
	all := func(gen uint32) {
		r.until(func() bool {
			for i := range r.w.seg.Ranks {
				if int32(atomic.LoadUint32(&r.w.seg.Ranks[i].Gen)-gen) < 0 && !r.eng.Gone(i) {
					return false
				}
			}
			return true
		}, nil)
	}
	atomic.StoreUint32(&me.Gen, to-1)
	r.w.seg.RingAll()
	all(to - 1)
	r.p2p.Reset(to)
	r.rma.Reset(to)
	r.coll.Restart()
	if r.coll.Bar != nil {
		r.coll.Bar.Zero()
	}
	r.win.Reset()
	atomic.StoreUint32(&me.Gen, to)
	r.w.seg.RingAll()
	all(to)
	r.p2p.Settle()
}
