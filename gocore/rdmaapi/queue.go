package rdmaapi

import (
	"sync"
	"time"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/rdmaapi/backend"
)

// batch is the number of completions that are taken from a back end at a time.
const batch = 128

// queue is a completion queue.
type queue struct {
	dev   *device
	cq    backend.CQ
	depth int64

	polling sync.Mutex // held while the back end is polled, or closed
	scratch []backend.Completion

	mu       sync.Mutex
	reserved int64 // places of requests that are posted and not polled yet
	waiters  int
	closed   bool
}

// CreateCQ makes a completion queue.
func CreateCQ(ctx, depth int64) (h int64) {
	const op = "create CompletionQueue"
	defer contain(op, &h)
	d, n, e := get[*device](ctx, "Context", op)
	if e == nil {
		e = limit(op, "depth", depth, 1, int64(d.ctx.Device().Limits.MaxCQE))
	}
	if e != nil {
		return code(e)
	}
	cq, err := d.ctx.CreateCQ(int(depth))
	if err != nil {
		return code(from(err, op, sizes{"depth": depth}))
	}
	q := &queue{dev: d, cq: cq, depth: depth, scratch: make([]backend.Completion, batch)}
	made, e := add("CompletionQueue", q, q.close, op, n)
	if e != nil {
		cq.Close()
		return code(e)
	}
	return made.handle
}

func (q *queue) close() error {
	q.mu.Lock()
	q.closed = true
	for pause := 50 * time.Microsecond; q.waiters > 0; pause = min(2*pause, 5*time.Millisecond) {
		q.mu.Unlock()
		q.cq.Wake() // repeated, since it is lost if a waiter has not begun to wait yet
		time.Sleep(pause)
		q.mu.Lock()
	}
	q.mu.Unlock()
	q.polling.Lock()
	defer q.polling.Unlock()
	return q.cq.Close()
}

// reserve reserves n places if there are as many; free is the number before.
func (q *queue) reserve(n int64) (free int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	free = q.depth - q.reserved
	if n > free {
		return free, false
	}
	q.reserved += n
	return free, true
}

func (q *queue) release(n int64) {
	q.mu.Lock()
	q.reserved -= n
	q.mu.Unlock()
}

// WC is a work completion, as Python reads it.
type WC struct {
	WRID, Status, Opcode, Bytes int64
	HasImm, Imm                 int64
	QPNum, QP                   int64
	Operation, Length           int64 // of the work request; operation -1 is a receive
	Error                       int64 // the code of an error, or 0
	_                           int64
}

// Opcodes of completions, numbered as ibv_wc_opcode.
const (
	wcSend       = 0
	wcWrite      = 1
	wcRead       = 2
	wcCompSwap   = 3
	wcFetchAdd   = 4
	wcRecv       = 128
	wcRecvRDMA   = 129
	opRecv       = -1
	maxPerPoll   = 1 << 20
	longestSlice = time.Hour
)

var wcOpcodes = [...]int64{
	backend.OpWrite: wcWrite, backend.OpWriteImm: wcWrite, backend.OpSend: wcSend, backend.OpSendImm: wcSend,
	backend.OpRead: wcRead, backend.OpCompareSwap: wcCompSwap, backend.OpFetchAdd: wcFetchAdd,
}

// Poll writes at most n completions to addr and returns their number.
func Poll(cq, addr, n int64) (c int64) {
	const op = "poll"
	defer contain(op, &c)
	q, _, e := get[*queue](cq, "CompletionQueue", op)
	if e == nil {
		e = limit(op, "n", n, 1, maxPerPoll)
	}
	if e != nil {
		return code(e)
	}
	out := unsafe.Slice((*WC)(fabric.Pointer(uint64(addr))), int(n))
	q.polling.Lock()
	defer q.polling.Unlock()
	got := 0
	for got < len(out) {
		q.mu.Lock()
		closed := q.closed
		q.mu.Unlock()
		if closed {
			break
		}
		some, err := q.cq.Poll(q.scratch[:min(batch, len(out)-got)])
		if err != nil && got == 0 { // otherwise the next call returns the error, so that no completion is lost
			return code(from(err, op, nil))
		}
		if some == 0 {
			break
		}
		for i := range q.scratch[:some] {
			if q.translate(&q.scratch[i], &out[got]) {
				got++
			}
		}
	}
	return int64(got)
}

// translate turns a completion into a WC. It returns false if the queue pair was
// closed or reset.
func (q *queue) translate(c *backend.Completion, wc *WC) bool {
	p := pairOf(c.Cookie)
	if p == nil {
		return false
	}
	was, ok := p.retire(c.Cookie, q)
	if !ok {
		return false
	}
	*wc = WC{WRID: was.id, Status: int64(c.Status), QPNum: int64(p.num), QP: p.handle(), Operation: int64(was.op), Length: was.n}
	if c.HasImm {
		wc.HasImm, wc.Imm = 1, int64(c.Imm)
	}
	switch {
	case c.Recv && c.Write:
		wc.Opcode, wc.Bytes = wcRecvRDMA, int64(c.N)
	case was.op == opRecv:
		wc.Opcode, wc.Bytes = wcRecv, int64(c.N)
	default:
		wc.Opcode, wc.Bytes = wcOpcodes[was.op], was.n
	}
	if c.Status != backend.Success {
		name := "recv"
		if was.op != opRecv {
			name = was.op.String()
		}
		detail := c.Detail
		if detail == "" {
			detail = c.Status.Meaning()
		}
		p.failed()
		wc.Error = code(refuse(c.Status.String(), name, sizes{"length": was.n}, "%s of %d bytes on queue pair %d failed: %s", name, was.n, p.num, detail))
	}
	return true
}

// Wait returns when Poll may find a completion, or after us microseconds.
func Wait(cq, us int64) (c int64) {
	const op = "wait"
	defer contain(op, &c)
	q, _, e := get[*queue](cq, "CompletionQueue", op)
	if e != nil {
		return code(e)
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return code(refuse("EBADF", op, nil, "this CompletionQueue was closed meanwhile"))
	}
	q.waiters++
	q.mu.Unlock()
	err := q.cq.Wait(min(time.Duration(max(us, 0))*time.Microsecond, longestSlice))
	q.mu.Lock()
	q.waiters--
	q.mu.Unlock()
	return code(from(err, op, nil))
}
