package mpiio

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
)

func nap() { time.Sleep(pause) }

// collective makes a collective operation. e is the error of this rank's arguments, mine
// has those that the ranks exchange; then is the state after the exchange.
func (f *File) collective(call string, mine record, e *errs.Error, then func(o *Op, all []record) state) (*Op, *errs.Error) {
	o, gone := f.newOp(call, func(o *Op) state { return o.begin(mine, e, then) })
	if gone != nil {
		return nil, gone
	}
	o.queue()
	return o, nil
}

// Refuse begins a collective call whose arguments are wrong at this rank: the others learn it, and do not wait.
func (f *File) Refuse(call string, e *errs.Error) (*Op, *errs.Error) {
	return f.collective(call, record{}, e, nil)
}

// writable returns an error if the file was opened for reading only.
func (f *File) writable(call string) *errs.Error {
	if f.Amode&ModeRdonly != 0 {
		return errs.New(errs.ReadOnly, "%s: %s was opened with MODE_RDONLY; open it with MODE_WRONLY or MODE_RDWR", call, f.name())
	}
	return nil
}

// readable returns an error if the file was opened for writing only.
func (f *File) readable(call string) *errs.Error {
	if f.Amode&ModeWronly != 0 {
		return errs.New(errs.Access, "%s: %s was opened with MODE_WRONLY; open it with MODE_RDONLY or MODE_RDWR", call, f.name())
	}
	return nil
}

// sized checks the new size of a file.
func (f *File) sized(call string, size int64) *errs.Error {
	if size < 0 {
		return errs.New(errs.Arg, "%s: the size %d is negative", call, size)
	}
	return f.writable(call)
}

// SetSize begins to set the length of the file.
func (f *File) SetSize(size int64) (*Op, *errs.Error) {
	return f.collective("Set_size", record{A: size}, f.sized("Set_size", size), func(o *Op, all []record) state {
		if e := o.same(all, "the size", func(r *record) int64 { return r.A }); e != nil {
			return o.fail(e)
		}
		var e *errs.Error
		if f.Comm.Rank == 0 {
			if err := again(func() error { return unix.Ftruncate(f.fd, size) }); err != nil {
				e = failure("Set_size", f.name(), err)
			}
		}
		return o.conclude(e, nil)
	})
}

// Preallocate begins to reserve space for the first size bytes of the file, which becomes
// that long if it is shorter.
func (f *File) Preallocate(size int64) (*Op, *errs.Error) {
	return f.collective("Preallocate", record{A: size}, f.sized("Preallocate", size), func(o *Op, all []record) state {
		if e := o.same(all, "the size", func(r *record) int64 { return r.A }); e != nil {
			return o.fail(e)
		}
		var e *errs.Error
		if f.Comm.Rank == 0 && size > 0 {
			o.work = f.reserve(size, &e)
		}
		return func(o *Op) state { return o.conclude(e, nil) }
	})
}

// reserve returns the work of Preallocate. If the file system can't reserve space, it
// writes zeros behind the end of the file.
func (f *File) reserve(size int64, e **errs.Error) func() bool {
	var st unix.Stat_t
	zeros := []byte(nil)
	at := int64(-1)
	return func() bool {
		var err error
		switch {
		case at < 0:
			err = again(func() error { return unix.Fallocate(f.fd, 0, 0, size) })
			if err != unix.EOPNOTSUPP && err != unix.ENOSYS {
				break
			}
			if err = again(func() error { return unix.Fstat(f.fd, &st) }); err == nil && st.Size < size {
				at, zeros = st.Size, make([]byte, 1<<20)
				return false
			}
		case at < size:
			n := min(size-at, int64(len(zeros)))
			if err = writeAt(f.fd, zeros[:n], at); err == nil {
				at += n
				return false
			}
		}
		if err != nil {
			*e = failure("Preallocate", f.name(), err)
		}
		return true
	}
}

// DisplacementCurrent is the displacement that means the shared file pointer's.
const DisplacementCurrent = -54278278

// The data representations of SetView. Others, of which the data is as in memory, have any
// other number.
const (
	Native     = 0
	External32 = 1
)

// SetView begins to change this rank's view of the file; file pointers are set to its
// beginning. In the data representation External32 the types are those of its file: see
// [dtype.Type.InFile].
func (f *File) SetView(disp int64, etype, filetype *dtype.Type, representation int64, hints Hints) (*Op, *errs.Error) {
	var e *errs.Error
	if disp == DisplacementCurrent {
		if f.Amode&ModeSequential == 0 {
			e = errs.New(errs.Disp, "Set_view: DISPLACEMENT_CURRENT is for files that were opened with MODE_SEQUENTIAL")
		} else if e = f.needShared("Set_view"); e == nil {
			var at int64
			if at, e = f.loadShared(); e == nil {
				disp = f.View().Pos(at * f.View().Etype)
			}
			f.give()
		}
	}
	if representation == External32 && e == nil {
		if etype, e = inFile("Set_view", etype); e == nil {
			filetype, e = inFile("Set_view", filetype)
		}
	}
	var v *View
	mine := hints.record()
	mine.E = representation
	if e == nil {
		mine.A = int64(etype.Extent())
		if v, e = NewView(disp, etype, filetype, f.Amode&ModeRdonly == 0); e == nil {
			v.external = representation == External32
		}
	}
	return f.collective("Set_view", mine, e, func(o *Op, all []record) state {
		for i, r := range all {
			if r.E != all[0].E {
				return o.fail(errs.New(errs.NotSame, "Set_view: rank %d of %s gives another data representation (datarep) than rank 0; it must be the same on all ranks", i, f.name()))
			}
		}
		if e := o.same(all, "the extent of the etype", func(r *record) int64 { return r.A }); e != nil {
			return o.fail(e)
		}
		f.mu.Lock()
		f.view, f.pos, f.hints = v, 0, hintsOf(&all[0])
		f.mu.Unlock()
		if f.pointer() != nil && f.Comm.Rank == 0 {
			atomic.StoreInt64(f.pointer(), 0)
		}
		return o.conclude(nil, nil) // no rank moves the shared pointer before it is reset
	})
}

func (h Hints) record() record {
	return record{B: h.Buffer, C: h.Aggregators, D: h.Collective<<32 | h.Perm}
}

func hintsOf(r *record) Hints {
	return Hints{Buffer: r.B, Aggregators: r.C, Collective: r.D >> 32, Perm: r.D & 0xffffffff}
}

// SetInfo begins to change the hints.
func (f *File) SetInfo(hints Hints) (*Op, *errs.Error) {
	return f.collective("Set_info", hints.record(), nil, func(_ *Op, all []record) state {
		f.mu.Lock()
		f.hints = hintsOf(&all[0])
		f.mu.Unlock()
		return nil
	})
}

// SetAtomicity begins to switch atomic mode.
func (f *File) SetAtomicity(on bool) (*Op, *errs.Error) {
	mine := record{}
	if on {
		mine.A = 1
	}
	return f.collective("Set_atomicity", mine, nil, func(o *Op, all []record) state {
		if e := o.same(all, "the mode", func(r *record) int64 { return r.A }); e != nil {
			return o.fail(e)
		}
		f.mu.Lock()
		f.atomic = on
		f.mu.Unlock()
		return nil
	})
}

// Sync begins to write the system's cached data of the file to the device.
func (f *File) Sync() (*Op, *errs.Error) {
	return f.collective("Sync", record{}, nil, func(o *Op, _ []record) state {
		var e *errs.Error
		o.work = func() bool {
			err := again(func() error { return unix.Fsync(f.fd) })
			if err != nil && err != unix.EINVAL && err != unix.EROFS { // EINVAL: a device that can't be synchronized
				e = failure("Sync", f.name(), err)
			}
			return true
		}
		return func(o *Op) state { return o.conclude(e, nil) }
	})
}

// SeekShared begins to move the shared file pointer.
func (f *File) SeekShared(offset int64, whence int) (*Op, *errs.Error) {
	e := f.needShared("Seek_shared")
	if e == nil {
		f.give()
	}
	return f.collective("Seek_shared", record{A: offset, B: int64(whence)}, e, func(o *Op, all []record) state {
		for _, get := range []func(r *record) int64{func(r *record) int64 { return r.A }, func(r *record) int64 { return r.B }} {
			if e := o.same(all, "the arguments", get); e != nil {
				return o.fail(e)
			}
		}
		var e *errs.Error
		if f.Comm.Rank == 0 {
			var to int64
			if to, e = f.target("Seek_shared", offset, whence, atomic.LoadInt64(f.pointer())); e == nil {
				atomic.StoreInt64(f.pointer(), to)
			}
		}
		return o.conclude(e, nil)
	})
}
