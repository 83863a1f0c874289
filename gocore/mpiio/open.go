package mpiio

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/errs"
	"gormapy/gocore/sys"
)

// bytesOf returns records as bytes.
func bytesOf(r []record) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(r))), len(r)*recordBytes)
}

// CheckAmode returns an error for access modes that contradict themselves.
func CheckAmode(amode int) *errs.Error {
	access := amode & (ModeRdonly | ModeWronly | ModeRdwr)
	switch {
	case amode&^modeAll != 0:
		return errs.New(errs.Amode, "Open: the access mode %d has bits that mean nothing", amode)
	case access == 0:
		return errs.New(errs.Amode, "Open: the access mode says neither MODE_RDONLY nor MODE_WRONLY nor MODE_RDWR")
	case access&(access-1) != 0:
		return errs.New(errs.Amode, "Open: the access mode must have one of MODE_RDONLY, MODE_WRONLY and MODE_RDWR; for reading and writing that is MODE_RDWR alone")
	case access == ModeRdonly && amode&(ModeCreate|ModeExcl) != 0:
		return errs.New(errs.Amode, "Open: MODE_RDONLY does not go with MODE_CREATE or MODE_EXCL: a file that is made has nothing to read")
	case access == ModeRdwr && amode&ModeSequential != 0:
		return errs.New(errs.Amode, "Open: MODE_RDWR does not go with MODE_SEQUENTIAL; open for reading or for writing")
	}
	return nil
}

// Open begins to open a file. dup makes the file's communicator; when it has completed,
// ready is called to set f.Comm. At the end opened is called, whose result is the
// operation's, or gone if the file could not be opened.
func Open(f *File, hints Hints, dup Waiting, ready func(), opened func() int64, gone func()) *Op {
	f.Path, f.fd, f.hints, f.view = absolute(f.Path), -1, hints, bytesView()
	o := &Op{f: f, call: "Open"}
	made := false
	created := false
	o.end = func() {
		if o.err == nil {
			o.Result = opened()
			return
		}
		_ = f.Drop()
		if made {
			gone()
		}
	}
	o.wait = dup
	o.next = func(o *Op) state {
		ready()
		made = true
		mine := record{A: int64(f.Amode), B: hints.Buffer, C: hints.Aggregators, D: hints.Collective<<32 | hints.Perm}
		return o.begin(mine, CheckAmode(f.Amode), func(o *Op, all []record) state {
			if e := o.same(all, "the access mode", func(r *record) int64 { return r.A }); e != nil {
				return o.fail(e)
			}
			f.hints = Hints{Buffer: all[0].B, Aggregators: all[0].C, Collective: all[0].D >> 32, Perm: all[0].D & 0xffffffff}
			return o.open(&created)
		})
	}
	return o
}

// open is the state after the ranks have agreed: rank 0 opens, then the others.
func (o *Op) open(created *bool) state {
	f := o.f
	var e *errs.Error
	first := f.Comm.Rank == 0
	f.far = !f.SameNode(f.Comm.Chan.World)
	try := func() {
		var err error
		if f.fd, *created, err = openFile(f.Path, f.Amode, first, uint32(f.hints.Perm)); err != nil {
			e = failure("Open", f.name(), err)
		}
	}
	mine := record{B: -1, C: int64(os.Getpid())}
	if first {
		try()
		switch {
		case e != nil:
			mine.Class = int32(e.Class)
		case f.far:
			f.word = new(int64)
			f.Pointers.serve(f.Comm.Chan.Ctx, f.word)
		default:
			if seg, err := sys.NewSegment("file pointer", 8); err == nil {
				f.shared, mine.B = seg, int64(seg.FD)
			}
		}
	}
	return o.exchange(mine, func(o *Op, all []record) state {
		switch {
		case e != nil:
			return o.fail(e)
		case all[0].Class != 0:
			return o.fail(errs.New(errs.Class(all[0].Class), "Open: %s: rank 0 could not open it: %s (its own error says more)", f.name(), reason(all[0].Class)))
		}
		var mine record
		if !first {
			try()
			if e == nil && !f.far && all[0].B >= 0 {
				if seg, err := sys.OpenSegment(int(all[0].C), int(all[0].B)); err == nil {
					f.shared = seg
				}
			}
			if e != nil {
				mine.Class = int32(e.Class)
			}
		}
		if f.shared != nil {
			mine.A = 1
		}
		return o.exchange(mine, func(o *Op, all []record) state { return o.opened(all, e, *created) })
	})
}

// opened is the state after all ranks have tried to open.
func (o *Op) opened(all []record, e *errs.Error, created bool) state {
	f := o.f
	for i, r := range all {
		if r.Class == 0 {
			continue
		}
		if created { // a failed Open leaves no file
			_ = unix.Unlink(f.Path)
		}
		if e == nil {
			e = errs.New(errs.Class(r.Class), "Open: %s: rank %d could not open it: %s (its own error says more)", f.name(), i, reason(r.Class))
		}
		return o.fail(e)
	}
	for _, r := range all {
		if r.A == 0 && f.shared != nil {
			_ = f.shared.Close()
			f.shared = nil
		}
	}
	if f.shared != nil {
		f.shared.CloseFD()
	}
	if f.Amode&ModeAppend == 0 {
		return nil
	}
	size, e := f.Size()
	f.pos = size
	if e == nil && f.pointer() != nil && f.Comm.Rank == 0 {
		atomic.StoreInt64(f.pointer(), size)
	}
	return o.conclude(e, nil)
}

// Close begins to close the file; gone is called when it is closed.
func (f *File) Close(gone func()) (*Op, *errs.Error) {
	closed := false
	o, e := f.newOp("Close", func(o *Op) state {
		return o.begin(record{}, nil, func(o *Op, _ []record) state {
			o.work = func() bool { // wait for nonblocking operations that the program has not waited for
				f.mu.Lock()
				alone := f.ops == 1
				f.mu.Unlock()
				if !alone {
					nap()
				}
				return alone
			}
			return func(o *Op) state {
				closed = true
				f.mu.Lock()
				f.ops--
				f.mu.Unlock()
				var e *errs.Error
				if err := f.Drop(); err != nil {
					e = failure("Close", f.name(), err)
				}
				return o.conclude(e, func(o *Op) state {
					var e *errs.Error
					if f.Amode&ModeDeleteOnClose != 0 {
						if f.Comm.Rank == 0 {
							if e = Delete(f.Path); e != nil && e.Class == errs.NoSuchFile {
								e = nil // another process has deleted it
							}
						}
						return o.conclude(e, nil)
					}
					return nil
				})
			}
		})
	})
	if e != nil {
		return nil, e
	}
	give := o.end
	o.end = func() {
		if closed {
			gone()
		} else {
			give() // the ranks did not agree to close it
		}
	}
	o.queue()
	return o, nil
}
