package dtype

import "unsafe"

// direction says which way a copy between a packed stream and memory goes.
type direction bool

const (
	toStream direction = false // pack
	toMemory direction = true  // unpack
)

// Go cannot interrupt a memmove, and a goroutine that is not interrupted holds
// up every other thread when the collector wants to stop the world: longer
// copies are made in pieces.
const pieceSize = 256 << 10

func move(stream, mem unsafe.Pointer, n int, d direction) {
	if d == toMemory {
		stream, mem = mem, stream
	}
	// Each pointer is made only when there are bytes at it: one past the end
	// of a Go object must never exist.
	for at := 0; at < n; at += pieceSize {
		m := min(n-at, pieceSize)
		copy(unsafe.Slice((*byte)(unsafe.Add(stream, at)), m), unsafe.Slice((*byte)(unsafe.Add(mem, at)), m))
	}
}

// copyAll copies all of l, whose first byte in memory is at mem.
func (l *layout) copyAll(stream, mem unsafe.Pointer, d direction) {
	switch l.op {
	case opBlock:
		move(stream, mem, l.size, d)
	case opLoop:
		copyLoop(l.child, l.count, l.stride, stream, mem, d)
	case opIndex:
		copyIndex(l.child, l.offs, stream, mem, d)
	case opList:
		at := 0
		for i, p := range l.parts {
			p.l.copyAll(unsafe.Add(stream, at), unsafe.Add(mem, p.off), d)
			at = l.ends[i]
		}
	}
}

// copyRange copies the n bytes (at least 1) of l from offset skip of its
// packed form on; stream is where the first of them is.
func (l *layout) copyRange(stream, mem unsafe.Pointer, d direction, skip, n int) {
	if skip == 0 && n == l.size {
		l.copyAll(stream, mem, d)
		return
	}
	switch l.op {
	case opBlock:
		move(stream, unsafe.Add(mem, skip), n, d)
	case opLoop, opIndex:
		size := l.child.size
		at := func(i int) int {
			if l.op == opIndex {
				return l.offs[i]
			}
			return i * l.stride
		}
		i, head := skip/size, skip%size
		done := 0
		if head != 0 {
			done = min(size-head, n)
			l.child.copyRange(stream, unsafe.Add(mem, at(i)), d, head, done)
			i++
		}
		if whole := (n - done) / size; whole > 0 {
			s, m := unsafe.Add(stream, done), mem
			if l.op == opIndex {
				copyIndex(l.child, l.offs[i:i+whole], s, m, d)
			} else {
				copyLoop(l.child, whole, l.stride, s, unsafe.Add(m, at(i)), d)
			}
			i += whole
			done += whole * size
		}
		if done < n {
			l.child.copyRange(unsafe.Add(stream, done), unsafe.Add(mem, at(i)), d, 0, n-done)
		}
	case opList:
		i := l.partAt(skip)
		for done := 0; done < n; i++ {
			p := l.parts[i]
			head := skip + done - (l.ends[i] - p.l.size)
			m := min(p.l.size-head, n-done)
			p.l.copyRange(unsafe.Add(stream, done), unsafe.Add(mem, p.off), d, head, m)
			done += m
		}
	}
}

// partAt returns which part of a list holds the byte at offset skip of the
// packed form.
func (l *layout) partAt(skip int) int {
	lo, hi := 0, len(l.ends)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if l.ends[mid] <= skip {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func copyLoop(child *layout, count, stride int, stream, mem unsafe.Pointer, d direction) {
	if child.op == opBlock {
		copyStrided(count, stride, child.size, stream, mem, d)
		return
	}
	if child.op == opLoop && child.child.op == opBlock && transpose(child, count, stride, stream, mem, d) {
		return
	}
	for i := range count {
		child.copyAll(unsafe.Add(stream, i*child.size), unsafe.Add(mem, i*stride), d)
	}
}

func copyIndex(child *layout, offs []int, stream, mem unsafe.Pointer, d direction) {
	if child.op == opBlock {
		switch child.size {
		case 4:
			copyBlocksAt[uint32](offs, stream, mem, d)
			return
		case 8:
			copyBlocksAt[uint64](offs, stream, mem, d)
			return
		case 16:
			copyBlocksAt[[2]uint64](offs, stream, mem, d)
			return
		}
	}
	for i, off := range offs {
		child.copyAll(unsafe.Add(stream, i*child.size), unsafe.Add(mem, off), d)
	}
}

func copyBlocksAt[T any](offs []int, stream, mem unsafe.Pointer, d direction) {
	s := unsafe.Slice((*T)(stream), len(offs))
	if d == toMemory {
		for i, off := range offs {
			*(*T)(unsafe.Add(mem, off)) = s[i]
		}
		return
	}
	for i, off := range offs {
		s[i] = *(*T)(unsafe.Add(mem, off))
	}
}

// copyStrided copies count blocks of size bytes that are stride apart in memory.
func copyStrided(count, stride, size int, stream, mem unsafe.Pointer, d direction) {
	switch size {
	case 1:
		copyWords[uint8](count, stride, stream, mem, d)
	case 2:
		copyWords[uint16](count, stride, stream, mem, d)
	case 4:
		copyWords[uint32](count, stride, stream, mem, d)
	case 8:
		copyWords[uint64](count, stride, stream, mem, d)
	case 16:
		copyWords[[2]uint64](count, stride, stream, mem, d)
	case 24:
		copyWords[[3]uint64](count, stride, stream, mem, d)
	case 32:
		copyWords[[4]uint64](count, stride, stream, mem, d)
	default:
		for i := range count {
			move(unsafe.Add(stream, i*size), unsafe.Add(mem, i*stride), size, d)
		}
	}
}

func copyWords[T any](count, stride int, stream, mem unsafe.Pointer, d direction) {
	s := unsafe.Slice((*T)(stream), count)
	off := 0
	if d == toMemory {
		for len(s) >= 4 {
			*(*T)(unsafe.Add(mem, off)) = s[0]
			*(*T)(unsafe.Add(mem, off+stride)) = s[1]
			*(*T)(unsafe.Add(mem, off+2*stride)) = s[2]
			*(*T)(unsafe.Add(mem, off+3*stride)) = s[3]
			off += 4 * stride
			s = s[4:]
		}
		for i := range s {
			*(*T)(unsafe.Add(mem, off+i*stride)) = s[i]
		}
		return
	}
	for len(s) >= 4 {
		s[0] = *(*T)(unsafe.Add(mem, off))
		s[1] = *(*T)(unsafe.Add(mem, off+stride))
		s[2] = *(*T)(unsafe.Add(mem, off+2*stride))
		s[3] = *(*T)(unsafe.Add(mem, off+3*stride))
		off += 4 * stride
		s = s[4:]
	}
	for i := range s {
		s[i] = *(*T)(unsafe.Add(mem, off+i*stride))
	}
}

// transpose copies count columns of a matrix, each a loop over rows, when
// neighbours in memory are far apart in the stream. One column at a time would
// fetch each cache line once per column; tiles fetch it once. It reports
// whether it did it.
func transpose(column *layout, columns, across int, stream, mem unsafe.Pointer, d direction) bool {
	down := column.stride
	if across >= 64 || across <= -64 || columns < 2 || column.count < 16 || (down < 64 && down > -64) {
		return false
	}
	switch column.child.size {
	case 1:
		copyTiles[uint8](column.count, down, columns, across, stream, mem, d)
	case 2:
		copyTiles[uint16](column.count, down, columns, across, stream, mem, d)
	case 4:
		copyTiles[uint32](column.count, down, columns, across, stream, mem, d)
	case 8:
		copyTiles[uint64](column.count, down, columns, across, stream, mem, d)
	case 16:
		copyTiles[[2]uint64](column.count, down, columns, across, stream, mem, d)
	default:
		return false
	}
	return true
}

// tile is the side of the square of blocks that transpose works on.
const tile = 32

func copyTiles[T any](rows, down, columns, across int, stream, mem unsafe.Pointer, d direction) {
	s := unsafe.Slice((*T)(stream), rows*columns)
	for r0 := 0; r0 < rows; r0 += tile {
		r1 := min(r0+tile, rows)
		for c0 := 0; c0 < columns; c0 += tile {
			c1 := min(c0+tile, columns)
			for r := r0; r < r1; r++ {
				off := r * down
				if d == toMemory {
					for c := c0; c < c1; c++ {
						*(*T)(unsafe.Add(mem, off+c*across)) = s[c*rows+r]
					}
				} else {
					for c := c0; c < c1; c++ {
						s[c*rows+r] = *(*T)(unsafe.Add(mem, off+c*across))
					}
				}
			}
		}
	}
}
