package arena

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// The sizes of blocks are powers of two from a cache line to half of the smallest page,
// so that no two allocations share a line and each is aligned to its size.
const (
	smallestBlock = 64
	classes       = 6
	slabBytes     = 64 << 10
)

func blockBytes(class int) uint64 { return smallestBlock << class }

// classOf returns the class of the block for an allocation of n bytes; small is false
// if the allocation takes pages.
func classOf(n int) (class int, small bool) {
	class = max(bits.Len(uint(max(n, 1)-1))-bits.Len(smallestBlock-1), 0)
	return class, class < classes
}

// blocks records which blocks of a slab are allocated.
type blocks struct {
	class int
	used  [slabBytes / smallestBlock / 64]uint64
	n     int // number of allocated blocks
}

// capacity returns the number of blocks in the slab.
func (b *blocks) capacity() int { return int(slabBytes / blockBytes(b.class)) }

// holds reports whether the n bytes at offset in of the slab are in one allocated
// block.
func (b *blocks) holds(in, n uint64) bool {
	size := blockBytes(b.class)
	i := in / size
	if n == 0 && i > 0 && in%size == 0 && !b.has(i) {
		i-- // no bytes at the end of the block before
	}
	return b.has(i) && in+n <= (i+1)*size
}

func (b *blocks) has(i uint64) bool { return i < uint64(b.capacity()) && b.used[i/64]>>(i%64)&1 == 1 }

// block allocates a block of the class. The caller holds the heap's lock.
func (h *heap) block(class int) (unsafe.Pointer, error) {
	if len(h.slabs[class]) == 0 {
		s, err := h.span(slabBytes, 0, noLock{})
		if err != nil {
			return nil, err
		}
		s.blocks = &blocks{class: class}
		h.slabs[class] = append(h.slabs[class], s)
	}
	slabs := h.slabs[class]
	s := slabs[len(slabs)-1]
	b := s.blocks
	for word := range b.used {
		if free := ^b.used[word]; free != 0 {
			bit := bits.TrailingZeros64(free)
			b.used[word] |= 1 << bit
			if b.n++; b.n == b.capacity() {
				h.slabs[class] = slabs[:len(slabs)-1]
			}
			p := unsafe.Add(s.pointer(), uint64(word*64+bit)*blockBytes(class))
			clear(unsafe.Slice((*byte)(p), blockBytes(class)))
			return p, nil
		}
	}
	panic("arena: a slab without a free block is among those that have one")
}

// freeBlock frees the block at addr. The caller holds the heap's lock.
func (h *heap) freeBlock(s *span, addr uintptr) error {
	b := s.blocks
	in := uint64(addr - s.addr)
	i := in / blockBytes(b.class)
	if in%blockBytes(b.class) != 0 || !b.has(i) {
		return fmt.Errorf("free memory at %#x: nothing is allocated there", addr)
	}
	b.used[i/64] &^= 1 << (i % 64)
	if b.n == b.capacity() {
		h.slabs[b.class] = append(h.slabs[b.class], s)
	}
	b.n--
	// One empty slab of a class is kept, so that a program that repeatedly allocates
	// and frees one block makes no system calls.
	if slabs := h.slabs[b.class]; b.n == 0 && len(slabs) > 1 {
		h.slabs[b.class] = slices.DeleteFunc(slabs, func(o *span) bool { return o == s })
		h.remove(s)
		h.giveBack(s)
		h.reuse(s)
	}
	return nil
}
