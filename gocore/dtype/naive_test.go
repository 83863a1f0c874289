package dtype

import (
	"fmt"
	"math/rand/v2"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// naive is a type map as the standard writes it: an expanded list of basic elements with
// their displacements, and of bound markers. The tests compare the engine with it.
type naive struct {
	entries []entry
	marks   []mark
}

type entry struct {
	off, size, align int
	kind             Kind
}

type mark struct{ lb, ub int }

func naiveOf(t *Type) naive {
	k := t.Kind()
	if !k.IsPair() {
		return naive{entries: []entry{{0, k.Size(), kindTable[k].align, k}}}
	}
	v := k.PairValue()
	return naive{entries: []entry{
		{0, v.Size(), kindTable[v].align, k},
		{k.PairIndex(), 4, 4, k},
	}}
}

func (m naive) size() (n int) {
	for _, e := range m.entries {
		n += e.size
	}
	return n
}

func (m naive) trueBounds() (lb, ub int) {
	for i, e := range m.entries {
		if i == 0 {
			lb, ub = e.off, e.off+e.size
		}
		lb, ub = min(lb, e.off), max(ub, e.off+e.size)
	}
	return lb, ub
}

func (m naive) bounds() (lb, ub int) {
	if len(m.marks) > 0 {
		lb, ub = m.marks[0].lb, m.marks[0].ub
		for _, k := range m.marks {
			lb, ub = min(lb, k.lb), max(ub, k.ub)
		}
		return lb, ub
	}
	lb, ub = m.trueBounds()
	align := 1
	for _, e := range m.entries {
		align = max(align, e.align)
	}
	for (ub-lb)%align != 0 {
		ub++
	}
	return lb, ub
}

func (m naive) extent() int {
	lb, ub := m.bounds()
	return ub - lb
}

// place appends n copies of old at off, an extent apart.
func (m *naive) place(old naive, off, n int) {
	ex := old.extent()
	for i := range n {
		for _, e := range old.entries {
			e.off += off + i*ex
			m.entries = append(m.entries, e)
		}
		for _, k := range old.marks {
			m.marks = append(m.marks, mark{k.lb + off + i*ex, k.ub + off + i*ex})
		}
	}
}

// bytes returns the offset of each data byte of count items in stream order.
func (m naive) bytes(count int) []int {
	var all naive
	all.place(m, 0, count)
	var offs []int
	for _, e := range all.entries {
		for i := range e.size {
			offs = append(offs, e.off+i)
		}
	}
	return offs
}

// overlaps reports whether items with data bytes at offs have a byte twice: such a type
// may be sent but not received into.
func overlaps(offs []int) bool {
	seen := map[int]bool{}
	for _, o := range offs {
		if seen[o] {
			return true
		}
		seen[o] = true
	}
	return false
}

// randomType returns a type made by a few random constructors, and its type map.
func randomType(t require.TestingT, r *rand.Rand, depth int) (*Type, naive) {
	if depth == 0 || r.IntN(6) == 0 {
		p := predefined[r.IntN(len(predefined))]
		return p, naiveOf(p)
	}
	old, m := randomType(t, r, depth-1)
	ex := m.extent()
	n, bl, stride := r.IntN(5), r.IntN(4), r.IntN(13)-5
	blocks := r.IntN(5)
	bls, displs := make([]int, blocks), make([]int, blocks)
	for i := range blocks {
		bls[i], displs[i] = r.IntN(4), r.IntN(25)-8
		if r.IntN(2) == 0 && i > 0 {
			// Adjacent blocks and blocks at equal distances are the engine's
			// special cases.
			displs[i] = displs[i-1] + bls[i-1]
		}
	}

	var got *Type
	var want naive
	var err error
	switch r.IntN(13) {
	case 0:
		got, err = Dup(old)
		want = m
	case 1:
		got, err = Contiguous(old, n)
		want.place(m, 0, n)
	case 2:
		got, err = Vector(old, n, bl, stride)
		for i := range n {
			want.place(m, i*stride*ex, bl)
		}
	case 3:
		got, err = Hvector(old, n, bl, stride*3)
		for i := range n {
			want.place(m, i*stride*3, bl)
		}
	case 4:
		got, err = Indexed(old, bls, displs)
		for i := range bls {
			want.place(m, displs[i]*ex, bls[i])
		}
	case 5:
		got, err = Hindexed(old, bls, displs)
		for i := range bls {
			want.place(m, displs[i], bls[i])
		}
	case 6:
		got, err = IndexedBlock(old, bl, displs)
		for _, d := range displs {
			want.place(m, d*ex, bl)
		}
	case 7:
		got, err = HindexedBlock(old, bl, displs)
		for _, d := range displs {
			want.place(m, d, bl)
		}
	case 8, 9:
		types := make([]*Type, blocks)
		for i := range types {
			var mi naive
			if types[i], mi = old, m; r.IntN(2) == 0 {
				types[i], mi = randomType(t, r, depth-1)
			}
			want.place(mi, displs[i], bls[i])
		}
		got, err = Struct(bls, displs, types)
	case 10:
		dims := 1 + r.IntN(3)
		sizes, subs, starts := make([]int, dims), make([]int, dims), make([]int, dims)
		for i := range dims {
			sizes[i] = 1 + r.IntN(4)
			subs[i] = 1 + r.IntN(sizes[i])
			starts[i] = r.IntN(sizes[i] - subs[i] + 1)
		}
		orderC := r.IntN(2) == 0
		got, err = Subarray(old, sizes, subs, starts, orderC)
		want = naiveSubarray(m, sizes, subs, starts, orderC)
	case 11:
		lb, extent := r.IntN(40)-20, r.IntN(60)-10
		got, err = Resized(old, lb, extent)
		want = naive{entries: m.entries, marks: []mark{{lb, lb + extent}}}
	case 12:
		got, want, err = randomDarray(r, old, m)
	}
	require.NoError(t, err)
	return got, want
}

func naiveSubarray(m naive, sizes, subs, starts []int, orderC bool) naive {
	return naiveArray(m, sizes, orderC, func(d, x int) bool { return x >= starts[d] && x < starts[d]+subs[d] })
}

// naiveArray returns the items of an array, in memory order, whose index is inside along
// every dimension.
func naiveArray(m naive, sizes []int, orderC bool, inside func(dim, index int) bool) (want naive) {
	dims, total := len(sizes), 1
	for _, s := range sizes {
		total *= s
	}
	ex := m.extent()
	for i := range total {
		keep, rest := true, i
		for j := range dims {
			d := j
			if orderC {
				d = dims - 1 - j
			}
			keep = keep && inside(d, rest%sizes[d])
			rest /= sizes[d]
		}
		if keep {
			want.place(m, i*ex, 1)
		}
	}
	want.marks = []mark{{0, total * ex}}
	return want
}

func randomDarray(r *rand.Rand, old *Type, m naive) (*Type, naive, error) {
	dims, size := 1+r.IntN(3), 1
	gsizes, distribs, dargs, psizes := make([]int, dims), make([]int, dims), make([]int, dims), make([]int, dims)
	for i := range dims {
		gsizes[i], psizes[i], dargs[i] = 1+r.IntN(7), 1+r.IntN(3), DistributeDefault
		distribs[i] = DistributeBlock + r.IntN(3)
		switch {
		case distribs[i] == DistributeNone:
			psizes[i] = 1
		case r.IntN(2) == 0:
			dargs[i] = 1 + r.IntN(4)
			if distribs[i] == DistributeBlock {
				dargs[i] += (gsizes[i] - 1) / psizes[i]
			}
		}
		size *= psizes[i]
	}
	rank, orderC := r.IntN(size), r.IntN(2) == 0
	got, err := Darray(old, size, rank, gsizes, distribs, dargs, psizes, orderC)

	coords, rest := make([]int, dims), rank
	for i := dims - 1; i >= 0; i-- {
		coords[i], rest = rest%psizes[i], rest/psizes[i]
	}
	want := naiveArray(m, gsizes, orderC, func(d, x int) bool {
		block := dargs[d]
		switch {
		case distribs[d] == DistributeNone:
			return true
		case block == DistributeDefault && distribs[d] == DistributeCyclic:
			block = 1
		case block == DistributeDefault:
			block = (gsizes[d] + psizes[d] - 1) / psizes[d]
		}
		return x/block%psizes[d] == coords[d]
	})
	return got, want, err
}

// memory is a buffer for items that touch [lo, hi) around its address.
type memory struct {
	bytes []byte
	zero  int // index of offset 0
}

func newMemory(lo, hi int) memory {
	lo, hi = min(lo, 0), max(hi, 1)
	return memory{make([]byte, hi-lo), -lo}
}

func (m memory) at(off int) unsafe.Pointer { return unsafe.Pointer(&m.bytes[m.zero+off]) }

func (m memory) fill() memory {
	for i := range m.bytes {
		m.bytes[i] = byte(i*7 + i>>8 + 1)
	}
	return m
}

func describe(t *Type) string {
	combiner, ints, addrs, types := t.Envelope()
	if combiner == "NAMED" {
		return t.Name()
	}
	s := fmt.Sprintf("%s(%v %v", combiner, ints, addrs)
	for _, u := range types {
		s += " " + describe(u)
	}
	return s + ")"
}
