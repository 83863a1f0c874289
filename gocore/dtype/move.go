package dtype

import "unsafe"

// direction is that of a copy between a packed stream and memory.
type direction bool

const (
	toStream direction = false // pack
	toMemory direction = true  // unpack
)

// pieceSize is the size of the pieces in which move copies. Go can't interrupt a
// memmove, and a goroutine that is not interrupted holds up every other thread while
// the collector waits to stop the world.
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
		for i, p := range l.pieces {
			p.l.copyAll(unsafe.Add(stream, at), unsafe.Add(mem, p.off), d)
			at = l.ends[i]
		}
	}
}

// copyRange copies the n bytes (at least 1) of l from offset skip of its
// packed form on; stream is the address of the first of them.
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
		i := l.pieceAt(skip)
		for done := 0; done < n; i++ {
			p := l.pieces[i]
			head := skip + done - (l.ends[i] - p.l.size)
			m := min(p.l.size-head, n-done)
			p.l.copyRange(unsafe.Add(stream, done), unsafe.Add(mem, p.off), d, head, m)
			done += m
		}
	}
}

// pieceAt returns the index of the piece of a list that has the byte at offset skip of
// the packed form.
func (l *layout) pieceAt(skip int) int {
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
// whether it copied them.
func transpose(column *layout, columns, across int, stream, mem unsafe.Pointer, d direction) bool {
	if !tiled(column, columns, across) {
		return false
	}
	down := column.stride
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
	}
	return true
}

// tiled reports whether transpose copies these columns.
func tiled(column *layout, columns, across int) bool {
	down := column.stride
	if across >= 64 || across <= -64 || columns < 2 || column.count < 16 || (down < 64 && down > -64) {
		return false
	}
	switch column.child.size {
	case 1, 2, 4, 8, 16:
		return true
	}
	return false
}

// copyTiles moves tiles of tileRows by as many columns as share a cache line,
// through a buffer: each line of the matrix is touched once, from its first
// byte to its last, and each column of the stream in runs. Without the buffer, the
// lines of a matrix whose rows are a power of two long would evict each other from the
// cache.
func copyTiles[T any](rows, down, columns, across int, stream, mem unsafe.Pointer, d direction) {
	var buffer [tileRows * tileLine / 8]uint64
	size := int(unsafe.Sizeof(*new(T)))
	buf := unsafe.Slice((*T)(unsafe.Pointer(&buffer)), tileRows*tileLine/size)
	s := unsafe.Slice((*T)(stream), rows*columns)
	wide := max(tileLine/max(across, -across, size), 1)
	first := wide
	if across > 0 {
		first = max((tileLine-int(uintptr(mem)%tileLine))/across, 1)
	}
	for r0 := 0; r0 < rows; r0 += tileRows {
		n := min(rows-r0, tileRows)
		for c0, next := 0, first; c0 < columns; c0, next = next, next+wide {
			w := min(columns, next) - c0
			at := unsafe.Add(mem, r0*down+c0*across)
			if d == toMemory {
				for k := range w {
					copy(buf[k*tileRows:k*tileRows+n], s[(c0+k)*rows+r0:])
				}
				for k := 0; k < w; {
					if w-k < 8 {
						spread(buf[k*tileRows:][:n], unsafe.Add(at, k*across), down)
						k++
						continue
					}
					spread8(buf[k*tileRows:][:7*tileRows+n], unsafe.Add(at, k*across), down, across)
					k += 8
				}
				continue
			}
			for k := 0; k < w; {
				if w-k < 8 {
					collect(buf[k*tileRows:][:n], unsafe.Add(at, k*across), down)
					k++
					continue
				}
				collect8(buf[k*tileRows:][:7*tileRows+n], unsafe.Add(at, k*across), down, across)
				k += 8
			}
			for k := range w {
				copy(s[(c0+k)*rows+r0:(c0+k)*rows+r0+n], buf[k*tileRows:])
			}
		}
	}
}

const (
	tileRows = 128
	tileLine = 64 // bytes of a cache line
)

// collect fills one column of a tile, collect8 eight adjacent ones.

func collect[T any](column []T, at unsafe.Pointer, down int) {
	for r := range column {
		column[r] = *(*T)(unsafe.Add(at, r*down))
	}
}

func collect8[T any](b []T, at unsafe.Pointer, down, across int) {
	off := 0
	for len(b) > 7*tileRows {
		p := unsafe.Add(at, off)
		b[0*tileRows] = *(*T)(p)
		b[1*tileRows] = *(*T)(unsafe.Add(p, across))
		b[2*tileRows] = *(*T)(unsafe.Add(p, 2*across))
		b[3*tileRows] = *(*T)(unsafe.Add(p, 3*across))
		b[4*tileRows] = *(*T)(unsafe.Add(p, 4*across))
		b[5*tileRows] = *(*T)(unsafe.Add(p, 5*across))
		b[6*tileRows] = *(*T)(unsafe.Add(p, 6*across))
		b[7*tileRows] = *(*T)(unsafe.Add(p, 7*across))
		b = b[1:]
		off += down
	}
}

// spread and spread8 copy in the other direction.

func spread[T any](column []T, at unsafe.Pointer, down int) {
	for r, x := range column {
		*(*T)(unsafe.Add(at, r*down)) = x
	}
}

func spread8[T any](b []T, at unsafe.Pointer, down, across int) {
	off := 0
	for len(b) > 7*tileRows {
		p := unsafe.Add(at, off)
		*(*T)(p) = b[0*tileRows]
		*(*T)(unsafe.Add(p, across)) = b[1*tileRows]
		*(*T)(unsafe.Add(p, 2*across)) = b[2*tileRows]
		*(*T)(unsafe.Add(p, 3*across)) = b[3*tileRows]
		*(*T)(unsafe.Add(p, 4*across)) = b[4*tileRows]
		*(*T)(unsafe.Add(p, 5*across)) = b[5*tileRows]
		*(*T)(unsafe.Add(p, 6*across)) = b[6*tileRows]
		*(*T)(unsafe.Add(p, 7*across)) = b[7*tileRows]
		b = b[1:]
		off += down
	}
}
