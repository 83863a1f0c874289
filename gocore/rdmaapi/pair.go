package rdmaapi

import (
	"fmt"
	"math/bits"
	"sync"
	"time"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/rdmaapi/backend"
)

// posted is what is kept of a posted work request for its completion.
type posted struct {
	id       int64
	n        int64
	op       backend.Op // opRecv for a receive
	signaled bool
}

// ledger has the work requests that occupy places of one queue, by number.
type ledger struct {
	ring       []posted // its length is a power of two
	max        int64
	head, tail uint32
}

func newLedger(max int64) ledger {
	return ledger{ring: make([]posted, 1<<bits.Len64(uint64(max-1))), max: max}
}

func (l *ledger) room() int64         { return l.max - int64(l.tail-l.head) }
func (l *ledger) at(n uint32) *posted { return &l.ring[n&uint32(len(l.ring)-1)] }

// pair is a queue pair.
type pair struct {
	dev        *device
	domain     *domain
	send, recv *queue
	qp         backend.QP
	num        uint32
	inline     int64
	node       *node

	mu     sync.Mutex
	serial uint32 // in cookies; a reset changes it
	sq, rq ledger
	broken bool // a completion has failed
	closed bool
}

// pairs has the queue pairs by serial, to find the one of a completion. A cookie is
// serial<<32, a bit for receives, and 31 bits of the number in the ledger.
var pairs struct {
	sync.RWMutex
	next uint32
	all  map[uint32]*pair
}

const recvBit = 1 << 31

func (p *pair) enlist() {
	pairs.Lock()
	defer pairs.Unlock()
	if pairs.all == nil {
		pairs.all = map[uint32]*pair{}
	}
	delete(pairs.all, p.serial)
	for pairs.next++; pairs.next == 0 || pairs.all[pairs.next] != nil; pairs.next++ {
	}
	p.serial = pairs.next
	pairs.all[p.serial] = p
}

func pairOf(cookie uint64) *pair {
	pairs.RLock()
	defer pairs.RUnlock()
	return pairs.all[uint32(cookie>>32)]
}

func (p *pair) handle() int64 {
	graph.mu.RLock()
	defer graph.mu.RUnlock()
	return p.node.handle
}

// CreateQP makes a queue pair in state INIT.
func CreateQP(pd, scq, rcq, maxSend, maxRecv, maxInline int64) (h int64) {
	const op = "create QueuePair"
	defer contain(op, &h)
	d, n, e := get[*domain](pd, "ProtectionDomain", op)
	if e != nil {
		return code(e)
	}
	send, sn, e := get[*queue](scq, "CompletionQueue", op)
	if e != nil {
		return code(e)
	}
	recv, rn, e := get[*queue](rcq, "CompletionQueue", op)
	if e != nil {
		return code(e)
	}
	if send.dev != d.dev || recv.dev != d.dev {
		return code(refuse("EINVAL", op, nil, "the CompletionQueues and the ProtectionDomain must be of the same Context"))
	}
	l := d.dev.ctx.Device().Limits
	for _, c := range []struct {
		name       string
		value, min int64
		max        int
	}{{"max_send_wr", maxSend, 1, l.MaxQPWR}, {"max_recv_wr", maxRecv, 1, l.MaxQPWR}} {
		if e := limit(op, c.name, c.value, c.min, int64(c.max)); e != nil {
			return code(e)
		}
	}
	if maxInline < 0 || l.MaxInline > 0 && maxInline > int64(l.MaxInline) {
		s := sizes{"max_inline": maxInline, "limit": int64(l.MaxInline)}
		return code(refuse("EINVAL", op, s, "max_inline is %d; the device takes 0 to %d", maxInline, l.MaxInline))
	}
	s := sizes{"max_send_wr": maxSend, "max_recv_wr": maxRecv, "max_inline": maxInline}
	qp, err := d.pd.CreateQP(backend.QPInit{Send: send.cq, Recv: recv.cq, MaxSend: int(maxSend), MaxRecv: int(maxRecv), MaxInline: int(maxInline)})
	if err != nil {
		return code(from(err, op, s))
	}
	p := &pair{dev: d.dev, domain: d, send: send, recv: recv, qp: qp, num: qp.Num(), inline: maxInline}
	p.sq, p.rq = newLedger(maxSend), newLedger(maxRecv)
	p.enlist()
	parents := []*node{n, sn}
	if rn != sn {
		parents = append(parents, rn)
	}
	made, e := add("QueuePair", p, p.close, op, parents...)
	if e != nil {
		p.close() //nolint:errcheck // there is another error to report
		return code(e)
	}
	p.node = made
	return made.handle
}

func (p *pair) close() error {
	p.mu.Lock()
	p.closed = true
	err := p.qp.Close()
	p.forget()
	pairs.Lock()
	delete(pairs.all, p.serial)
	pairs.Unlock()
	p.mu.Unlock()
	p.send.cq.Wake() // a thread that waits for a completion of this pair checks again
	p.recv.cq.Wake()
	return err
}

// forget releases the places that outstanding work requests have reserved.
func (p *pair) forget() {
	n := int64(0)
	for i := p.sq.head; i != p.sq.tail; i++ {
		if p.sq.at(i).signaled {
			n++
		}
	}
	p.send.release(n)
	p.recv.release(int64(p.rq.tail - p.rq.head))
	p.sq.head, p.sq.tail, p.rq.head, p.rq.tail = 0, 0, 0, 0
}

// retire frees the places of a completed work request and of the unsignalled ones
// before it, and returns the request.
func (p *pair) retire(cookie uint64, q *queue) (posted, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.sq
	if cookie&recvBit != 0 {
		l = &p.rq
	}
	if uint32(cookie>>32) != p.serial {
		return posted{}, false
	}
	ahead := (uint32(cookie) - l.head) & (recvBit - 1)
	if ahead >= l.tail-l.head {
		return posted{}, false
	}
	was := *l.at(l.head + ahead)
	l.head += ahead + 1
	if was.signaled {
		q.release(1)
	}
	return was, true
}

func (p *pair) failed() {
	p.mu.Lock()
	p.broken = true
	p.mu.Unlock()
}

// PairInfo returns "number max_send_wr max_recv_wr max_inline"; "" if the queue pair
// is closed.
func PairInfo(h int64) string {
	p, _, e := get[*pair](h, "QueuePair", "query QueuePair")
	if e != nil {
		return ""
	}
	return fmt.Sprintf("%d %d %d %d", p.num, p.sq.max, p.rq.max, p.inline)
}

// PairState returns the state of a queue pair, numbered as ibv_qp_state.
func PairState(h int64) (c int64) {
	const op = "query QueuePair"
	defer contain(op, &c)
	p, _, e := get[*pair](h, "QueuePair", op)
	if e != nil {
		return code(e)
	}
	return int64(p.state())
}

func (p *pair) state() backend.State {
	p.mu.Lock()
	broken := p.broken
	p.mu.Unlock()
	if broken {
		return backend.StateErr
	}
	if asks, ok := p.qp.(interface{ Query() (backend.State, error) }); ok {
		if s, err := asks.Query(); err == nil {
			return s
		}
	}
	return p.qp.State()
}

// PairReset resets a queue pair to INIT.
func PairReset(h int64) (c int64) {
	const op = "reset"
	defer contain(op, &c)
	p, _, e := get[*pair](h, "QueuePair", op)
	if e != nil {
		return code(e)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return code(refuse("EBADF", op, nil, "this QueuePair was closed meanwhile"))
	}
	if err := p.qp.Reset(); err != nil {
		return code(from(err, op, nil))
	}
	p.forget()
	p.enlist()
	p.broken = false
	p.num = p.qp.Num()
	return 0
}

// PairExchange writes the connection info for the peer to addr, where there is room
// for n bytes, and returns its length.
func PairExchange(h, addr, n int64) (c int64) {
	const op = "info"
	defer contain(op, &c)
	p, _, e := get[*pair](h, "QueuePair", op)
	if e != nil {
		return code(e)
	}
	b, err := p.qp.Info()
	if err != nil {
		return code(from(err, op, nil))
	}
	b = envelope(p.dev.backend, b)
	if int64(len(b)) > n {
		return code(refuse("EINVAL", op, sizes{"info": int64(len(b)), "room": n}, "the info has %d bytes", len(b)))
	}
	copy(unsafe.Slice((*byte)(fabric.Pointer(uint64(addr))), int(n)), b)
	return int64(len(b))
}

// PairConnect connects a queue pair to the one whose connection info is at addr.
func PairConnect(h, addr, n, timeoutUS, rnrRetry, rnrTimerUS int64) (c int64) {
	const op = "connect"
	defer contain(op, &c)
	p, _, e := get[*pair](h, "QueuePair", op)
	if e != nil {
		return code(e)
	}
	if e := limit(op, "rnr_retry", rnrRetry, 0, 7); e != nil {
		return code(e)
	}
	if n < 0 || n > maxInfo {
		return code(refuse("EINVAL", op, sizes{"info": n, "limit": maxInfo}, "this is no connection info: it has %d bytes", n))
	}
	info := append([]byte(nil), unsafe.Slice((*byte)(fabric.Pointer(uint64(addr))), int(n))...)
	payload, e := open(p.dev.backend, info)
	if e != nil {
		return code(e)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return code(refuse("EBADF", op, nil, "this QueuePair was closed meanwhile"))
	}
	err := p.qp.Connect(payload, backend.Connection{
		Timeout: time.Duration(max(timeoutUS, 1)) * time.Microsecond, RNRRetry: int(rnrRetry), RNRTimer: time.Duration(max(rnrTimerUS, 10)) * time.Microsecond,
	})
	return code(from(err, op, sizes{"info": n}))
}
