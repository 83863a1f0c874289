package mpiio

import (
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// shortAccess is how many bytes AtOnce moves at most: signals are not handled meanwhile.
const shortAccess = 64 << 10

// AtOnce reads or writes, as Start does, what takes one run of the file and waits for no other rank: a short access of
// one run of memory, in a view without gaps, that is not collective or that of the file's only rank. It returns how many
// bytes it has moved. If done is false, nothing has happened: Start has to do it, or to say what is wrong.
func (f *File) AtOnce(kind Kind, offset int64, buf p2p.Buf) (moved int64, done bool, e *errs.Error) {
	n := int64(buf.Bytes())
	if kind&Nonblocking != 0 || n == 0 || n > shortAccess || !buf.Type.Dense() || !f.take() {
		return 0, false, nil
	}
	defer f.give()
	if kind&All != 0 && !f.isAlone() {
		return 0, false, nil
	}
	f.mu.Lock()
	a := access{f: f, kind: kind, v: f.view, n: n}
	usual := !f.atomic && a.v.size == endless && !a.v.external
	if kind&Individual != 0 {
		offset = f.pos
	}
	f.mu.Unlock()
	if !usual || a.check() != nil {
		return 0, false, nil
	}
	if kind&Shared != 0 {
		if f.pointer() == nil {
			return 0, false, nil
		}
		offset = addShared(f, n/a.v.Etype) // not twice: from here on it is done
	}
	if e := a.place(offset); e != nil {
		return 0, true, e
	}
	memory, at := unsafe.Slice((*byte)(buf.Addr), n), a.v.Pos(a.at)
	var err error
	if kind&Write != 0 {
		if err = writeAt(f.fd, memory, at); err == nil {
			moved = n
		}
	} else {
		var got int
		got, err = readAt(f.fd, memory, at)
		moved = int64(got)
	}
	if kind&Individual != 0 {
		f.mu.Lock()
		f.pos = (a.at + moved) / a.v.Etype
		f.mu.Unlock()
	}
	if err != nil {
		e = a.failed("at byte", at, err)
	}
	return moved, true, e
}

// short reports whether the access, of this rank by itself, takes one run of memory and one of the file, and no lock, so that it need not be
// divided into pieces.
func (a *access) short() bool {
	return a.n > 0 && a.n <= shortAccess && a.v.size == endless && a.conv == nil && a.buf.Type.Dense() && !a.f.Atomic()
}

// moveShort makes a short access, and returns how many bytes it has moved.
func (a *access) moveShort() int64 {
	m := a.memory(0, a.n)
	if a.kind&Write != 0 {
		return a.put(m, 0)
	}
	return a.get(m, a.at)
}

// isAlone reports whether a collective access of this rank waits for nothing: there are no other ranks, and no
// collective is under way.
func (f *File) isAlone() bool {
	if f.Comm.Size > 1 {
		return false
	}
	f.mu.Lock()
	last := f.last
	f.mu.Unlock()
	return last == nil || last.over()
}
