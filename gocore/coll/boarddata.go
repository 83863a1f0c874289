package coll

import (
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys/atom"
)

// boardData is what a collective through the board, blocking or nonblocking, writes to its slot and reads from those of the others.
type boardData struct {
	Args
	c        *Comm
	seq      uint32
	operands []unsafe.Pointer // of a reduction
}

// place returns the address of rank r's data, which has n bytes.
func (s *boardData) place(r, n int) unsafe.Pointer {
	if s.Nonblocking {
		return s.c.board.nonblocking.place(r, s.seq, n)
	}
	return s.c.board.place(r, s.seq, n)
}

// contributes reports whether this rank publishes data.
func (s *boardData) contributes() bool {
	switch s.Kind {
	case KindBcast, KindScatter:
		return s.c.Rank == s.Root
	}
	return true
}

// needs reports whether this rank reads the data of rank r.
func (s *boardData) needs(r int) bool {
	switch s.Kind {
	case KindBcast, KindScatter:
		return r == s.Root
	case KindGather, KindReduce:
		return s.c.Rank == s.Root
	case KindScan, KindExscan:
		return r < s.c.Rank
	case KindComm:
		return s.from == 0 || r == s.from-1
	}
	return true
}

// needsAll reports whether this rank reads the data of all others.
func (s *boardData) needsAll() bool {
	switch s.Kind {
	case KindBcast, KindScatter:
		return false
	case KindScan, KindExscan:
		return s.c.Rank == s.c.Size-1
	}
	return s.needs(s.c.Size-1) && s.needs(0)
}

// write copies this rank's data into its slot.
func (s *boardData) write() {
	n := s.c.need(&s.Args)
	if n == 0 {
		return
	}
	to := s.place(s.c.Rank, n)
	atom.Writes(to, n)
	dst := unsafe.Slice((*byte)(to), n)
	if s.Op != 0 {
		s.Send.Type.PackElements(dst, s.Send.Addr, s.Send.Count)
		return
	}
	src := s.Send
	switch s.Kind {
	case KindBcast:
		src = s.Recv
	case KindGather, KindAllgather:
		if s.SendInPlace {
			src = part(s.Recv, s.c.Rank)
		}
	case KindScatter:
		src.Count *= s.c.Size
	case KindAlltoall:
		if s.SendInPlace {
			src = s.Recv
		}
		src.Count *= s.c.Size
	}
	if s.Objects != nil {
		for at := 0; at < n; at += s.Bytes {
			copyHead(unsafe.Add(to, at), unsafe.Add(src.Addr, at), s.Bytes)
		}
		return
	}
	pack(dst, src)
}

// read copies or folds what the others have published.
func (s *boardData) read() {
	c, me := s.c, s.c.Rank
	if s.Op != 0 {
		s.fold()
		return
	}
	switch s.Kind {
	case KindBcast:
		if me != s.Root {
			s.take(s.Recv, s.Root, 0)
		}
	case KindScatter:
		if me != s.Root {
			s.take(s.Recv, s.Root, me)
		} else if !s.RecvInPlace && s.Objects == nil {
			copyLocal(s.Recv, part(s.Send, me))
		}
	case KindComm:
		for r := range c.Size {
			switch {
			case s.from == 0 && r == me:
				copyLocal(part(s.Recv, r), s.Send)
			case s.from == 0:
				s.take(part(s.Recv, r), r, 0)
			case r == s.from-1 && r != me:
				s.take(s.Recv, r, 0)
			}
		}
	case KindGather, KindAllgather:
		if s.Kind == KindGather && me != s.Root {
			return
		}
		for i := range c.Size {
			r := c.after(i)
			if r != me {
				s.take(part(s.Recv, r), r, 0)
			} else if !s.SendInPlace && s.Objects == nil {
				copyLocal(part(s.Recv, r), s.Send)
			}
		}
	case KindAlltoall:
		for i := range c.Size {
			r := c.after(i)
			if r != me {
				s.take(part(s.Recv, r), r, me)
			} else if !s.SendInPlace && s.Objects == nil {
				copyLocal(part(s.Recv, r), part(s.Send, r))
			}
		}
	}
}

// part returns rank r's part of a buffer that has one for each rank.
func part(b p2p.Buf, r int) p2p.Buf {
	b.Addr = unsafe.Add(b.Addr, r*b.Count*b.Type.Extent())
	return b
}

// take copies the i-th part of what rank r has published to dst.
func (s *boardData) take(dst p2p.Buf, r, i int) {
	if s.Bytes == 0 {
		return
	}
	src := unsafe.Add(s.place(r, s.c.need(&s.Args)), i*s.Bytes)
	atom.Reads(src, s.Bytes)
	switch {
	case s.Objects != nil:
		copyHead(dst.Addr, src, s.Bytes)
		return
	case dst.Type.Dense():
		fabric.Copy(dst.Addr, src, s.Bytes)
		return
	}
	dst.Type.Unpack(dst.Addr, unsafe.Slice((*byte)(src), s.Bytes), dst.Count)
}

// fold reduces what the ranks have published, in the order of the ranks.
func (s *boardData) fold() {
	c := s.c
	e := s.elements()
	first, last, off := 0, c.Size-1, 0
	switch s.Kind {
	case KindReduce:
		if c.Rank != s.Root {
			return
		}
	case KindScan:
		last = c.Rank
	case KindExscan:
		last = c.Rank - 1
	case KindReduceScatterBlock:
		e.n /= c.Size
		off = c.Rank * e.bytes()
	}
	if last >= first && e.n > 0 {
		s.collect(first, last, c.need(&s.Args), off, e.bytes())
		s.foldInto(e)
	}
}

// collect sets operands to where the ranks from first to last have published what is read: n bytes at offset off of slotBytes.
func (s *boardData) collect(first, last, slotBytes, off, n int) {
	s.operands = s.operands[:0]
	for r := first; r <= last; r++ {
		p := unsafe.Add(s.place(r, slotBytes), off)
		atom.Reads(p, n)
		s.operands = append(s.operands, p)
	}
}

// foldInto reduces operands into the buffer of the result.
func (s *boardData) foldInto(e elements) {
	e.p = s.Recv.Addr
	if s.Recv.Type.Dense() && s.Recv.Bytes() == e.bytes() {
		e.op.Fold(e.kind, e.p, s.operands, e.n)
		return
	}
	buf := make([]byte, e.bytes())
	e.p = unsafe.Pointer(&buf[0])
	e.op.Fold(e.kind, e.p, s.operands, e.n)
	e.store(s.Recv)
}

// pack copies the data of b to dst.
func pack(dst []byte, b p2p.Buf) {
	if b.Type.Dense() {
		fabric.Copy(unsafe.Pointer(&dst[0]), b.Addr, len(dst))
		return
	}
	b.Type.Pack(dst, b.Addr, b.Count)
}
