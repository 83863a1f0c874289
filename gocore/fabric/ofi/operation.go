//go:build cgo

package ofi

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
	"gormapy/gocore/libfabric"
	"gormapy/gocore/sys"
)

// operation is a put, get or atomic that has been accepted. The transport's lock
// guards it.
type operation struct {
	ep     *endpoint
	kind   libfabric.Kind
	cookie uint64
	key    uint64
	err    error

	// The rest that is not posted: from byte off of run next on, to or from local.
	runs  []fabric.Run
	next  int
	off   int
	local uintptr
	desc  uintptr
	open  int // requests under way

	// For local memory that has to be registered and is not.
	bounce int            // the buffer that the data passes through, -1 if none
	start  unsafe.Pointer // the user's memory
	total  int
	temp   *libfabric.MR
	region *region // its descriptor is used

	old unsafe.Pointer // for an atomic: where the former value goes

	one  [1]fabric.Run
	copy []fabric.Run
}

// name returns the operation's name in a fabric.OpError.
func (o *operation) name() string {
	switch o.kind {
	case libfabric.Write:
		return "put"
	case libfabric.Read:
		return "get"
	case libfabric.FetchAdd:
		return "fetch-add"
	}
	return "compare-and-swap"
}

// drop gives up the requests that are not posted, and records why.
func (o *operation) drop(err error) {
	if o.err == nil {
		o.err = err
	}
	o.next = len(o.runs)
}

func (o *operation) posted() bool { return o.next == len(o.runs) }

func (t *transport) newOperation() *operation {
	if n := len(t.opPool); n > 0 {
		o := t.opPool[n-1]
		t.opPool = t.opPool[:n-1]
		runs := o.copy[:0]
		*o = operation{copy: runs, bounce: -1}
		return o
	}
	return &operation{bounce: -1}
}

// finish ends an operation that has no requests under way. Poll notifies the sink.
func (t *transport) finish(o *operation) {
	t.release(o)
	t.finished = append(t.finished, finish{cookie: o.cookie, err: o.err})
	t.opPool = append(t.opPool, o)
	t.work.Store(true)
}

// release copies data that came in a buffer to the user's memory, and gives back what o
// holds.
func (t *transport) release(o *operation) {
	if o.bounce >= 0 {
		if o.kind == libfabric.Read && o.err == nil {
			o.err = sys.Touch(func() { copy(unsafe.Slice((*byte)(o.start), o.total), t.bufs.Bytes(int32(o.bounce))) })
		}
		o.ep.giveBuf(o.bounce)
		o.bounce = -1
	}
	if o.temp != nil {
		if err := o.temp.Close(); err != nil && o.err == nil {
			o.err = o.ep.failure(o.name(), err, "")
		}
		o.temp = nil
		t.temps--
	}
	o.leave()
}

// leave ends the use of a region.
func (o *operation) leave() {
	if r := o.region; r != nil {
		o.region = nil
		r.unuse()
	}
}

// Put implements fabric.Endpoint.
func (e *endpoint) Put(local unsafe.Pointer, remote fabric.RemoteKey, n int, cookie uint64) (bool, error) {
	return e.single(libfabric.Write, local, remote, n, cookie)
}

// Get implements fabric.Endpoint.
func (e *endpoint) Get(local unsafe.Pointer, remote fabric.RemoteKey, n int, cookie uint64) (bool, error) {
	return e.single(libfabric.Read, local, remote, n, cookie)
}

// PutRuns implements fabric.Endpoint.
func (e *endpoint) PutRuns(local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (bool, error) {
	return e.several(libfabric.Write, local, key, runs, cookie)
}

// GetRuns implements fabric.Endpoint.
func (e *endpoint) GetRuns(local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (bool, error) {
	return e.several(libfabric.Read, local, key, runs, cookie)
}

func (e *endpoint) single(kind libfabric.Kind, local unsafe.Pointer, remote fabric.RemoteKey, n int, cookie uint64) (bool, error) {
	e.t.mu.Lock()
	defer e.t.mu.Unlock()
	o := e.t.newOperation()
	o.ep, o.kind, o.cookie, o.key, o.start, o.total = e, kind, cookie, remote.Key, local, n
	o.one[0] = fabric.Run{Addr: remote.Addr, N: n}
	o.runs = o.one[:]
	return e.begin(o)
}

func (e *endpoint) several(kind libfabric.Kind, local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (bool, error) {
	if len(runs) > maxRuns {
		return false, e.failure("runs", fmt.Errorf("%d runs are more than %d", len(runs), maxRuns), "")
	}
	e.t.mu.Lock()
	defer e.t.mu.Unlock()
	o := e.t.newOperation()
	o.ep, o.kind, o.cookie, o.key, o.start = e, kind, cookie, key, local
	for _, r := range runs {
		o.total += r.N
	}
	o.runs = runs
	done, err := e.begin(o)
	if !done && err == nil && !o.posted() {
		// The caller may reuse its slice.
		o.copy = append(o.copy[:0], runs...)
		o.runs = o.copy
	}
	return done, err
}

// begin starts an operation on memory. If it returns an error, it has had no effect. The
// caller has the lock.
func (e *endpoint) begin(o *operation) (bool, error) {
	t := e.t
	abandon := func(err error) (bool, error) {
		t.releaseUnused(o)
		return false, err
	}
	if !t.caps.OneSided {
		return abandon(fabric.ErrUnsupported)
	}
	if err := e.ready(); err != nil {
		return abandon(err)
	}
	if o.total == 0 {
		t.releaseUnused(o)
		return true, nil
	}
	if e.pending != nil {
		return abandon(fabric.ErrAgain)
	}
	if err := e.greet(); err != nil {
		return abandon(err)
	}
	if err := e.prepare(o); err != nil {
		return abandon(err)
	}
	if err := e.post(o); err != nil && o.open == 0 {
		return abandon(err)
	} else if err != nil && err != fabric.ErrAgain {
		o.drop(err)
	}
	if !o.posted() {
		e.pending = o
		t.stalled = append(t.stalled, e)
		t.work.Store(true)
	}
	return false, nil
}

// releaseUnused gives back what an operation holds that has not begun.
func (t *transport) releaseUnused(o *operation) {
	if o.bounce >= 0 {
		o.ep.giveBuf(o.bounce)
	}
	if o.temp != nil {
		_ = o.temp.Close()
		t.temps--
	}
	o.bounce, o.temp = -1, nil
	o.leave()
	t.opPool = append(t.opPool, o)
}

// prepare makes local memory usable for the provider.
func (e *endpoint) prepare(o *operation) error {
	t := e.t
	o.local = uintptr(o.start)
	if o.kind == libfabric.Write && o.total <= frameBytes {
		// The provider may copy it in C, where a fault ends the process.
		if err := sys.Touch(func() { fabric.Probe(o.start, o.total) }); err != nil {
			return err
		}
	}
	if !t.localMR {
		return nil
	}
	if r := t.regions.find(o.local, o.total); r != nil {
		r.uses++
		o.region, o.desc = r, r.mr.Desc
		return nil
	}
	if o.total <= frameBytes {
		if o.bounce = e.takeBuf(); o.bounce < 0 {
			return fabric.ErrAgain
		}
		mem := t.bufs.Bytes(int32(o.bounce))
		if o.kind == libfabric.Write {
			if err := sys.Touch(func() { copy(mem, unsafe.Slice((*byte)(o.start), o.total)) }); err != nil {
				return err
			}
		}
		o.local, o.desc = addressOf(mem), t.desc()
		return nil
	}
	var access device.Access
	if o.kind == libfabric.Read {
		access = device.LocalWrite
	}
	mr, err := t.register(o.local, o.total, access)
	if device.KeyTaken(err) {
		// Devices give the key 0 to all memory that no peer may access, and ofi_rxm takes
		// each key once. So there is one such registration at a time.
		if t.temps > 0 {
			return fabric.ErrAgain
		}
		mr, err = t.register(o.local, o.total, device.AllAccess)
	}
	if err != nil {
		return e.failure(o.name(), err, fmt.Sprintf("%d bytes of local memory can't be registered", o.total))
	}
	o.temp, o.desc = mr, mr.Desc
	t.temps++
	return nil
}

// post posts the requests that are not posted. It returns ErrAgain if some remain. The
// caller has the lock.
func (e *endpoint) post(o *operation) error {
	t := e.t
	for !o.posted() {
		// Collect a batch. How far the operation is afterwards is known only when the
		// batch is posted.
		n, next, off, local := 0, o.next, o.off, o.local
		var after [postBatch]struct {
			next, off int
			local     uintptr
		}
		for n < postBatch && next < len(o.runs) {
			r := o.runs[next]
			if r.N-off <= 0 {
				next, off = next+1, 0
				continue
			}
			wait := uint8(waitLocal)
			if o.kind == libfabric.Write && t.immediate {
				wait |= waitAck
			}
			s := e.take(o, wait)
			if s < 0 {
				break
			}
			size := min(r.N-off, t.longest)
			q := &t.requests[n]
			*q = libfabric.Request{
				Kind: o.kind, Flags: libfabric.Completed, Local: local, Len: uint64(size), Desc: o.desc, Addr: e.addr,
				Remote: r.Addr + uint64(off), Key: o.key, Context: t.txs.At(s),
			}
			if o.kind == libfabric.Write {
				q.Flags = t.putFlags
				q.Data = uint64(t.me)<<16 | uint64(s)
			}
			local += uintptr(size)
			if off += size; off == r.N {
				next, off = next+1, 0
			}
			after[n].next, after[n].off, after[n].local = next, off, local
			n++
		}
		if n == 0 {
			if next == len(o.runs) {
				o.next = next // only empty runs were left
				return nil
			}
			return fabric.ErrAgain
		}
		posted, err := t.ep.Post(t.requests[:n])
		for k := n - 1; k >= posted; k-- {
			e.give(t.txs.Index(t.requests[k].Context))
		}
		o.open += posted
		if posted > 0 {
			last := after[posted-1]
			o.next, o.off, o.local = last.next, last.off, last.local
		}
		if err != nil {
			return e.refused(o.name(), err)
		}
		if posted == n && n < postBatch && next < len(o.runs) {
			return fabric.ErrAgain // no more slots
		}
		if next == len(o.runs) {
			o.next = next
		}
	}
	return nil
}

// FetchAdd implements fabric.Endpoint.
func (e *endpoint) FetchAdd(old unsafe.Pointer, remote fabric.RemoteKey, add uint64, cookie uint64) (bool, error) {
	return e.atomic(libfabric.FetchAdd, old, remote, add, 0, cookie)
}

// CompareSwap implements fabric.Endpoint.
func (e *endpoint) CompareSwap(old unsafe.Pointer, remote fabric.RemoteKey, compare, swap uint64, cookie uint64) (bool, error) {
	return e.atomic(libfabric.CompareSwap, old, remote, swap, compare, cookie)
}

func (e *endpoint) atomic(kind libfabric.Kind, old unsafe.Pointer, remote fabric.RemoteKey, operand, compare, cookie uint64) (bool, error) {
	t := e.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.caps.Atomics {
		return false, fabric.ErrUnsupported
	}
	if err := e.ready(); err != nil {
		return false, err
	}
	if e.pending != nil {
		return false, fabric.ErrAgain
	}
	if err := e.greet(); err != nil {
		return false, err
	}
	o := t.newOperation()
	o.ep, o.kind, o.cookie, o.old = e, kind, cookie, old
	s := e.take(o, waitLocal)
	if s < 0 {
		t.opPool = append(t.opPool, o)
		return false, fabric.ErrAgain
	}
	w := t.words.Bytes(int32(s))
	putWord(w, operand)
	putWord(w[8:], compare)
	at, desc := addressOf(w), t.desc()
	t.requests[0] = libfabric.Request{
		Kind: kind, Flags: libfabric.Completed, Operand: at, Compare: at + 8, OperandDesc: desc, Local: at + 16, Len: 8,
		Desc: desc, Addr: e.addr, Remote: remote.Addr, Key: remote.Key, Context: t.txs.At(s),
	}
	if _, err := t.ep.Post(t.requests[:1]); err != nil {
		e.give(s)
		t.opPool = append(t.opPool, o)
		return false, e.refused(o.name(), err)
	}
	o.open = 1
	return false, nil
}

// fetched writes an atomic's result to the user's memory.
func (t *transport) fetched(o *operation, s int) {
	err := sys.Touch(func() { *(*uint64)(o.old) = binary.LittleEndian.Uint64(t.words.Bytes(int32(s))[16:]) })
	if err != nil && o.err == nil {
		o.err = err
	}
}
