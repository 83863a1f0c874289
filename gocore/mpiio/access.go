package mpiio

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// Kind is the kind of a data access, as bits.
type Kind int

// The bits of a Kind. Shared with All is an ordered access. Without Individual and
// Shared an access has an explicit offset.
const (
	Write Kind = 1 << iota
	All
	Individual
	Shared
	Nonblocking
)

// base returns the name of the blocking call.
func (k Kind) base() string {
	name := "Read"
	if k&Write != 0 {
		name = "Write"
	}
	switch {
	case k&Shared != 0 && k&All != 0:
		return name + "_ordered"
	case k&Shared != 0:
		return name + "_shared"
	case k&Individual == 0:
		name += "_at"
	}
	if k&All != 0 {
		name += "_all"
	}
	return name
}

// kindStrings has the name of the call of each kind.
var kindStrings = func() (names [2 * Nonblocking]string) {
	for k := range names {
		name := Kind(k).base()
		if Kind(k)&Nonblocking != 0 {
			name = "I" + string(name[0]|0x20) + name[1:]
		}
		names[k] = name
	}
	return names
}()

func (k Kind) String() string { return kindStrings[k] }

// access is a read or write of one rank: n bytes of its view's stream from at on, to or
// from memory, where they are others if the file is in another representation.
type access struct {
	f     *File
	kind  Kind
	v     *View
	buf   p2p.Buf
	at, n int64
	eof   int64 // of a read: where the file ends, if the read got there
	err   *errs.Error
	conv  *conversion // nil: the data is in the file as it is in memory

	held   bool   // the range is locked
	unlock func() // releases the lock
}

// Start begins to read or write; offset, in etypes, is for explicit offsets.
func (f *File) Start(kind Kind, offset int64, buf p2p.Buf) (*Op, *errs.Error) {
	a := &access{f: f, kind: kind, buf: buf, n: int64(buf.Bytes()), eof: noEOF, unlock: func() {}}
	f.mu.Lock()
	a.v = f.view
	f.mu.Unlock()
	a.convert()
	var moving *move // the shared file pointer, at rank 0
	var placed func() int64
	e := a.check()
	switch {
	case e != nil:
	case kind&Shared != 0:
		if e = f.needShared(kind.String()); e == nil {
			f.give()
			if kind&All == 0 {
				if moving, placed = f.moveShared(a.n / a.v.Etype); moving == nil {
					e = a.place(placed())
				}
			}
		}
	case kind&Individual != 0:
		f.mu.Lock()
		offset = f.pos
		if kind&Nonblocking != 0 {
			f.pos += a.n / a.v.Etype
		}
		f.mu.Unlock()
		e = a.place(offset)
	default:
		e = a.place(offset)
	}
	if kind&All == 0 && e != nil {
		return nil, e
	}
	first := a.alone
	if moving != nil {
		first = func(o *Op) state {
			o.wait = moving
			return func(o *Op) state {
				if e := a.place(placed()); e != nil {
					return o.fail(e)
				}
				return a.alone
			}
		}
	}
	if kind&All != 0 {
		first = func(o *Op) state { return a.together(o, e) }
	}
	o, gone := f.newOp(kind.String(), first)
	if gone != nil {
		return nil, gone
	}
	o.base, o.background = kind.base(), kind&Nonblocking != 0
	if kind&All != 0 {
		o.queue()
	}
	return o, nil
}

// check returns an error if the access is wrong at any offset.
func (a *access) check() *errs.Error {
	f, call := a.f, a.kind.String()
	if a.kind&Shared == 0 {
		if e := f.noPointer(call); e != nil {
			return e
		}
	}
	if a.kind&Write != 0 {
		if e := f.writable(call); e != nil {
			return e
		}
	} else if e := f.readable(call); e != nil {
		return e
	}
	switch {
	case a.n%a.v.Etype != 0:
		return errs.New(errs.IO, "%s: %d bytes are not a whole number of etypes, of which each has %d bytes (Set_view)", call, a.n, a.v.Etype)
	case a.n > 0 && a.v.empty():
		return errs.New(errs.Arg, "%s: %d bytes, but the view of this rank shows nothing of %s", call, a.n, f.name())
	}
	return a.convertible()
}

// place puts the access at an offset in etypes.
func (a *access) place(offset int64) *errs.Error {
	const limit = 1 << 61
	call := a.kind.String()
	if offset < 0 {
		return errs.New(errs.Arg, "%s: the offset %d is negative", call, offset)
	}
	if offset > (limit-a.n)/a.v.Etype || !a.v.empty() && (offset*a.v.Etype+a.n)/a.v.size > (limit-a.v.Disp)/max(a.v.ext, 1) {
		return errs.New(errs.Arg, "%s: the offset %d is more than a file can have", call, offset)
	}
	a.at = offset * a.v.Etype
	return nil
}

// memory returns n bytes of the user's data from skip on, or nil if the data is not
// contiguous.
func (a *access) memory(skip, n int64) []byte {
	if a.conv != nil || !a.buf.Type.Dense() {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(a.buf.Addr, skip)), n)
}

// load fills b with the user's data from skip on. If the user's memory can't be read, it
// sets the access's error and returns false.
func (a *access) load(b []byte, skip int64) bool {
	if a.conv != nil {
		return a.conv.load(b, skip)
	}
	return a.touch(func() { a.buf.Type.PackAt(b, a.buf.Addr, a.buf.Count, int(skip)) })
}

// store copies b to the user's data from skip on, likewise.
func (a *access) store(b []byte, skip int64) bool {
	if a.conv != nil {
		return a.conv.store(b, skip)
	}
	return a.touch(func() { a.buf.Type.UnpackAt(a.buf.Addr, b, a.buf.Count, int(skip)) })
}

func (a *access) touch(f func()) bool {
	fault := sys.Touch(f)
	if fault != nil && a.err == nil {
		a.err = errs.New(errs.Buffer, "%s of %s: %v", a.kind, a.f.name(), fault)
	}
	return fault == nil
}

// moved ends an access of n bytes of the stream: it records how many of the user's data
// they are, and moves the file pointer.
func (a *access) moved(o *Op, n int64) {
	if o.Bytes = n; a.conv != nil {
		o.Bytes = a.conv.inMemory(n)
	}
	if a.kind&Individual != 0 && a.kind&Nonblocking == 0 {
		a.f.mu.Lock()
		a.f.pos = (a.at + n) / a.v.Etype
		a.f.mu.Unlock()
	}
}

// alone is the first state of an access that is not collective.
func (a *access) alone(o *Op) state {
	return a.locked(o, func(o *Op) state {
		done := int64(0)
		o.work = a.transfer(&done)
		return func(o *Op) state {
			a.unlock()
			a.moved(o, done)
			if a.err != nil {
				return o.fail(a.err)
			}
			return nil
		}
	})
}

// locked continues with then; in atomic mode it locks the access's range before. The
// caller calls unlock before the operation waits for other ranks.
func (a *access) locked(o *Op, then state) state {
	f := a.f
	if !f.Atomic() || a.n == 0 {
		return then
	}
	lo, hi := a.v.span(a.at, a.n)
	lock := unix.Flock_t{Type: unix.F_RDLCK, Start: lo, Len: hi - lo}
	if a.kind&Write != 0 {
		lock.Type = unix.F_WRLCK
	}
	var failed *errs.Error
	end := o.end
	o.work = func() bool {
		if !f.turn.CompareAndSwap(false, true) {
			nap()
			return false
		}
		err := again(func() error { return unix.FcntlFlock(uintptr(f.fd), unix.F_OFD_SETLK, &lock) })
		switch err {
		case nil:
			a.held = true
			a.unlock = func() {
				if a.held {
					a.held = false
					open := unix.Flock_t{Type: unix.F_UNLCK, Start: lo, Len: hi - lo}
					_ = unix.FcntlFlock(uintptr(f.fd), unix.F_OFD_SETLK, &open)
					f.turn.Store(false)
				}
			}
			o.end = func() { // also called for an operation that is given up
				a.unlock()
				end()
			}
			return true
		case unix.EAGAIN, unix.EACCES:
			f.turn.Store(false)
			nap()
			return false
		}
		f.turn.Store(false)
		failed = failure(o.call+" in atomic mode, to lock the file", f.name(), err)
		return true
	}
	return func(o *Op) state {
		if failed != nil {
			return o.fail(failed)
		}
		return then
	}
}
