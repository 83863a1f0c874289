//go:build cgo

package verbs

import (
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
	"gormapy/gocore/ibverbs"
	"gormapy/gocore/sys"
)

// record says what to do when a request of the send queue has ended.
type record struct {
	kind   kind
	op     opName
	last   bool  // it is the last of its operation: Completed is called
	slot   int32 // buffer to give back, if kind has one
	n      int32 // bytes to copy from there to dst
	cookie uint64
	dst    unsafe.Pointer
	region *region     // its key was used
	mr     *ibverbs.MR // registered for the operation
}

type kind uint8

const (
	bare    kind = iota // no buffer
	bounced             // a buffer of Transport.bounce
	celled              // a cell
)

type opName uint8

const (
	opNothing opName = iota // a follower: not an operation
	opSend
	opPut
	opGet
	opFetchAdd
	opCompareSwap
)

var opNames = [...]string{"write of nothing", "send", "put", "get", "fetch-add", "compare-and-swap"}

// cursor is a position in an operation of one or more requests: what is posted next.
type cursor struct {
	active bool
	code   ibverbs.Opcode
	local  uint64 // the next byte
	lkey   uint32
	rkey   uint32
	runs   []fabric.Run
	run    int // the next run
	off    int // in it
	end    record
}

// endpoint is a connection to one peer. Transport.mu guards it.
type endpoint struct {
	t      *Transport
	peer   int
	qp     *ibverbs.QP
	twin   *ibverbs.QP // the other end of the connection to the own rank
	psn    uint32
	inline int
	every  uint32 // one of so many requests is signalled

	ownStage, peerStage stage
	peerQP              uint32
	peerGID             [16]byte
	reason              string // why the peer has closed
	err                 error  // the first failure
	failedAt            time.Time
	gone                bool // this Poll or an earlier one calls Broken

	// Requests are counted, modulo 2^32: posted are those before head, ended those
	// before tail; before signaled is the last one with a completion.
	ring                 []record
	head, tail, signaled uint32
	open                 int    // operations among them
	seen                 uint32 // head, when Poll last looked
	busy                 bool   // it is in Transport.busy

	wrs  []ibverbs.SendWR
	mark [1]ibverbs.SendWR
	long cursor // an operation longer than the queue
	runs [maxRuns]fabric.Run
	one  [1]fabric.Run
}

var _ fabric.Endpoint = (*endpoint)(nil)

// usable returns nil if operations may be posted, ErrAgain if they may be later.
func (e *endpoint) usable() error {
	switch {
	case e.err != nil:
		return e.err
	case e.ownStage != joined || e.peerStage != joined:
		return fabric.ErrAgain
	}
	return nil
}

// ready is usable for callers from outside, who may come after Close.
func (e *endpoint) ready() error {
	if e.t.closed {
		return errClosed
	}
	return e.usable()
}

// room returns how many requests fit. One more place is kept for a follower.
func (e *endpoint) room() int {
	if e.long.active {
		return 0
	}
	return len(e.ring) - int(e.head-e.tail) - 1
}

// Send implements fabric.Endpoint.
func (e *endpoint) Send(h *fabric.Header, payload []byte) error {
	t := e.t
	if len(payload) > t.caps.MaxShort {
		return fmt.Errorf("send to rank %d: %d bytes are more than MaxShort, %d", e.peer, len(payload), t.caps.MaxShort)
	}
	n := fabric.HeaderBytes + len(payload)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := e.ready(); err != nil {
		return err
	}
	if e.room() < 1 {
		return fabric.ErrAgain
	}
	wr, rec := &e.wrs[0], record{op: opSend}
	*wr = ibverbs.SendWR{Opcode: ibverbs.Send, Len: uint32(n)}
	buf := t.stage
	if n <= e.inline {
		wr.Flags = ibverbs.Inline
	} else {
		slot := t.bounce.Take()
		if slot < 0 {
			t.starve()
			return fabric.ErrAgain
		}
		buf, rec.kind, rec.slot = t.bounce.At(slot), bounced, slot
		wr.LKey = t.bounce.MR.LKey()
	}
	wr.Addr = uint64(uintptr(buf))
	*(*fabric.Header)(buf) = *h
	if err := sys.Touch(func() {
		copy(unsafe.Slice((*byte)(unsafe.Add(buf, fabric.HeaderBytes)), len(payload)), payload)
	}); err != nil {
		t.undo(&rec)
		return err
	}
	e.sign(wr, e.head, e.signaled, false)
	if posted, err := e.qp.PostSend(e.wrs[:1]); posted == 0 {
		t.undo(&rec)
		return e.refused(&rec, err)
	}
	e.note(wr, rec)
	return nil
}

// sign numbers a request and decides whether it is signalled, given the number after the
// last one that is. It returns that number after this request.
func (e *endpoint) sign(wr *ibverbs.SendWR, seq, signaled uint32, last bool) uint32 {
	wr.ID = uint64(e.peer)<<32 | uint64(seq)
	if seq+1-signaled >= e.every || last && int32(signaled-e.tail) <= 0 {
		wr.Flags |= ibverbs.Signaled
		return seq + 1
	}
	return signaled
}

// note records a request that was posted.
func (e *endpoint) note(wr *ibverbs.SendWR, rec record) {
	e.ring[e.head%uint32(len(e.ring))] = rec
	e.head++
	if wr.Flags&ibverbs.Signaled != 0 {
		e.signaled = e.head
	}
	if rec.last {
		e.open++
	}
	if rec.op > opSend {
		e.watch()
	}
}

// watch adds the endpoint to those that Poll tends.
func (e *endpoint) watch() {
	if !e.busy {
		e.busy = true
		e.t.busy = append(e.t.busy, e)
		e.t.working.Store(int32(len(e.t.busy)))
	}
}

// refused returns the caller's error for one of PostSend, which took nothing: ErrAgain if
// the queue is full. Any other error fails the endpoint.
func (e *endpoint) refused(rec *record, err error) error {
	if errors.Is(err, syscall.ENOMEM) {
		return fabric.ErrAgain
	}
	failure := &fabric.OpError{Op: opNames[rec.op], Peer: e.peer, Status: "the device refuses the request", Detail: err.Error()}
	e.fail(failure)
	return failure
}

// starve is called when there is no buffer. It makes the requests that hold buffers
// complete soon.
func (t *Transport) starve() {
	t.starved = true
	for _, e := range t.eps {
		if e != nil && e.head != e.tail && e.usable() == nil {
			e.watch()
			if int32(e.signaled-e.tail) <= 0 {
				e.follow()
			}
		}
	}
}

// follow posts a follower: a signalled write of 0 bytes.
func (e *endpoint) follow() {
	if e.signaled == e.head || int(e.head-e.tail) >= len(e.ring) {
		return
	}
	// Not in wrs: an operation may be about to be posted from there.
	e.mark[0] = ibverbs.SendWR{ID: uint64(e.peer)<<32 | uint64(e.head), Opcode: ibverbs.RDMAWrite, Flags: ibverbs.Signaled}
	if posted, err := e.qp.PostSend(e.mark[:]); posted == 0 {
		if !errors.Is(err, syscall.ENOMEM) {
			_ = e.refused(&record{}, err)
		}
		return
	}
	e.note(&e.mark[0], record{})
}

// Put implements fabric.Endpoint.
func (e *endpoint) Put(local unsafe.Pointer, remote fabric.RemoteKey, n int, cookie uint64) (bool, error) {
	return e.single(opPut, local, remote, n, cookie)
}

// Get implements fabric.Endpoint.
func (e *endpoint) Get(local unsafe.Pointer, remote fabric.RemoteKey, n int, cookie uint64) (bool, error) {
	return e.single(opGet, local, remote, n, cookie)
}

// PutRuns implements fabric.Endpoint.
func (e *endpoint) PutRuns(local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (bool, error) {
	return e.move(opPut, local, key, runs, cookie)
}

// GetRuns implements fabric.Endpoint.
func (e *endpoint) GetRuns(local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (bool, error) {
	return e.move(opGet, local, key, runs, cookie)
}

func (e *endpoint) single(op opName, local unsafe.Pointer, remote fabric.RemoteKey, n int, cookie uint64) (bool, error) {
	e.t.mu.Lock()
	defer e.t.mu.Unlock()
	e.one[0] = fabric.Run{Addr: remote.Addr, N: n}
	return e.start(op, local, remote.Key, e.one[:], cookie)
}

func (e *endpoint) move(op opName, local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (bool, error) {
	if len(runs) > e.t.caps.MaxRuns {
		return false, fmt.Errorf("%s to rank %d: %d runs are more than MaxRuns, %d", opNames[op], e.peer, len(runs), e.t.caps.MaxRuns)
	}
	e.t.mu.Lock()
	defer e.t.mu.Unlock()
	return e.start(op, local, key, runs, cookie)
}

// start posts a put or get. If it is longer than the queue, it posts the part that there
// is room for, and Poll posts the rest.
func (e *endpoint) start(op opName, local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (bool, error) {
	t := e.t
	total, longest, need, inline := 0, 0, 0, false
	for _, r := range runs {
		if r.N < 0 {
			return false, fmt.Errorf("%s to rank %d: %d bytes", opNames[op], e.peer, r.N)
		}
		total, longest = total+r.N, max(longest, r.N)
		need += (r.N + t.maxMsg - 1) / t.maxMsg
		inline = inline || r.N%t.maxMsg <= e.inline
	}
	if err := e.ready(); err != nil {
		return false, err
	}
	if need == 0 {
		return true, nil
	}
	if e.room() < min(need, len(e.ring)/2) {
		return false, fabric.ErrAgain
	}
	if op == opPut && inline {
		fabric.Probe(local, total) // the library copies it, in C
	}
	c := cursor{active: true, rkey: uint32(key), runs: runs, local: uint64(uintptr(local))}
	c.end = record{op: op, last: true, cookie: cookie}
	c.code = ibverbs.RDMAWrite
	if op == opGet {
		c.code = ibverbs.RDMARead
	}
	if op != opPut || longest > e.inline {
		if err := e.place(&c, local, total); err != nil {
			return false, err
		}
	}
	taken, err := e.advance(&c)
	if taken == 0 {
		t.undo(&c.end)
		if err == nil {
			err = fabric.ErrAgain
		}
		return false, err
	}
	if c.active { // the device took a part only, or there is more than the queue holds
		n := copy(e.runs[:], c.runs[c.run:])
		c.runs, c.run = e.runs[:n], 0
		e.long = c
		e.open++
		e.watch()
	}
	return false, nil
}

// place finds the key of local memory, takes a buffer in its place, or registers it.
func (e *endpoint) place(c *cursor, local unsafe.Pointer, n int) error {
	t := e.t
	if r := t.regions.Find(uint64(uintptr(local)), n); r != nil {
		c.lkey, c.end.region = r.mr.LKey(), r
		r.uses++
		return nil
	}
	s, k := t.bounce, bounced
	if n <= cellBytes {
		s, k = t.cells, celled
	}
	if n <= s.Size {
		slot := s.Take()
		if slot < 0 {
			t.starve()
			return fabric.ErrAgain
		}
		c.end.kind, c.end.slot = k, slot
		c.local, c.lkey = s.Addr(slot), s.MR.LKey()
		if c.end.op == opPut {
			if err := sys.Touch(func() { fabric.Copy(s.At(slot), local, n) }); err != nil {
				t.undo(&c.end)
				return err
			}
		} else {
			c.end.dst, c.end.n = local, int32(n)
		}
		return nil
	}
	access := device.LocalWrite
	if c.end.op == opPut {
		access = 0
	}
	mr, err := t.register(uintptr(local), n, access)
	if err != nil {
		return &fabric.OpError{Op: opNames[c.end.op], Peer: e.peer, Status: "the local memory can't be registered", Detail: err.Error()}
	}
	c.lkey, c.end.mr = mr.LKey(), mr
	return nil
}

// advance posts the requests that there is room for, with one doorbell, and returns how
// many the device took. After the operation's last request the cursor is not active.
func (e *endpoint) advance(c *cursor) (int, error) {
	room := len(e.ring) - int(e.head-e.tail) - 1
	before, n, signaled := *c, 0, e.signaled
	for ; n < room && c.active; n++ {
		e.wrs[n] = e.next(c)
		signaled = e.sign(&e.wrs[n], e.head+uint32(n), signaled, !c.active)
	}
	if n == 0 {
		return 0, nil
	}
	posted, err := e.qp.PostSend(e.wrs[:n])
	if posted < n { // set the cursor back to what was posted
		*c = before
		for range posted {
			e.next(c)
		}
	}
	for i := range posted {
		rec := record{op: before.end.op}
		if i == n-1 && !c.active {
			rec = c.end
		}
		e.note(&e.wrs[i], rec)
	}
	if posted < n && !errors.Is(err, syscall.ENOMEM) {
		return posted, e.refused(&before.end, err)
	}
	return posted, nil
}

// next returns the cursor's next request. After the last one the cursor is not active.
func (e *endpoint) next(c *cursor) ibverbs.SendWR {
	for c.runs[c.run].N == c.off {
		c.run, c.off = c.run+1, 0
	}
	r := c.runs[c.run]
	n := min(r.N-c.off, e.t.maxMsg)
	wr := ibverbs.SendWR{Opcode: c.code, Addr: c.local, Len: uint32(n), LKey: c.lkey, RemoteAddr: r.Addr + uint64(c.off), RKey: c.rkey}
	if c.code == ibverbs.RDMAWrite && n <= e.inline {
		wr.Flags = ibverbs.Inline
	}
	c.local, c.off = c.local+uint64(n), c.off+n
	for c.run < len(c.runs) && c.runs[c.run].N == c.off {
		c.run, c.off = c.run+1, 0
	}
	c.active = c.run < len(c.runs)
	return wr
}

// FetchAdd implements fabric.Endpoint.
func (e *endpoint) FetchAdd(old unsafe.Pointer, remote fabric.RemoteKey, add uint64, cookie uint64) (bool, error) {
	return e.atomic(opFetchAdd, ibverbs.SendWR{Opcode: ibverbs.FetchAdd, Add: add}, old, remote, cookie)
}

// CompareSwap implements fabric.Endpoint.
func (e *endpoint) CompareSwap(old unsafe.Pointer, remote fabric.RemoteKey, compare, swap uint64, cookie uint64) (bool, error) {
	return e.atomic(opCompareSwap, ibverbs.SendWR{Opcode: ibverbs.CompareSwap, Add: compare, Swap: swap}, old, remote, cookie)
}

func (e *endpoint) atomic(op opName, wr ibverbs.SendWR, old unsafe.Pointer, remote fabric.RemoteKey, cookie uint64) (bool, error) {
	t := e.t
	if !t.caps.Atomics {
		return false, fabric.ErrUnsupported
	}
	if remote.Addr%8 != 0 {
		return false, &fabric.OpError{Op: opNames[op], Peer: e.peer, Status: "the address is not aligned", Detail: fmt.Sprintf(
			"%#x is not a multiple of 8", remote.Addr)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := e.ready(); err != nil {
		return false, err
	}
	if e.room() < 1 {
		return false, fabric.ErrAgain
	}
	slot := t.cells.Take()
	if slot < 0 {
		t.starve()
		return false, fabric.ErrAgain
	}
	rec := record{kind: celled, op: op, last: true, slot: slot, n: 8, cookie: cookie, dst: old}
	wr.Addr, wr.LKey, wr.Len = t.cells.Addr(slot), t.cells.MR.LKey(), 8
	wr.RemoteAddr, wr.RKey = remote.Addr, uint32(remote.Key)
	e.wrs[0] = wr
	e.sign(&e.wrs[0], e.head, e.signaled, true)
	if posted, err := e.qp.PostSend(e.wrs[:1]); posted == 0 {
		t.undo(&rec)
		return false, e.refused(&rec, err)
	}
	e.note(&e.wrs[0], rec)
	return false, nil
}

// undo gives back what a request holds, without its effect.
func (t *Transport) undo(rec *record) {
	switch rec.kind {
	case bounced:
		t.bounce.Give(rec.slot)
	case celled:
		t.cells.Give(rec.slot)
	}
	rec.kind = bare
	if r := rec.region; r != nil {
		rec.region = nil
		if r.uses--; r.uses == 0 && r.closed {
			t.over = append(t.over, r.mr)
		}
	}
	if rec.mr != nil {
		t.over = append(t.over, rec.mr)
		rec.mr = nil
	}
}
