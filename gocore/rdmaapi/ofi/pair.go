//go:build cgo

package ofi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"gormapy/gocore/device"
	"gormapy/gocore/libfabric"
	"gormapy/gocore/rdmaapi/backend"
)

// libfabric's immediate data of a message: that of verbs in the lower half, and flags.
const (
	dataImm   = 1 << 32 // there is immediate data of verbs
	dataWrite = 1 << 33 // the message announces a write; its size is in the bits from dataShift on
	dataShift = 34
)

// operandBytes is the memory for the operands of an atomic.
const operandBytes = 16

// op is a work request that has not completed.
type op struct {
	backend.SendWR
	recv   bool
	slot   int       // -1 if it has none
	halves int       // requests of libfabric that have not completed: a write with immediate data has two
	since  time.Time // posted
	done   bool
	result backend.Completion
}

// pair is a queue pair. domain.mu guards it.
type pair struct {
	d          *domain
	num        uint32
	init       backend.QPInit
	send, recv *queue
	ep         *libfabric.Endpoint // nil in the error state
	cq         *libfabric.CQ
	av         *libfabric.AV
	name       []byte
	peer       libfabric.Addr
	contexts   *libfabric.Contexts
	operands   *device.Slab[*libfabric.MR] // by slot
	slots      []*op
	free       []int
	sq, rq     []*op // in the order of posting
	next       int   // index in sq of the next one to post
	state      backend.State
	patience   time.Duration
	latest     time.Time // of the last completion
	why        string    // why it is in the error state
	closed     bool
	draining   bool
}

// CreateQP is described with backend.PD.
func (d *domain) CreateQP(init backend.QPInit) (backend.QP, error) {
	send, ok := init.Send.(*queue)
	recv, also := init.Recv.(*queue)
	if !ok || !also {
		return nil, &backend.Errno{Name: "EINVAL", Text: "the completion queues are of another back end"}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.number++
	p := &pair{d: d, num: d.number, init: init, send: send, recv: recv}
	if err := p.open(); err != nil {
		p.shut()
		return nil, translate(err)
	}
	send.use(d, 1)
	recv.use(d, 1)
	d.pairs[p] = struct{}{}
	d.rouse()
	return p, nil
}

// open makes the endpoint and what it needs.
func (p *pair) open() (err error) {
	d, i := p.d, p.d.ctx.Info
	n := p.init.MaxSend + p.init.MaxRecv
	if p.cq, err = d.dom.OpenCQ(2*n+64, true); err != nil {
		if p.cq, err = d.dom.OpenCQ(2*n+64, false); err != nil {
			return err
		}
	}
	if p.av, err = d.dom.OpenAV(i, 2); err != nil {
		return err
	}
	if p.ep, err = d.dom.OpenEndpoint(i, p.av, p.cq); err != nil {
		return err
	}
	if p.name, err = p.ep.Name(); err != nil {
		return err
	}
	p.contexts = libfabric.NewContexts(n)
	p.slots = make([]*op, n)
	p.free = make([]int, n)
	for k := range p.free {
		p.free[k] = n - 1 - k
	}
	register := func(addr uintptr, n int) (*libfabric.MR, error) {
		return d.ctx.Offer.Register(d.dom, nil, addr, n, device.LocalWrite)
	}
	if i.MRMode&libfabric.MRLocal == 0 || !d.ctx.Atomics {
		register = nil
	}
	if p.operands, err = device.NewSlab(n, operandBytes, "operands of atomics", register); err != nil {
		return err
	}
	p.state = backend.StateInit
	return nil
}

// shut closes the endpoint and what it uses. The provider does not access local memory
// any more.
func (p *pair) shut() {
	if p.ep != nil {
		p.ep.Close() //nolint:errcheck // there is nothing else to do with it
		p.ep = nil
	}
	if p.cq != nil {
		p.cq.Close() //nolint:errcheck // likewise
		p.cq = nil
	}
	if p.av != nil {
		p.av.Close() //nolint:errcheck // likewise
		p.av = nil
	}
	p.operands.Close() //nolint:errcheck // likewise
	p.operands = nil
	if p.contexts != nil {
		p.contexts.Free()
		p.contexts = nil
	}
}

// Num is described with backend.QP.
func (p *pair) Num() uint32 { return p.num }

// State is described with backend.QP.
func (p *pair) State() backend.State {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	return p.state
}

// Explain returns what brought the queue pair to the error state.
func (p *pair) Explain() string {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	return p.why
}

// Info is described with backend.QP: version, the lengths of both names, the
// provider's name and the endpoint's.
func (p *pair) Info() ([]byte, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	provider := p.d.ctx.Info.Provider
	b := []byte{1, byte(len(provider)), byte(len(p.name)), byte(len(p.name) >> 8)}
	return append(append(b, provider...), p.name...), nil
}

// Connect is described with backend.QP.
func (p *pair) Connect(b []byte, c backend.Connection) error {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	wrong := func(format string, args ...any) error {
		return &backend.Errno{Name: "EINVAL", Text: fmt.Sprintf(format, args...)}
	}
	if len(b) < 4 || b[0] != 1 || len(b) != 4+int(b[1])+int(binary.LittleEndian.Uint16(b[2:])) {
		return wrong("the connection info of %d bytes is of another version, or cut off", len(b))
	}
	if theirs := string(b[4 : 4+int(b[1])]); theirs != p.d.ctx.Info.Provider {
		return wrong("the peer's queue pair is of provider %s, this one of %s", theirs, p.d.ctx.Info.Provider)
	}
	if p.state != backend.StateInit {
		return wrong("queue pair %d is in state %s; it can be connected in INIT, once", p.num, p.state)
	}
	peer, err := p.av.Insert(b[4+int(b[1]):])
	if err != nil {
		return translate(err)
	}
	p.peer, p.state, p.patience = peer, backend.StateRTS, c.Timeout
	return nil
}

// PostSend is described with backend.QP.
func (p *pair) PostSend(wrs []backend.SendWR) (int, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	for i := range wrs {
		o := &op{SendWR: wrs[i], slot: -1, halves: 1, since: time.Now()}
		if o.Op == backend.OpWriteImm && o.N > 0 {
			o.halves = 2
		}
		if o.Inline && o.N > 0 { // the program may reuse it at once
			o.Local = p.keep(o.Local, o.N)
		}
		p.sq = append(p.sq, o)
	}
	if p.state == backend.StateErr {
		p.flush()
		return len(wrs), nil
	}
	p.advance()
	return len(wrs), nil
}

// keep copies inline data. The copy is injected, so it need not be registered.
func (p *pair) keep(from unsafe.Pointer, n int) unsafe.Pointer {
	b := make([]byte, n)
	copy(b, unsafe.Slice((*byte)(from), n))
	return unsafe.Pointer(&b[0])
}

// PostRecv is described with backend.QP.
func (p *pair) PostRecv(wrs []backend.RecvWR) (int, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	for i := range wrs {
		o := &op{SendWR: backend.SendWR{Cookie: wrs[i].Cookie, Region: wrs[i].Region, Local: wrs[i].Local, N: wrs[i].N, Signaled: true}, recv: true, slot: -1, halves: 1}
		p.rq = append(p.rq, o)
	}
	if p.state == backend.StateErr {
		p.flush()
		return len(wrs), nil
	}
	p.advance()
	return len(wrs), nil
}

// advance posts what can be posted.
func (p *pair) advance() {
	if p.draining {
		return
	}
	for _, o := range p.rq {
		if o.slot < 0 && !o.done && !p.post(o, libfabric.Request{Kind: libfabric.Recv, Addr: libfabric.AddrUnspec, Flags: libfabric.Completed}) {
			return
		}
	}
	for p.state == backend.StateRTS && p.next < len(p.sq) {
		o := p.sq[p.next]
		if !p.mayGo(o) || !p.post(o, p.request(o)) {
			return
		}
		if o.halves == 1 {
			p.next++
		} else {
			return // the message follows when the write is done
		}
	}
}

// mayGo reports whether an operation may be posted: the operations before it that it
// depends on are done.
func (p *pair) mayGo(o *op) bool {
	if o.slot >= 0 {
		return false // its first half is under way
	}
	write := o.Op == backend.OpWrite || o.halves == 2
	for _, before := range p.sq[:p.next] {
		wrote := !before.done && before.Op != backend.OpRead && before.Op != backend.OpSend && before.Op != backend.OpSendImm
		if wrote && !write || o.Fence && !before.done {
			return false
		}
	}
	return true
}

// request returns libfabric's request for an operation.
func (p *pair) request(o *op) libfabric.Request {
	r := libfabric.Request{Flags: libfabric.Completed, Addr: p.peer, Remote: o.Raddr, Key: o.RKey}
	if p.d.ctx.Delivery {
		r.Flags |= libfabric.DeliveryComplete
	}
	switch {
	case o.Op == backend.OpRead:
		r.Kind = libfabric.Read
	case o.Op == backend.OpFetchAdd:
		r.Kind = libfabric.FetchAdd
	case o.Op == backend.OpCompareSwap:
		r.Kind = libfabric.CompareSwap
	case o.Op == backend.OpWrite || o.halves == 2:
		r.Kind = libfabric.Write
	case o.Op == backend.OpWriteImm:
		r.Kind = libfabric.Send
		r.Flags |= libfabric.RemoteData
		r.Data = dataImm | dataWrite | uint64(o.N)<<dataShift | uint64(o.Imm)
	default:
		r.Kind = libfabric.Send
		if o.Op == backend.OpSendImm {
			r.Flags |= libfabric.RemoteData
			r.Data = dataImm | uint64(o.Imm)
		}
	}
	return r
}

// post posts an operation, and reports whether it could.
func (p *pair) post(o *op, r libfabric.Request) bool {
	if len(p.free) == 0 {
		return false
	}
	slot := p.free[len(p.free)-1]
	r.Context = p.contexts.At(slot)
	if last := o.Op == backend.OpWriteImm && o.halves == 1 && !o.recv; !last {
		r.Local, r.Len = uintptr(o.Local), uint64(o.N)
		if mr, ok := o.Region.(*region); ok {
			if mr.closed { // since it was checked: the provider would use freed memory
				p.fail(o, backend.LocProtErr, "the local memory is not registered any more")
				return false
			}
			r.Desc = mr.mr.Desc
		}
		if o.Inline && o.N > 0 && (r.Kind == libfabric.Send || r.Kind == libfabric.Write) {
			r.Flags |= libfabric.Inject
			r.Desc = 0
		}
	}
	if o.Op.Atomic() && !o.recv {
		words := p.operands.Bytes(int32(slot))
		binary.LittleEndian.PutUint64(words, o.Operand)
		binary.LittleEndian.PutUint64(words[8:], o.Compare)
		r.Operand, r.Compare = uintptr(unsafe.Pointer(&words[0])), uintptr(unsafe.Pointer(&words[8]))
		if p.operands.MR != nil {
			r.OperandDesc = p.operands.MR.Desc
		}
	}
	n, err := p.ep.Post([]libfabric.Request{r})
	if n == 1 {
		p.free = p.free[:len(p.free)-1]
		p.slots[slot], o.slot, o.since = o, slot, time.Now()
		return true
	}
	if err != nil && !errors.Is(err, libfabric.EAGAIN) {
		p.fail(o, status(err), fmt.Sprintf("posting failed: %v", err))
	}
	return false
}

// progress takes completions and posts requests that wait. It reports whether there were
// completions. The caller holds domain.mu.
func (p *pair) progress() (busy bool) {
	for p.ep != nil {
		done, failed, err := p.cq.Read()
		if err != nil {
			p.fail(nil, backend.FatalErr, err.Error())
			return true
		}
		for i := range done {
			busy = true
			p.ended(done[i].Context, &done[i])
		}
		if failed != nil {
			busy = true
			if o := p.release(failed.Context); o != nil {
				p.fail(o, status(failed.Errno), failed.Error())
			}
			continue
		}
		if len(done) == 0 {
			break
		}
	}
	if busy {
		p.latest = time.Now()
	}
	if p.ep != nil {
		p.expire()
	}
	if p.ep != nil {
		p.advance()
	}
	return busy
}

// withdraw waits until the requests that use a region end, and fails the pair if they do
// not.
func (p *pair) withdraw(r *region) {
	uses := func(o *op) bool {
		used, ok := o.Region.(*region)
		return ok && used == r && !o.done
	}
	if p.ep == nil || !slices.ContainsFunc(p.sq, uses) && !slices.ContainsFunc(p.rq, uses) {
		return
	}
	p.drain()
	for _, o := range slices.Concat(p.sq, p.rq) {
		if uses(o) {
			p.fail(o, backend.LocProtErr, "local memory was deregistered while it was in use")
			return
		}
	}
}

// drain waits until posted sends have ended, for at most drainTime, and posts nothing
// meanwhile. To close an endpoint of tcp;ofi_rxm in the middle of a read crashes in the
// library.
func (p *pair) drain() {
	p.draining = true
	defer func() { p.draining = false }()
	posted := func(o *op) bool { return o != nil && !o.recv }
	for end := time.Now().Add(drainTime); p.ep != nil && slices.ContainsFunc(p.slots, posted) && time.Now().Before(end); {
		if !p.d.progress() {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// expire fails the pair if the peer has not answered for too long, because providers
// report that late or never. A message may wait for its receive without limit.
func (p *pair) expire() {
	if len(p.sq) == 0 {
		return
	}
	o := p.sq[0]
	message := o.Op == backend.OpSend || o.Op == backend.OpSendImm || o.Op == backend.OpWriteImm && o.halves == 1
	if !o.done && !message && time.Since(o.since) > p.patience && time.Since(p.latest) > p.patience {
		p.fail(o, backend.RetryExcErr, fmt.Sprintf("the peer has not answered for %v", p.patience))
	}
}

// release frees the slot of a context whose request has ended, and returns its operation.
func (p *pair) release(context uintptr) *op {
	k := p.contexts.Index(context)
	if k < 0 || p.slots[k] == nil {
		return nil
	}
	o := p.slots[k]
	p.slots[k], o.slot = nil, -1
	p.free = append(p.free, k)
	return o
}

// ended notes that a request has completed.
func (p *pair) ended(context uintptr, c *libfabric.Completion) {
	o := p.release(context)
	if o == nil {
		return
	}
	if o.halves--; o.halves > 0 {
		return
	}
	o.done = true
	o.result = backend.Completion{Cookie: o.Cookie, Recv: o.recv}
	if o.recv {
		o.result.N = int(c.Len)
		if c.Flags&libfabric.FlagRemoteCQData != 0 && c.Data&dataImm != 0 {
			o.result.HasImm, o.result.Imm = true, uint32(c.Data)
			if c.Data&dataWrite != 0 {
				o.result.Write, o.result.N = true, int(c.Data>>dataShift)
			}
		}
	}
	p.deliver()
}

// deliver delivers completions to the queues, in the order of posting.
func (p *pair) deliver() {
	for len(p.sq) > 0 && p.sq[0].done {
		if o := p.sq[0]; o.Signaled || o.result.Status != backend.Success {
			p.send.push(o.result)
		}
		p.sq = p.sq[1:]
		p.next--
	}
	for len(p.rq) > 0 && p.rq[0].done {
		p.recv.push(p.rq[0].result)
		p.rq = p.rq[1:]
	}
}

// fail brings the pair to the error state, and delivers all completions.
func (p *pair) fail(o *op, s backend.Status, why string) {
	if p.state == backend.StateErr {
		return
	}
	p.state, p.why = backend.StateErr, why
	if o != nil {
		if !o.recv { // providers do not fail requests in order: the first open one gets the error
			for _, first := range p.sq {
				if !first.done {
					o = first
					break
				}
			}
		}
		o.done = true
		o.result = backend.Completion{Cookie: o.Cookie, Recv: o.recv, Status: s, Detail: why}
	}
	if !p.draining {
		p.drain()
	}
	if p.ep != nil {
		p.ep.Close() //nolint:errcheck // there is nothing else to do with it
		p.ep = nil
	}
	p.flush()
}

// flush delivers the completions of all requests, with an error for those that are not
// done.
func (p *pair) flush() {
	for _, o := range slices.Concat(p.sq, p.rq) {
		if !o.done {
			o.result = backend.Completion{Cookie: o.Cookie, Recv: o.recv, Status: backend.WRFlushErr, Detail: p.why}
		}
		if q := map[bool]*queue{true: p.recv, false: p.send}[o.recv]; o.Signaled || o.result.Status != backend.Success {
			q.push(o.result)
		}
	}
	p.sq, p.rq, p.next = nil, nil, 0
}

// Reset is described with backend.QP.
func (p *pair) Reset() error {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.forget()
	if err := p.open(); err != nil {
		p.state, p.why = backend.StateErr, err.Error()
		return translate(err)
	}
	p.d.rouse()
	return nil
}

// forget closes the endpoint and drops all requests, without completions.
func (p *pair) forget() {
	p.drain()
	p.shut()
	p.sq, p.rq, p.next, p.why = nil, nil, 0, ""
}

// Close is described with backend.QP.
func (p *pair) Close() error {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if p.closed {
		return nil
	}
	p.forget()
	p.closed, p.state = true, backend.StateErr
	delete(p.d.pairs, p)
	p.send.use(p.d, -1)
	p.recv.use(p.d, -1)
	return nil
}

// status returns the status of verbs for an error of libfabric.
func status(err error) backend.Status {
	var e libfabric.Errno
	if !errors.As(err, &e) {
		return backend.GeneralErr
	}
	switch e.Name() {
	case "FI_ETRUNC", "FI_ETOOSMALL", "FI_EMSGSIZE":
		return backend.LocLenErr
	case "FI_EACCES", "FI_EPERM", "FI_ENOKEY", "FI_EKEYREJECTED", "FI_EINVAL", "FI_EFAULT":
		return backend.RemAccessErr
	case "FI_ECANCELED", // nothing is cancelled here: the connection broke
		"FI_ECONNREFUSED", "FI_ECONNRESET", "FI_ECONNABORTED", "FI_ENOTCONN", "FI_ETIMEDOUT", "FI_EHOSTUNREACH", "FI_EPIPE", "FI_ESHUTDOWN", "FI_EHOSTDOWN", "FI_EIO":
		return backend.RetryExcErr
	}
	return backend.GeneralErr
}
