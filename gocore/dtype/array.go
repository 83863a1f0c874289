package dtype

import "fmt"

// The orders of an array's dimensions, as Envelope returns them.
const (
	OrderC       = 56 // the last dimension is contiguous
	OrderFortran = 57 // the first dimension is contiguous
)

// Subarray returns the part of an array of items of old that starts at starts
// and has subsizes items along each dimension; its extent is that of the whole array.
func Subarray(old *Type, sizes, subsizes, starts []int, orderC bool) (*Type, error) {
	const call = "Create_subarray"
	b, err := start(call, old)
	if err != nil {
		return nil, err
	}
	n := len(sizes)
	if n == 0 || len(subsizes) != n || len(starts) != n {
		return nil, fmt.Errorf("%w: %s: %d sizes, %d subsizes and %d starts; there must be one of each per dimension, and at least one dimension",
			ErrArg, call, n, len(subsizes), len(starts))
	}
	for i, size := range sizes {
		switch {
		case size < 1:
			return nil, fmt.Errorf("%w: %s: sizes[%d] is %d; it must be at least 1", ErrArg, call, i, size)
		case subsizes[i] < 1 || subsizes[i] > size:
			return nil, fmt.Errorf("%w: %s: subsizes[%d] is %d; it must be from 1 to sizes[%d], which is %d",
				ErrArg, call, i, subsizes[i], i, size)
		case starts[i] < 0 || starts[i] > size-subsizes[i]:
			return nil, fmt.Errorf("%w: %s: starts[%d] is %d; it must be from 0 to sizes[%d]-subsizes[%d], which is %d",
				ErrArg, call, i, starts[i], i, i, size-subsizes[i])
		}
	}

	b.array(old, sizes, orderC, func(dim int) progression {
		return progression{start: starts[dim], blocks: 1, length: subsizes[dim]}
	})
	ints := append([]int{n}, sizes...)
	ints = append(append(append(ints, subsizes...), starts...), order(orderC))
	return b.done("SUBARRAY", ints, nil, old)
}

// The distributions of a dimension by Darray, and the argument that leaves the block
// size to it.
const (
	DistributeBlock  = 121
	DistributeCyclic = 122
	DistributeNone   = 123

	DistributeDefault = -49767
)

// Darray returns the part of an array of items of old, of gsizes items along
// each dimension, that process rank of size has when the array is distributed
// over a grid of psizes processes. distribs[i] is the distribution along dimension i, in
// blocks of dargs[i] items. Ranks are in row-major order in the grid. The
// extent is that of the whole array.
func Darray(old *Type, size, rank int, gsizes, distribs, dargs, psizes []int, orderC bool) (*Type, error) {
	const call = "Create_darray"
	b, err := start(call, old)
	if err != nil {
		return nil, err
	}
	n := len(gsizes)
	if n == 0 || len(distribs) != n || len(dargs) != n || len(psizes) != n {
		return nil, fmt.Errorf("%w: %s: %d gsizes, %d distribs, %d dargs and %d psizes; there must be one of each per dimension, and at least one dimension",
			ErrArg, call, n, len(distribs), len(dargs), len(psizes))
	}
	if size < 1 || rank < 0 || rank >= size {
		return nil, fmt.Errorf("%w: %s: rank is %d of size %d; it must be from 0 to size-1", ErrArg, call, rank, size)
	}
	var a arith
	grid := 1
	for i, p := range psizes {
		if p < 1 {
			return nil, fmt.Errorf("%w: %s: psizes[%d] is %d; it must be at least 1", ErrArg, call, i, p)
		}
		grid = a.mul(grid, p)
	}
	if grid != size || a.overflow {
		return nil, fmt.Errorf("%w: %s: size is %d, but the grid of psizes %v has another number of processes", ErrArg, call, size, psizes)
	}

	parts := make([]progression, n)
	rest := rank
	for i := n - 1; i >= 0; i-- {
		coord := rest % psizes[i]
		rest /= psizes[i]
		if parts[i], err = distribute(call, i, gsizes[i], distribs[i], dargs[i], psizes[i], coord); err != nil {
			return nil, err
		}
	}
	b.array(old, gsizes, orderC, func(dim int) progression { return parts[dim] })
	ints := append([]int{size, rank, n}, gsizes...)
	ints = append(append(append(append(ints, distribs...), dargs...), psizes...), order(orderC))
	return b.done("DARRAY", ints, nil, old)
}

// distribute returns the indices of a dimension that the process at coord has.
func distribute(call string, dim, size, how, block, procs, coord int) (progression, error) {
	if size < 1 {
		return progression{}, fmt.Errorf("%w: %s: gsizes[%d] is %d; it must be at least 1", ErrArg, call, dim, size)
	}
	if block != DistributeDefault && block < 1 && how != DistributeNone {
		return progression{}, fmt.Errorf("%w: %s: dargs[%d] is %d; it must be at least 1 or DISTRIBUTE_DFLT_DARG", ErrArg, call, dim, block)
	}
	switch how {
	case DistributeNone:
		if procs != 1 {
			return progression{}, fmt.Errorf("%w: %s: psizes[%d] is %d, but distribs[%d] is DISTRIBUTE_NONE; it must be 1", ErrArg, call, dim, procs, dim)
		}
		block = size
	case DistributeBlock:
		smallest := (size-1)/procs + 1
		if block == DistributeDefault {
			block = smallest
		}
		if block < smallest {
			return progression{}, fmt.Errorf("%w: %s: dargs[%d] is %d; %d blocks of it do not cover gsizes[%d], which is %d; it must be at least %d",
				ErrArg, call, dim, block, procs, dim, size, smallest)
		}
	case DistributeCyclic:
		if block == DistributeDefault {
			block = 1
		}
	default:
		return progression{}, fmt.Errorf("%w: %s: distribs[%d] is %d; it must be DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC or DISTRIBUTE_NONE", ErrArg, call, dim, how)
	}
	// Longer blocks than the array are equivalent to one of its length, with which the
	// arithmetic below does not overflow.
	block = min(block, size)
	first := saturatingMul(coord, block)
	if first >= size {
		return progression{}, nil
	}
	cycle := saturatingMul(procs, block)
	whole := 0
	if size-first >= block {
		whole = (size-first-block)/cycle + 1
	}
	p := progression{start: first, blocks: whole, length: block, cycle: cycle}
	if next := saturatingAdd(first, saturatingMul(whole, cycle)); next < size {
		p.last, p.rest = next, min(block, size-next)
	}
	return p, nil
}

// progression is the set of indices along a dimension that belong to a part of an
// array: first there are blocks runs of length indices each, the first at start, cycle
// apart; then rest indices from index last on.
type progression struct {
	start, blocks, length, cycle int
	last, rest                   int
}

func (p progression) count(a *arith) int { return a.add(a.mul(p.blocks, p.length), p.rest) }

// arrange returns the piece of a dimension that belongs to p; q is the piece of one index.
func (p progression) arrange(a *arith, q piece, stride int) piece {
	var pieces []piece
	if p.blocks > 0 && p.length > 0 {
		cycle := 0
		if p.blocks > 1 {
			cycle = a.mul(p.cycle, stride)
		}
		pieces = append(pieces, q.loop(a, p.length, stride).loop(a, p.blocks, cycle).shift(a, a.mul(p.start, stride)))
	}
	if p.rest > 0 {
		pieces = append(pieces, q.loop(a, p.rest, stride).shift(a, a.mul(p.last, stride)))
	}
	return concat(a, pieces)
}

// array adds the part of an array of old that progressions select; the array
// sets the bounds.
func (b *build) array(old *Type, sizes []int, orderC bool, selected func(dim int) progression) {
	slab := *old // the faster dimensions so far
	stride := old.Extent()
	for i := range sizes {
		dim := i
		if orderC {
			dim = len(sizes) - 1 - i
		}
		p := selected(dim)
		slab.body = p.arrange(&b.arith, slab.body, stride)
		if b.pairs {
			slab.elements = p.arrange(&b.arith, slab.elements, stride)
		}
		slab.elems = b.mul(slab.elems, p.count(&b.arith))
		stride = b.mul(stride, sizes[dim])
	}
	b.block(&slab, 0, 1, 0, 1)
	b.marked, b.lb, b.ub = true, 0, stride
}

func order(orderC bool) int {
	if orderC {
		return OrderC
	}
	return OrderFortran
}
