package rma_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/ranktest"
	"gormapy/gocore/rma"
	"gormapy/gocore/sys"
)

// paths are the paths to a target that a window can have.
var paths = []struct {
	name    string
	flavor  rma.Flavor
	oneCopy bool
	net     *fabric.Caps // not nil: the ranks reach each other by a network that can do this
}{
	{"direct", rma.FlavorAllocate, true, nil}, {"copy", rma.FlavorCreate, true, nil}, {"message", rma.FlavorCreate, false, nil},
	{"message", rma.FlavorAllocate, false, &fabric.Caps{}},
	{"rdma", rma.FlavorCreate, false, &fabric.Caps{OneSided: true, Keys: true}},
	{"rdma", rma.FlavorAllocate, false, &fabric.Caps{OneSided: true, Keys: true, Atomics: true}},
}

// window is a window made by hand from its parts, as package mpi does.
type window struct {
	*rma.Win
	r    *ranktest.Rank
	comm *coll.Comm
	mem  []byte
	keep []byte
}

// run calls f with a window of size bytes on each of n ranks, for every path.
func run(t *testing.T, n, size, unit int, f func(w *window)) {
	for _, path := range paths {
		name := fmt.Sprintf("%s,%s,ranks=%d", path.name, path.flavor, n)
		if path.net != nil {
			name += fmt.Sprintf(",net(atomics=%t)", path.net.Atomics)
		}
		t.Run(name, func(t *testing.T) {
			segs := make(chan *sys.Segment, 1)
			runRanks := func(f func(r *ranktest.Rank)) {
				if path.net != nil {
					ranktest.RunNet(t, n, *path.net, f)
				} else {
					ranktest.Run(t, n, path.oneCopy, f)
				}
			}
			runRanks(func(r *ranktest.Rank) {
				w := &window{r: r}
				m := rma.New(r.Engine)
				w.comm = &coll.Comm{Chan: r.P2P.Open(1, r.Rank, r.World), Rank: r.Rank, Size: n}
				var addr unsafe.Pointer
				if path.flavor == rma.FlavorCreate {
					// Not Go's memory, as in a job; the race detector would not see that
					// locks in mapped memory order the accesses.
					keep, err := unix.Mmap(-1, 0, max(size, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
					require.NoError(r.T, err)
					defer func() { assert.NoError(r.T, unix.Munmap(keep)) }()
					w.keep = keep
					addr = unsafe.Pointer(&w.keep[0])
				}
				mine := []rma.Offer{m.NewOffer(path.flavor, addr, size, unit)}
				offers := make([]rma.Offer, n)
				b := p2p.Buf{Addr: unsafe.Pointer(&mine[0]), Count: rma.OfferBytes, Type: dtype.ByName("BYTE")}
				w.wait(w.comm.Allgather(&b, coll.Uniform(p2p.Buf{Addr: unsafe.Pointer(&offers[0]), Count: rma.OfferBytes, Type: b.Type}, n)))
				require.Nil(r.T, rma.CheckOffers(offers))
				if r.Rank == 0 {
					seg, e := rma.CreateSegment(offers, 0, new(rma.Offer))
					require.Nil(r.T, e)
					segs <- seg
				}
				seg := <-segs
				segs <- seg
				// Each rank has a mapping of its own, as a process does.
				own, err := sys.OpenSegmentPath(fmt.Sprintf("/proc/self/fd/%d", seg.FD))
				require.NoError(r.T, err)
				region := m.Register(&mine[0], r.Rank, r.World, offers, own)
				w.wait(w.comm.Allgather(&b, coll.Uniform(p2p.Buf{Addr: unsafe.Pointer(&offers[0]), Count: rma.OfferBytes, Type: b.Type}, n)))
				var e *errs.Error
				w.Win, e = m.NewWin(&rma.Setup{ID: 7, Rank: r.Rank, World: r.World, Offers: offers, Segment: own, Region: region,
					Copies: m.CanCopy(offers, r.World)})
				require.Nil(r.T, e)
				w.Bar = coll.NewBarrier(r.Engine.Job, 3, r.World)
				base := w.Desc.Target(r.Rank).Base
				if size > 0 {
					w.mem = unsafe.Slice((*byte)(base), size)
				}
				if n > 1 && size > 0 {
					require.Equal(r.T, path.name, w.Path((r.Rank+1)%n))
				}
				w.barrier()
				f(w)
				w.barrier()
				if r.Rank == 0 {
					(<-segs).CloseFD()
				}
				w.Free(true)
			})
		})
	}
}

func (w *window) wait(o *coll.Op) {
	w.r.Until(o.Advance, o.Check)
	require.Nil(w.r.T, o.Err())
}

func (w *window) barrier() { w.wait(w.comm.BarrierByMessages()) }

func (w *window) quiet(rank int) {
	w.r.Until(func() bool { return w.Quiet(rank) }, func() error { return w.CheckQuiet(rank) })
	require.Nil(w.r.T, w.Failure())
}

func (w *window) fence() {
	require.Nil(w.r.T, w.CheckFence(0))
	w.quiet(-1)
	w.barrier()
	w.Settle(true)
	w.Fenced(0)
}

// settled waits until rank has settled the last fence, as package mpi does before it
// copies.
func (w *window) settled(rank int) {
	w.r.Until(func() bool { return w.Settled(rank) }, func() error { return w.CheckSettled(rank) })
}

func (w *window) Put(origin p2p.Buf, s rma.TargetSpec) *errs.Error {
	e := w.Win.Put(origin, s)
	if e == rma.ErrUnsettled {
		w.settled(s.Rank)
		e = w.Win.Put(origin, s)
	}
	return e
}

func (w *window) Get(origin p2p.Buf, s rma.TargetSpec) *errs.Error {
	w.settled(s.Rank)
	return w.Win.Get(origin, s)
}

func (w *window) Accumulate(origin p2p.Buf, result *p2p.Buf, s rma.TargetSpec, f op.Op) *errs.Error {
	w.settled(s.Rank)
	return w.Win.Accumulate(origin, result, s, f)
}

func (w *window) lock(rank int, excl bool) {
	l, e := w.Lock(rank, excl, 0)
	require.Nil(w.r.T, e)
	w.r.Until(l.Advance, l.Check)
}

func (w *window) unlock(rank int) {
	require.Nil(w.r.T, w.CheckUnlock("Unlock", rank))
	w.quiet(rank)
	w.Unlock(rank)
}

func targetOf(rank, disp, count int, name string) rma.TargetSpec {
	return rma.TargetSpec{Rank: rank, Disp: disp, Count: count, Type: dtype.ByName(name)}
}

func longs(v []int64) p2p.Buf {
	return p2p.Buf{Addr: unsafe.Pointer(&v[0]), Count: len(v), Type: dtype.ByName("INT64_T")}
}

func view(b []byte) []int64 { return unsafe.Slice((*int64)(unsafe.Pointer(&b[0])), len(b)/8) }

func TestPutGetFence(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		run(t, n, 8*100_000, 8, func(w *window) {
			right := (w.Rank + 1) % n
			left := (w.Rank + n - 1) % n
			for _, k := range []int{1, 100, 100_000} {
				out, in := make([]int64, k), make([]int64, k)
				for i := range out {
					out[i] = int64(w.Rank*1_000_000 + i)
				}
				w.fence()
				require.Nil(w.r.T, w.Put(longs(out), targetOf(right, 0, k, "INT64_T")))
				w.fence()
				for i := range k {
					require.Equal(w.r.T, int64(left*1_000_000+i), view(w.mem)[i])
				}
				require.Nil(w.r.T, w.Get(longs(in), targetOf(right, 0, k, "INT64_T")))
				w.fence()
				require.Equal(w.r.T, out, in)
			}
		})
	}
}

// TestAtomicity has every rank add to every rank's elements at the same time, with and
// without fetching the previous value, and checks that no update is lost.
func TestAtomicity(t *testing.T) {
	for _, typ := range []string{"INT64_T", "INT32_T", "INT16_T", "INT8_T", "DOUBLE"} {
		run(t, 4, 64, 1, func(w *window) {
			const rounds = 100
			elem := dtype.ByName(typ)
			one := make([]byte, 8)
			switch typ {
			case "DOUBLE":
				*(*float64)(unsafe.Pointer(&one[0])) = 1
			default:
				one[0] = 1
			}
			b := p2p.Buf{Addr: unsafe.Pointer(&one[0]), Count: 1, Type: elem}
			old := make([]byte, 8)
			res := p2p.Buf{Addr: unsafe.Pointer(&old[0]), Count: 1, Type: elem}
			for round := range rounds {
				for target := range 4 {
					w.lock(target, false)
					require.Nil(w.r.T, w.Accumulate(b, nil, targetOf(target, 8, 1, typ), op.Sum))
					// The same at an unaligned displacement is another element.
					require.Nil(w.r.T, w.Accumulate(b, &res, targetOf(target, 33, 1, typ), op.Sum))
					w.unlock(target)
				}
				_ = round
			}
			w.barrier()
			total := 4 * rounds
			read := func(at int) int {
				p := unsafe.Pointer(&w.mem[at])
				switch typ {
				case "INT64_T":
					return int(*(*int64)(p))
				case "INT32_T":
					return int(*(*int32)(p))
				case "INT16_T":
					return int(*(*int16)(p))
				case "INT8_T":
					total = int(int8(total & 0xff)) // it wraps around
					return int(*(*int8)(p))
				}
				return int(*(*float64)(p))
			}
			got8, got33 := read(8), read(33)
			assert.Equal(w.r.T, total, got8)
			assert.Equal(w.r.T, total, got33)
		})
	}
}

// TestCompareAndSwap checks a counter that all ranks increase by compare-and-swap.
func TestCompareAndSwap(t *testing.T) {
	for _, typ := range []string{"INT64_T", "INT32_T", "INT16_T"} {
		run(t, 4, 24, 1, func(w *window) {
			elem := dtype.ByName(typ)
			size := elem.Size()
			var have, want, got [8]byte
			w.lock(0, false)
			for done := 0; done < 50; {
				next := int64(0)
				for i := range size {
					next |= int64(have[i]) << (8 * i)
				}
				next++
				for i := range size {
					want[i] = byte(next >> (8 * i))
				}
				require.Nil(w.r.T, w.CompareAndSwap(unsafe.Pointer(&want), unsafe.Pointer(&have), unsafe.Pointer(&got), elem, 0, 8))
				w.quiet(0)
				if got == have {
					done++
					have = want
				} else {
					have = got
				}
			}
			w.unlock(0)
			w.barrier()
			if w.Rank == 0 {
				assert.Equal(w.r.T, byte(200), w.mem[8])
				assert.Zero(w.r.T, w.mem[8+size])
			}
		})
	}
}

// TestExclusiveLock checks a read-modify-write without atomics under the exclusive lock.
func TestExclusiveLock(t *testing.T) {
	run(t, 4, 8, 8, func(w *window) {
		const rounds = 100
		v := make([]int64, 1)
		for range rounds {
			w.lock(0, true)
			require.Nil(w.r.T, w.Get(longs(v), targetOf(0, 0, 1, "INT64_T")))
			w.quiet(0)
			v[0]++
			require.Nil(w.r.T, w.Put(longs(v), targetOf(0, 0, 1, "INT64_T")))
			w.unlock(0)
		}
		w.barrier()
		if w.Rank == 0 {
			assert.Equal(w.r.T, int64(4*rounds), view(w.mem)[0])
		}
	})
}

// TestPassiveTarget checks that operations complete at a target that makes no call.
func TestPassiveTarget(t *testing.T) {
	over := make(chan struct{}, 1)
	run(t, 2, 8, 8, func(w *window) {
		if w.Rank == 1 {
			<-over // in no call
			return
		}
		v := []int64{5}
		for range 20 {
			w.lock(1, true)
			require.Nil(w.r.T, w.Put(longs(v), targetOf(1, 0, 1, "INT64_T")))
			w.unlock(1)
		}
		over <- struct{}{}
	})
}

// TestDerivedTarget transposes: it puts rows of the origin to columns of the target. Then
// it gets columns, and accumulates to one.
func TestDerivedTarget(t *testing.T) {
	const n = 40
	column, err := dtype.Vector(dtype.ByName("INT64_T"), n, 1, n)
	require.NoError(t, err)
	run(t, 2, 8*n*n, 8, func(w *window) {
		other := 1 - w.Rank
		out, in := make([]int64, n*n), make([]int64, n*n)
		for i := range out {
			out[i] = int64(w.Rank*10_000 + i)
		}
		w.fence()
		for j := range n {
			row := p2p.Buf{Addr: unsafe.Pointer(&out[j*n]), Count: n, Type: dtype.ByName("INT64_T")}
			require.Nil(w.r.T, w.Put(row, rma.TargetSpec{Rank: other, Disp: j, Count: 1, Type: column}))
		}
		w.fence()
		for i := range n {
			for j := range n {
				require.Equal(w.r.T, int64(other*10_000+i*n+j), view(w.mem)[j*n+i])
			}
		}
		for j := range n {
			col := p2p.Buf{Addr: unsafe.Pointer(&in[j]), Count: 1, Type: column}
			require.Nil(w.r.T, w.Get(col, rma.TargetSpec{Rank: w.Rank, Disp: j, Count: 1, Type: column}))
		}
		w.fence()
		require.Equal(w.r.T, view(w.mem), in)
		w.barrier() // otherwise a fast origin adds while a slow target still compares
		// Sums into a column, with the previous values.
		ones, old := make([]int64, n), make([]int64, n)
		for i := range ones {
			ones[i] = 1
		}
		res := longs(old)
		require.Nil(w.r.T, w.Accumulate(longs(ones), &res, rma.TargetSpec{Rank: other, Disp: 3, Count: 1, Type: column}, op.Sum))
		w.fence()
		for i := range n {
			require.Equal(w.r.T, int64(other*10_000+3*n+i)+1, view(w.mem)[i*n+3])
		}
	})
}

func TestErrorsBeforeHarm(t *testing.T) {
	run(t, 2, 64, 8, func(w *window) {
		v := longs(make([]int64, 1))
		class := func(e *errs.Error) errs.Class {
			require.NotNil(w.r.T, e)
			return e.Class
		}
		is := func(want errs.Class, e *errs.Error) { assert.Equal(w.r.T, want, class(e)) }
		is(errs.RMASync, w.Put(v, targetOf(0, 0, 1, "INT64_T"))) // no epoch
		is(errs.RMASync, w.CheckUnlock("Unlock", 0))
		is(errs.RMASync, w.CheckUnlockAll("Unlock_all"))
		w.lock(w.Rank, true)
		is(errs.RMASync, w.CheckFence(0))
		_, e := w.Win.Lock(w.Rank, false, 0)
		is(errs.RMASync, e)
		is(errs.RMASync, w.Put(v, targetOf(1-w.Rank, 0, 1, "INT64_T"))) // not locked
		is(errs.Rank, w.Put(v, targetOf(2, 0, 1, "INT64_T")))
		is(errs.RMARange, w.Put(v, targetOf(w.Rank, 8, 1, "INT64_T")))
		is(errs.RMARange, w.Put(v, targetOf(w.Rank, 1<<60, 1, "INT64_T")))
		is(errs.Disp, w.Put(v, targetOf(w.Rank, -1, 1, "INT64_T")))
		is(errs.Type, w.Put(v, targetOf(w.Rank, 0, 2, "INT64_T")))
		is(errs.Op, w.Accumulate(p2p.Buf{Addr: v.Addr, Count: 1, Type: dtype.ByName("DOUBLE")}, nil, targetOf(w.Rank, 0, 1, "DOUBLE"), op.Bxor))
		is(errs.Type, w.Accumulate(v, nil, targetOf(w.Rank, 0, 1, "DOUBLE"), op.Sum))
		is(errs.Type, w.CompareAndSwap(v.Addr, v.Addr, v.Addr, dtype.ByName("DOUBLE"), w.Rank, 0))
		_, e = w.Win.Lock(7, false, 0)
		is(errs.Rank, e)
		_, e = w.Win.Lock(1-w.Rank, false, 3)
		is(errs.Assert, e)
		assert.Equal(w.r.T, make([]byte, 64), w.mem, "nothing was written")
		require.Nil(w.r.T, w.Put(v, targetOf(w.Rank, 7, 1, "INT64_T")), "the last element is in range")
		w.unlock(w.Rank)
	})
}

// TestLater checks that results are there when the call returns unless Later reports
// true, also on this rank itself. Callers of Later keep the memory of later results.
func TestLater(t *testing.T) {
	run(t, 2, 64, 8, func(w *window) {
		l, e := w.LockAll(0)
		require.Nil(w.r.T, e)
		w.r.Until(l.Advance, l.Check)
		for rank := range 2 {
			one, old := []int64{1}, []int64{-7}
			result := longs(old)
			require.Nil(w.r.T, w.Accumulate(longs(one), &result, targetOf(rank, w.r.Rank, 1, "INT64_T"), op.Sum))
			if !w.Later(rank) {
				assert.Zero(w.r.T, old[0])
			}
			w.quiet(rank)
			assert.Zero(w.r.T, old[0])
		}
		w.UnlockAll()
	})
}

// TestRefusedUpdate checks that an update by messages completes, too, when the target
// refuses it.
func TestRefusedUpdate(t *testing.T) {
	run(t, 2, 64, 1, func(w *window) {
		l, e := w.LockAll(0)
		require.Nil(w.r.T, e)
		w.r.Until(l.Advance, l.Check)
		if w.r.Rank == 0 && w.Path(1) != "direct" && w.Path(1) != "copy" {
			w.Desc.Target(1).Bytes = 1 << 10 // so that only the target can refuse it
			for _, disp := range []int{260, 264} {
				one, old := []int64{1}, []int64{-7}
				result := longs(old)
				s := targetOf(1, disp, 1, "INT64_T")
				require.Nil(w.r.T, w.Accumulate(longs(one), &result, s, op.Sum))
				w.r.Until(func() bool { return w.Quiet(1) }, func() error { return w.CheckQuiet(1) })
				assert.NotNil(w.r.T, w.Failure())
			}
			w.Desc.Target(1).Bytes = 64
		}
		w.UnlockAll()
	})
}
