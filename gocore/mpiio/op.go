package mpiio

import (
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unsafe"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// Waiting is an operation that an Op waits for, such as a collective.
type Waiting interface {
	Advance() bool
	Check() error
	Abandon()
	Err() *errs.Error
}

// A state runs one step of an operation. It may leave something to wait for in wait or
// work. It returns the next state, or nil at the end.
type state func(o *Op) state

// Op is an operation on a file in progress.
type Op struct {
	mu   sync.Mutex
	f    *File
	call string
	base string // the blocking call that it is a form of, "": call itself
	prev *Op    // the collective before this one
	next state

	wait Waiting     // must complete before next
	work func() bool // must be done before next: does a piece of work, true if it was the last

	background bool // a goroutine does the work
	busy       bool // it is running
	abandoned  bool
	done       bool
	err        *errs.Error
	end        func() // called once, when nothing of the operation is in progress

	comm   *coll.Comm // the file's; nil until an Open has made it
	gen    uint32     // of the job, when comm was first used
	Bytes  int64      // moved
	Result int64
	keep   []any // memory that collectives use

	// An exchange: what this rank contributes, what all do, and what comes then.
	mine      record
	all       []record
	few       [4]record // the memory of all, of few ranks
	exchanged func(o *Op, all []record) state
	owes      bool        // the others wait for this rank in the exchange at the end, and in none before that
	own       *errs.Error // this rank's error, which the exchange is about
	begun     func(o *Op, all []record) state
	concluded state
}

// newOp makes an operation that begins with first, and takes the file for it.
func (f *File) newOp(call string, first state) (*Op, *errs.Error) {
	if !f.take() {
		return nil, errs.New(errs.File, "%s: %s has been closed", call, f.name())
	}
	return &Op{f: f, call: call, next: first, end: f.give}, nil
}

// queue appends a collective operation to those on its file.
func (o *Op) queue() {
	o.f.mu.Lock()
	o.prev, o.f.last = o.f.last, o
	o.f.mu.Unlock()
}

// Advance makes as much progress as it can without waiting for another rank, and reports
// whether the operation has completed.
func (o *Op) Advance() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.prev != nil {
		if !o.prev.Advance() {
			return false
		}
		o.prev = nil
	}
	for !o.done {
		switch {
		case o.busy:
			return false
		case o.work != nil && o.background:
			o.busy = true
			go o.run(o.work)
			return false
		case o.work != nil:
			if !o.work() {
				o.f.Wake() // the waiting thread returns at once, after it has handled signals
				return false
			}
			o.work = nil
		case o.wait != nil:
			if !o.wait.Advance() {
				return false
			}
			err := o.wait.Err()
			if s, yes := o.wait.(*coll.BoardOp); yes && err == nil {
				s.Release()
			}
			o.wait = nil
			if err != nil {
				o.finish(err)
			}
		case o.next == nil:
			o.finish(nil)
		default:
			if e := o.dropped(); e != nil {
				o.finish(e)
			} else {
				o.next = o.next(o)
			}
		}
	}
	return true
}

// dropped returns an error if there was a collective reset since the operation began.
func (o *Op) dropped() *errs.Error {
	if o.comm == nil {
		if o.comm = o.f.Comm; o.comm != nil {
			o.gen = o.comm.Chan.Generation()
		}
		return nil
	}
	return o.comm.Chan.Dropped(o.gen)
}

// run calls work until it is done, in a goroutine.
func (o *Op) run(work func() bool) {
	var failed *errs.Error
	func() {
		debug.SetPanicOnFault(true)
		defer func() {
			if p := recover(); p != nil {
				failed = errs.New(errs.Intern, "%s: internal error: %v\n%s", o.call, p, debug.Stack())
			}
		}()
		for !work() {
			o.mu.Lock()
			stop := o.abandoned
			o.mu.Unlock()
			if stop {
				return
			}
		}
	}()
	o.mu.Lock()
	o.busy, o.work = false, nil
	if failed != nil || o.abandoned {
		o.finish(failed)
	}
	o.mu.Unlock()
	o.Advance()
	o.f.Wake()
}

// finish ends the operation; o.mu is held.
func (o *Op) finish(err *errs.Error) {
	if o.err == nil {
		o.err = err
	}
	o.skip()
	o.done = true
	o.next, o.work, o.wait, o.keep = nil, nil, nil, nil
	if end := o.end; end != nil && !o.busy {
		o.end = nil
		end()
	}
}

// skip gives up the exchange that this rank owes the others, in which they learn that.
func (o *Op) skip() {
	if o.owes && o.dropped() == nil {
		o.f.Comm.SkipExchange()
	}
	o.owes = false
}

// fail ends the operation with err.
func (o *Op) fail(err *errs.Error) state {
	if o.err == nil {
		o.err = err
	}
	return nil
}

// Check returns an error if the operation can't complete.
func (o *Op) Check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.prev != nil {
		return o.prev.Check()
	}
	if o.wait != nil {
		return o.wait.Check()
	}
	return nil
}

// Abandon gives up the operation. A piece of work in progress ends first.
func (o *Op) Abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return
	}
	o.abandoned = true
	if o.wait != nil {
		o.wait.Abandon()
	}
	if o.busy {
		o.skip()
		o.done = true // run ends it
		return
	}
	o.finish(errs.New(errs.Other, "%s was given up", o.call))
}

// over reports whether the operation has completed.
func (o *Op) over() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done
}

// Busy reports whether a goroutine still runs for an operation that was given up.
func (o *Op) Busy() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.busy
}

// Err returns the error of a completed operation.
func (o *Op) Err() *errs.Error { return o.err }

// Text describes the operation for wait records.
func (o *Op) Text() string {
	f := o.f
	f.mu.Lock()
	defer f.mu.Unlock()
	text, known := f.texts[o.call]
	if !known {
		if f.texts == nil {
			f.texts = map[string]string{}
		}
		text = o.call + " of " + f.short()
		f.texts[o.call] = text
	}
	return text
}

// Ranks returns the ranks of the file's communicator.
func (o *Op) Ranks() []int { return o.f.Comm.Chan.World }

// Pending calls f with what the operation waits for, nil if it waits for no other rank.
func (o *Op) Pending(f func(w Waiting)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(o.wait)
}

// record is what ranks exchange at the beginning and at the end of a collective. Kind 0 ends one. Its bytes have room in a slot of a board
// (coll.Board).
type record struct {
	Kind, Class   int32
	A, B, C, D, E int64
}

const recordBytes = 48

// kindNames are the names of collective calls, by the Kind in their first record.
var kindNames = []string{"", "Open", "Close", "Set_size", "Preallocate", "Set_view", "Set_info", "Set_atomicity", "Sync", "Seek_shared",
	"Read_at_all", "Write_at_all", "Read_all", "Write_all", "Read_ordered", "Write_ordered"}

func kindOf(call string) int32 {
	for i, name := range kindNames {
		if name == call {
			return int32(i)
		}
	}
	panic("mpiio: no kind of " + call)
}

// exchange gives every rank the records of all, and continues with then. The records are in memory of the operation until its next
// exchange.
func (o *Op) exchange(mine record, then func(o *Op, all []record) state) state {
	size := o.f.Comm.Size
	if o.all == nil {
		if o.all = o.few[:min(size, len(o.few))]; size > len(o.few) {
			o.all = make([]record, size)
		}
	}
	o.mine, o.exchanged = mine, then
	one, each := raw(bytesOf(unsafe.Slice(&o.mine, 1))), raw(bytesOf(o.all)[:recordBytes])
	if s := o.f.Comm.Exchange(o.call, one, each); s != nil {
		o.wait = s
	} else {
		o.wait = o.byMessages(one, each)
	}
	return afterExchange
}

// byMessages is the exchange of ranks that have no board.
func (o *Op) byMessages(one, each p2p.Buf) Waiting {
	return o.f.Comm.Allgather(&one, coll.Uniform(each, o.f.Comm.Size))
}

func afterExchange(o *Op) state { return o.exchanged(o, o.all) }

// begin is the exchange at the beginning of a collective. It continues with then if all
// ranks have made the same call and none has wrong arguments, which e is the error of.
func (o *Op) begin(mine record, e *errs.Error, then func(o *Op, all []record) state) state {
	base := o.base
	if base == "" {
		base = o.call
	}
	mine.Kind = kindOf(base)
	if e != nil {
		mine.Class = int32(e.Class)
	}
	o.own, o.begun = e, then
	return o.exchange(mine, (*Op).alike)
}

// alike ends the exchange of begin.
func (o *Op) alike(all []record) state {
	for i, r := range all {
		if r.Kind != o.mine.Kind {
			return o.fail(errs.New(errs.NotSame, "the ranks do not call the same on %s: this rank calls %s, rank %d of the file calls %s",
				o.f.name(), o.call, i, kindName(r.Kind)))
		}
	}
	if o.own != nil {
		return o.fail(o.own)
	}
	for i, r := range all {
		if r.Class != 0 {
			return o.fail(errs.New(errs.Class(r.Class), "%s: the arguments of rank %d of %s are wrong: %s (its own error says how)", o.call, i, o.f.name(), reason(r.Class)))
		}
	}
	return o.begun(o, all)
}

func kindName(k int32) string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "something else"
}

// conclude is the exchange at the end of a collective: e is this rank's error, and all
// ranks fail if any has one.
func (o *Op) conclude(e *errs.Error, then state) state {
	var mine record
	if e != nil {
		mine.Class = int32(e.Class)
	}
	o.own, o.concluded, o.owes = e, then, false
	return o.exchange(mine, (*Op).together)
}

// together ends the exchange of conclude.
func (o *Op) together(all []record) state {
	if o.own != nil {
		return o.fail(o.own)
	}
	for i, r := range all {
		if r.Class != 0 {
			return o.fail(errs.New(errs.Class(r.Class), "%s: rank %d of %s failed: %s (its own error says more)", o.call, i, o.f.name(), reason(r.Class)))
		}
	}
	if o.concluded == nil {
		return nil
	}
	return o.concluded(o)
}

// same returns an error if a value differs between ranks.
func (o *Op) same(all []record, what string, get func(r *record) int64) *errs.Error {
	for i := range all {
		if a, b := get(&all[0]), get(&all[i]); a != b {
			return errs.New(errs.NotSame, "%s: %s must be the same on all ranks of %s: it is %d on rank 0 and %d on rank %d", o.call, what, o.f.name(), a, b, i)
		}
	}
	return nil
}

// pause is how long an operation sleeps before it tries again.
const pause = 200 * time.Microsecond

// int64Bytes returns integers as bytes.
func int64Bytes(v []int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*len(v))
}

// reason returns the text of a class.
func reason(class int32) string {
	_, words, _ := strings.Cut(errs.Class(class).Text(), ": ")
	return words
}
