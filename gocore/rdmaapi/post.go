package rdmaapi

import (
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/rdmaapi/backend"
)

// WR is a send work request, as Python writes it.
type WR struct {
	Op, Flags, ID int64
	Region        int64 // handle; 0 for inline data at address Offset
	Offset, N     int64
	Raddr, Rlen   uint64 // remote memory, its length
	Roffset       int64
	RKey          uint64
	Imm           int64
	Compare       uint64
	Operand       uint64
	_             int64
}

// Flags of a WR.
const (
	wrSignaled = 1 << 0
	wrInline   = 1 << 1
	wrFence    = 1 << 2
)

// RR is a receive work request.
type RR struct {
	ID        int64
	Region    int64 // handle; 0 for none
	Offset, N int64
}

// maxPost is the largest number of work requests of one call.
const maxPost = 1 << 20

// local checks and returns the local memory of a work request; writes reports
// whether the request writes to it.
func (p *pair) local(h, offset, n int64, writes bool, op string) (*memory, *Error) {
	m, _, e := get[*memory](h, "MemoryRegion", op)
	if e != nil {
		return nil, e
	}
	s := sizes{"local_offset": offset, "length": n, "region": m.n}
	switch {
	case m.domain != p.domain:
		return nil, refuse("IBV_WC_LOC_PROT_ERR", op, s, "the local region is of another ProtectionDomain than the queue pair: register it there")
	case offset < 0 || n < 0 || offset > m.n || n > m.n-offset:
		return nil, refuse("IBV_WC_LOC_PROT_ERR", op, s, "%d bytes at offset %d are outside of the local region of %d bytes", n, offset, m.n)
	case writes && m.region.Access()&backend.LocalWrite == 0:
		return nil, refuse("IBV_WC_LOC_PROT_ERR", op, s, "the local region does not allow LOCAL_WRITE, which this needs")
	}
	return m, nil
}

// check checks a work request of Python and translates it for the back end.
func (p *pair) check(w *WR, d *backend.Device, out *backend.SendWR) *Error {
	kind := backend.Op(w.Op)
	if !kind.Valid() {
		return refuse("EINVAL", "post_send", nil, "there is no operation %d", w.Op)
	}
	op := "post_" + kind.String()
	*out = backend.SendWR{
		Op: kind, Signaled: w.Flags&wrSignaled != 0, Inline: w.Flags&wrInline != 0, Fence: w.Flags&wrFence != 0, Imm: uint32(w.Imm),
		N: int(w.N), RKey: w.RKey, Compare: w.Compare, Operand: w.Operand,
	}
	s := sizes{"length": w.N}
	switch {
	case w.N < 0:
		return refuse("EINVAL", op, s, "length is %d", w.N)
	case kind.Imm() && w.Imm != int64(uint32(w.Imm)):
		return refuse("EINVAL", op, s, "the immediate data is %d; it must fit into 32 bits", w.Imm)
	case kind.Imm() && !d.Limits.Immediate:
		return refuse("EOPNOTSUPP", op, s, "device %s has no immediate data", d.Name)
	case kind.Atomic() && !d.Limits.Atomics:
		return refuse("EOPNOTSUPP", op, s, "device %s has no atomic operations", d.Name)
	case kind.Atomic() && w.N != 8:
		return refuse("IBV_WC_LOC_LEN_ERR", op, s, "atomics work on 8 bytes, not on %d", w.N)
	case len(d.Ports) > 0 && d.Ports[0].MaxMessage > 0 && w.N > d.Ports[0].MaxMessage:
		return refuse("IBV_WC_LOC_LEN_ERR", op, sizes{"length": w.N, "limit": d.Ports[0].MaxMessage}, "a message of %d bytes is longer than the port allows, %d", w.N, d.Ports[0].MaxMessage)
	}
	if out.Inline {
		if kind == backend.OpRead || kind.Atomic() {
			return refuse("EINVAL", op, s, "what fetches data can't be inline")
		}
		if w.N > p.inline {
			s["max_inline"] = p.inline
			return refuse("ENOMEM", op, s, "%d bytes inline are more than the queue pair's max_inline of %d", w.N, p.inline)
		}
	}
	switch {
	case w.Region != 0:
		m, e := p.local(w.Region, w.Offset, w.N, kind == backend.OpRead || kind.Atomic(), op)
		if e != nil {
			return e
		}
		out.Region, out.Local = m.region, fabric.Pointer(m.addr+uint64(w.Offset))
	case out.Inline && w.Offset != 0:
		out.Local = fabric.Pointer(uint64(w.Offset))
	case w.N != 0:
		return refuse("EINVAL", op, s, "%d bytes, and no local region", w.N)
	}
	if kind.Remote() {
		off := uint64(w.Roffset)
		if w.Roffset < 0 || off > w.Rlen || uint64(w.N) > w.Rlen-off {
			s["remote_offset"], s["region"] = w.Roffset, int64(w.Rlen)
			return refuse("IBV_WC_REM_ACCESS_ERR", op, s, "%d bytes at offset %d are outside of the remote region of %d bytes", w.N, w.Roffset, w.Rlen)
		}
		out.Raddr = w.Raddr + off
		if out.Raddr < w.Raddr || out.Raddr+uint64(w.N) < out.Raddr {
			return refuse("IBV_WC_REM_ACCESS_ERR", op, s, "there are no %d bytes at address %#x", w.N, out.Raddr)
		}
		if kind.Atomic() && out.Raddr%8 != 0 {
			return refuse("IBV_WC_REM_INV_REQ_ERR", op, s, "an atomic needs a remote address aligned to 8 bytes, not %#x", out.Raddr)
		}
	}
	return nil
}

// ready returns an error if work requests can't be posted in the queue pair's state.
func (p *pair) ready(op string, sends bool) *Error {
	if p.closed {
		return refuse("EBADF", op, nil, "this QueuePair is closed")
	}
	state := p.qp.State()
	if p.broken {
		state = backend.StateErr
	}
	if state == backend.StateErr {
		why := ""
		if x, ok := p.qp.(interface{ Explain() string }); ok {
			why = x.Explain()
		}
		if why == "" {
			why = "a work request has failed"
		}
		return refuse("IBV_WC_WR_FLUSH_ERR", op, nil, "queue pair %d is in state ERR: %s; reset() and connect it anew", p.num, why)
	}
	if sends && state != backend.StateRTS {
		return refuse("EINVAL", op, nil, "queue pair %d is in state %v, not connected: call connect() first", p.num, state)
	}
	return nil
}

// PostSend posts the n work requests at addr, all or none, unless the device runs
// out of room in between. It returns 0 or a code.
func PostSend(h, addr, n int64) (c int64) {
	const op = "post_send"
	defer contain(op, &c)
	p, _, e := get[*pair](h, "QueuePair", op)
	if e == nil {
		e = limit(op, "n", n, 1, maxPost)
	}
	if e != nil {
		return code(e)
	}
	wrs := unsafe.Slice((*WR)(fabric.Pointer(uint64(addr))), int(n))
	var one [1]backend.SendWR
	out := one[:]
	if n > 1 {
		out = make([]backend.SendWR, n)
	}
	d := p.dev.ctx.Device()
	signaled := int64(0)
	for i := range wrs {
		if e := p.check(&wrs[i], &d, &out[i]); e != nil {
			if n > 1 {
				if e.Sizes == nil {
					e.Sizes = sizes{}
				}
				e.Sizes["index"] = int64(i)
			}
			return code(e)
		}
		if out[i].Signaled {
			signaled++
		}
	}
	if n == 1 {
		return code(p.post(out, wrs, signaled, "post_"+out[0].Op.String()))
	}
	return code(p.post(out, wrs, signaled, op))
}

func (p *pair) post(out []backend.SendWR, wrs []WR, signaled int64, op string) *Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.ready(op, true); e != nil {
		e.Sizes = sizes{"length": wrs[0].N}
		return e
	}
	n := int64(len(out))
	if room := p.sq.room(); n > room {
		s := sizes{"posted": n, "room": room, "max_send_wr": p.sq.max, "length": wrs[0].N}
		return refuse("ENOMEM", op, s, "%d work requests, and the send queue has room for %d of its max_send_wr %d: poll completions first (what is not signalled takes its place until a later one is polled)", n, room, p.sq.max)
	}
	if free, ok := p.send.reserve(signaled); !ok {
		s := sizes{"posted": signaled, "room": free, "depth": p.send.depth, "length": wrs[0].N}
		return refuse("ENOMEM", op, s, "%d completions, and the completion queue has room for %d of its depth %d: poll it first, or make it deeper", signaled, free, p.send.depth)
	}
	for i := range out {
		number := p.sq.tail + uint32(i)
		*p.sq.at(number) = posted{wrs[i].ID, wrs[i].N, out[i].Op, out[i].Signaled}
		out[i].Cookie = uint64(p.serial)<<32 | uint64(number&(recvBit-1))
	}
	p.sq.tail += uint32(n)
	done, err := p.qp.PostSend(out)
	if err == nil && done == len(out) {
		return nil
	}
	for _, wr := range out[done:] {
		if wr.Signaled {
			p.send.release(1)
		}
	}
	p.sq.tail -= uint32(len(out) - done)
	return from(err, op, sizes{"requests": n, "posted": int64(done), "length": wrs[0].N})
}

// PostRecv posts the n receives at addr, likewise.
func PostRecv(h, addr, n int64) (c int64) {
	const op = "post_recv"
	defer contain(op, &c)
	p, _, e := get[*pair](h, "QueuePair", op)
	if e == nil {
		e = limit(op, "n", n, 1, maxPost)
	}
	if e != nil {
		return code(e)
	}
	rrs := unsafe.Slice((*RR)(fabric.Pointer(uint64(addr))), int(n))
	out := make([]backend.RecvWR, n)
	for i, r := range rrs {
		if r.Region == 0 {
			if r.N != 0 {
				return code(refuse("EINVAL", op, sizes{"length": r.N}, "%d bytes, and no local region", r.N))
			}
			continue
		}
		m, e := p.local(r.Region, r.Offset, r.N, true, op)
		if e != nil {
			return code(e)
		}
		out[i].Region, out[i].Local, out[i].N = m.region, fabric.Pointer(m.addr+uint64(r.Offset)), int(r.N)
	}
	return code(p.receive(out, rrs))
}

func (p *pair) receive(out []backend.RecvWR, rrs []RR) *Error {
	const op = "post_recv"
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int64(len(out))
	if e := p.ready(op, false); e != nil {
		e.Sizes = sizes{"length": rrs[0].N}
		return e
	}
	if room := p.rq.room(); n > room {
		s := sizes{"posted": n, "room": room, "max_recv_wr": p.rq.max, "length": rrs[0].N}
		return refuse("ENOMEM", op, s, "%d receives, and the receive queue has room for %d of its max_recv_wr %d: poll completions first", n, room, p.rq.max)
	}
	if free, ok := p.recv.reserve(n); !ok {
		s := sizes{"posted": n, "room": free, "depth": p.recv.depth, "length": rrs[0].N}
		return refuse("ENOMEM", op, s, "%d receives, and the completion queue has room for %d of its depth %d: poll it first, or make it deeper", n, free, p.recv.depth)
	}
	for i := range out {
		number := p.rq.tail + uint32(i)
		*p.rq.at(number) = posted{rrs[i].ID, rrs[i].N, opRecv, true}
		out[i].Cookie = uint64(p.serial)<<32 | recvBit | uint64(number&(recvBit-1))
	}
	p.rq.tail += uint32(n)
	done, err := p.qp.PostRecv(out)
	if err == nil && done == len(out) {
		return nil
	}
	p.recv.release(int64(len(out) - done))
	p.rq.tail -= uint32(len(out) - done)
	return from(err, op, sizes{"requests": n, "posted": int64(done), "length": rrs[0].N})
}
