package engine

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/self"
	"gormapy/gocore/fabric/shm"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// Handler receives the short messages of one kind. It runs under the poll lock:
// it may send messages, but it must not poll or wait. The payload is valid only
// during the call.
type Handler func(src int, h *fabric.Header, payload []byte)

// FlagUrgent marks, in Header.Flags, a message that the target must serve even
// if it makes no MPI call.
const FlagUrgent uint8 = 0x80

// Engine is the communication state of one process: its transports, queues and
// handlers. It is safe for concurrent use unless a method says otherwise.
type Engine struct {
	Job  *job.Segment
	Rank int
	Size int
	me   *job.Rank

	transports []fabric.Transport
	peers      []peer
	handlers   [fabric.Kinds]Handler

	polling   atomic.Uint32 // the poll lock
	delivered atomic.Uint32 // urgent messages delivered
	backlog   atomic.Int32  // queued messages and operations, all peers
	spin      int           // polls before the first yield; 0 if ranks have to share cores
	spreadAt  atomic.Int64  // time of the last look for a better core
	cores     []int         // that this process may use; nil: waits don't move threads

	background backgroundList
	completers completers
	placers    [fabric.Kinds]Placer
	hooks      pollHooks
	regions    regions

	damage atomic.Pointer[errs.Error] // see Damage

	net     fabric.Transport // nil: all ranks are reached by shared memory
	loop    peer             // this rank reached by the network, for NIC atomics
	napping atomic.Bool
	napWord uint32
	netEnds atomic.Bool // asks the progress engine of the network to end
	closed  atomic.Bool // whether the network is closed
	rearm   rearm

	gone      []atomic.Uint32 // by rank: 1 when it has ended, see watch.go
	onGone    func(rank int)
	stop      atomic.Bool
	stopWatch func()

	stopNetProgress func()
	served          chan struct{} // closed when the progress engine has ended
}

type peer struct {
	ep    fabric.Endpoint
	short int // largest payload of a short message
	piece int // size of the pieces of longer data
	once  sync.Once
	via   fabric.Transport
	err   error

	remote      bool                   // reached by the network: its doorbells can't be rung
	synchronous bool                   // see fabric.Caps
	lost        atomic.Pointer[string] // why the connection broke; nil: it has not

	mu    sync.Mutex // guards the queues and keeps the order of messages
	queue []*queued
	ops   []*op
}

// queued is a message that waits for room in the transport: one packet, or data
// that is sent in pieces, each with the header and its offset in B.
type queued struct {
	header fabric.Header
	data   []byte
	piece  int // 0: one packet
	off    int
	owner  any
	sent   Sender
}

// Sender is notified of the end of a message that was queued.
type Sender interface {
	// Sent is called under the poll lock, once the message is sent and the payload
	// may be reused. A non-nil err is the reason why the message was not sent, or
	// only in part.
	Sent(err error)
}

// Options say how an engine reaches its peers.
type Options struct {
	OneCopy bool             // the kernel may be asked to copy between address spaces
	Net     fabric.Transport // reaches all other ranks; nil: shared memory does
	// Move allows waits to move the thread of the caller to another core, see spread.
	Move bool
}

// New returns the engine of rank in seg.
func New(seg *job.Segment, rank int, o Options) *Engine {
	e := &Engine{Job: seg, Rank: rank, Size: len(seg.Ranks), me: &seg.Ranks[rank], net: o.Net}
	e.peers = make([]peer, e.Size)
	e.gone = make([]atomic.Uint32, e.Size)
	own := self.New(rank)
	e.transports = []fabric.Transport{own}
	switch {
	case o.Net != nil:
		e.transports = append(e.transports, o.Net)
	case e.Size > 1:
		e.transports = append(e.transports, shm.New(seg, rank, o.OneCopy))
	}
	for r := range e.peers {
		e.peers[r].via = e.transports[len(e.transports)-1]
		e.peers[r].remote = o.Net != nil && r != rank
	}
	e.peers[rank].via, e.loop.via = own, o.Net
	if !e.Shared() {
		e.spin = 500
	}
	if o.Move {
		e.cores = sys.Allowed()
	}
	return e
}

// Remote reports whether rank r is reached by a network. For communication it then
// counts as sharing no memory with this process.
func (e *Engine) Remote(r int) bool { return e.peers[r].remote }

// AllLocal reports whether all ranks share memory.
func (e *Engine) AllLocal(ranks []int) bool {
	for _, r := range ranks {
		if e.peers[r].remote {
			return false
		}
	}
	return true
}

// Net returns the network transport, nil if there is none.
func (e *Engine) Net() fabric.Transport { return e.net }

// Handle sets the handler of kind k, before messages of that kind can arrive.
func (e *Engine) Handle(k fabric.Kind, h Handler) { e.handlers[k] = h }

// Transport returns the name and the capabilities of the transport to peer r.
func (e *Engine) Transport(r int) (string, fabric.Caps) {
	return e.peers[r].via.Name(), e.peers[r].via.Caps()
}

// connect connects to peer r by p on first use.
func (e *Engine) connect(r int, p *peer) error {
	p.once.Do(func() {
		p.ep, p.err = p.via.Connect(r)
		caps := p.via.Caps()
		p.short, p.piece, p.synchronous = caps.MaxShort, caps.Piece, caps.Synchronous
	})
	return p.err
}

// MaxShort returns the size of the largest payload of one message to peer r.
func (e *Engine) MaxShort(r int) int {
	p := &e.peers[r]
	_ = e.connect(r, p)
	return p.short
}

// Send sends a short message to rank dst. It reports whether the payload may be
// reused now; otherwise sent, if not nil, is called once it may. Messages to one peer
// keep their order. Owner identifies the message for Detach and Drop.
//
// A message whose payload can't be read is not sent: the error is a *sys.Fault.
//
// A message that the transport refuses for good, because the connection has broken,
// is lost and sent is not called: a thread that waits for its effect learns that the
// peer is Gone.
func (e *Engine) Send(dst int, h *fabric.Header, payload []byte, owner any, sent Sender) (out bool, err error) {
	p := &e.peers[dst]
	if !e.reach(dst) {
		return false, nil
	}
	switch err = e.sendOrQueue(dst, p, h, payload, owner, sent); {
	case err == nil:
		e.urgent(dst, p, h)
		return true, nil
	case sys.IsFault(err):
		return false, err
	}
	return false, nil // it is queued or lost
}

// sendOrQueue sends a message, or queues it and returns fabric.ErrAgain.
func (e *Engine) sendOrQueue(dst int, p *peer, h *fabric.Header, payload []byte, owner any, sent Sender) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		if err := e.send(dst, p, h, payload); err != fabric.ErrAgain {
			return err
		}
	}
	p.queue = append(p.queue, &queued{header: *h, data: payload, owner: owner, sent: sent})
	e.backlog.Add(1)
	return fabric.ErrAgain
}

// HandOver wakes this process's progress engine if messages are queued and no
// thread polls, which would send them. Calls that start an operation and return to
// a program that may compute next end with it; so does Wait.
func (e *Engine) HandOver() {
	if e.backlog.Load() > 0 && atom.Load32(&e.me.Pollers) == 0 {
		e.me.RingProgress()
	}
}

// TrySend is Send if there is room for the message now; else it does nothing and
// returns false. It is not for urgent messages.
func (e *Engine) TrySend(dst int, h *fabric.Header, payload []byte) bool {
	p := &e.peers[dst]
	if e.connect(dst, p) != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) == 0 && e.send(dst, p, h, payload) == nil
}

// Stream sends data to rank dst in as many messages as it takes, each with a
// copy of h that has the piece's offset in B. sent is called when all are sent, or
// with the fault of a piece that can't be read: those before it have been sent then.
func (e *Engine) Stream(dst int, h *fabric.Header, data []byte, owner any, sent Sender) {
	p := &e.peers[dst]
	if !e.reach(dst) {
		return
	}
	e.queue(p, &queued{header: *h, data: data, piece: p.piece, owner: owner, sent: sent})
	e.flush()
}

func (e *Engine) queue(p *peer, q *queued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, q)
	e.backlog.Add(1)
}

// Shared reports whether ranks have to share cores. The result is the same on all
// ranks.
func (e *Engine) Shared() bool { return e.Size > int(e.Job.Head.Cores) }

// Active reports whether rank r polls for messages at the moment.
func (e *Engine) Active(r int) bool {
	rk := &e.Job.Ranks[r]
	return atom.Load32(&rk.Pollers) != 0 && atom.Load32(&rk.Sleepers) == 0
}

// Detach makes the queued messages of owner independent of the owner's memory: the
// payloads are copied, and no Sender is called for them any more. A message whose
// payload can't be read is dropped, and the fault is returned.
func (e *Engine) Detach(dst int, owner any) (err error) {
	e.dequeue(&e.peers[dst], func(q *queued) bool {
		if q.owner != owner {
			return true
		}
		q.sent = nil
		if fault := sys.Touch(func() { q.data = append([]byte(nil), q.data...) }); fault != nil {
			err = fault
			return false
		}
		return true
	})
	return err
}

// Drop removes the queued messages of owner to all ranks, before the owner's memory
// is reused. It calls the Senders of the messages with err.
func (e *Engine) Drop(owner any, err error) {
	e.dropQueued(func(q *queued) bool { return q.owner == owner }, err)
}

// DropOlder removes the queued messages of generations before gen, and all queued
// one-sided operations. The collective reset calls it, since the memory that they
// refer to belongs to the program again. It calls Senders and Completers with err.
// The caller excludes pollers.
func (e *Engine) DropOlder(gen uint32, err error) {
	e.dropQueued(func(q *queued) bool { return int32(q.header.Gen-gen) < 0 }, err)
	for i := range e.peers {
		e.dropOps(&e.peers[i], err)
	}
	e.dropOps(&e.loop, err)
}

func (e *Engine) dropQueued(match func(q *queued) bool, err error) {
	var senders []Sender
	for i := range e.peers {
		e.dequeue(&e.peers[i], func(q *queued) bool {
			if !match(q) {
				return true
			}
			if q.sent != nil {
				senders = append(senders, q.sent)
			}
			return false
		})
	}
	for _, s := range senders {
		s.Sent(err)
	}
}

// dequeue removes from a peer's queue the messages for which keep returns false.
func (e *Engine) dequeue(p *peer, keep func(q *queued) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.queue)
	p.queue = slices.DeleteFunc(p.queue, func(q *queued) bool { return !keep(q) })
	e.backlog.Add(int32(len(p.queue) - before))
}

// reach connects to a peer. If that fails it marks the connection as broken and
// returns false.
func (e *Engine) reach(dst int) bool {
	err := e.connect(dst, &e.peers[dst])
	if err != nil {
		e.Broken(dst, err)
	}
	return err == nil
}

// send passes a message to the transport. It counts an urgent one first, so that the
// count is never less than the number delivered, even if this process dies in
// between. fabric.ErrAgain means that there is no room now, a *sys.Fault that the
// payload can't be read; with any other error the message is lost.
func (e *Engine) send(dst int, p *peer, h *fabric.Header, payload []byte) (err error) {
	if h.Flags&FlagUrgent != 0 {
		e.count(dst, p, h, 1)
		defer func() {
			if err != nil {
				e.count(dst, p, h, ^uint32(0))
			}
		}()
		err = fabric.ErrAgain // should the transport panic
	}
	if err = put(p.ep, h, payload); err == fabric.ErrAgain && dst != e.Rank && e.Gone(dst) {
		err = fabric.ErrPeerGone // a transport may keep trying to reach a process that has ended
	}
	return err
}

// put calls the transport and returns a fault of the payload as an error. Only here
// are payloads read. Transports leave no trace of a message whose payload faults.
func put(ep fabric.Endpoint, h *fabric.Header, payload []byte) (err error) {
	defer sys.CatchFault(&err)
	return ep.Send(h, payload)
}

func (e *Engine) count(dst int, p *peer, h *fabric.Header, d uint32) {
	if h.Flags&FlagUrgent != 0 && dst != e.Rank && !p.remote {
		atom.Add32(&e.Job.Ranks[dst].Urgent, d)
	}
}

// urgent wakes the receiver's progress engine after send, if the message is urgent
// and no thread of the receiver polls.
func (e *Engine) urgent(dst int, p *peer, h *fabric.Header) {
	if h.Flags&FlagUrgent == 0 || dst == e.Rank || p.remote {
		return
	}
	r := &e.Job.Ranks[dst]
	if atom.Load32(&r.Pollers) == 0 {
		r.RingProgress()
	}
}

// flush sends queued messages and operations as far as there is room, and returns how
// many it sent.
func (e *Engine) flush() int {
	moved := 0
	for dst := range e.peers {
		p := &e.peers[dst]
		for e.flushOne(dst, p) {
			moved++
		}
		moved += e.flushOps(dst, p)
	}
	return moved + e.flushOps(e.Rank, &e.loop)
}

// flushOne sends the first message queued for dst, or the next piece of it. It
// returns false if there is none, or no room.
func (e *Engine) flushOne(dst int, p *peer) bool {
	q, h, err := e.sendFirst(dst, p)
	switch {
	case q == nil || err == fabric.ErrAgain:
		return false
	case err == nil:
		e.urgent(dst, p, &h)
		if q.piece > 0 && q.off < len(q.data) {
			return true
		}
	case !sys.IsFault(err):
		return true // lost: see Send
	}
	if q.sent != nil {
		q.sent.Sent(err)
	}
	return true
}

// sendFirst sends the first queued message, or its next piece, and removes it from
// the queue when all of it is sent or it has failed. q is nil if the queue is empty.
func (e *Engine) sendFirst(dst int, p *peer) (q *queued, h fabric.Header, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil, h, nil
	}
	q = p.queue[0]
	h = q.header
	part := q.data
	if q.piece > 0 {
		part = part[q.off:min(q.off+q.piece, len(q.data))]
		h.B = uint64(q.off)
	}
	if err = e.send(dst, p, &h, part); err == fabric.ErrAgain {
		return q, h, err
	}
	if q.off += len(part); err != nil || q.piece == 0 || q.off >= len(q.data) {
		p.queue = p.queue[1:]
		e.backlog.Add(-1)
	}
	return q, h, err
}

// Backlog returns the number of queued messages and one-sided operations.
func (e *Engine) Backlog() int { return int(e.backlog.Load()) }

// Poll makes the progress that is possible now, unless another thread is polling.
func (e *Engine) Poll() {
	if e.polling.CompareAndSwap(0, 1) && e.pollLocked(0) > 0 {
		e.rearm.polled()
	}
}

// Exclude runs f while no thread polls: from the beginning of f to its end no handler
// works on a request's memory. It must not be called from a handler.
func (e *Engine) Exclude(f func()) {
	e.takePolling()
	defer e.polling.Store(0)
	f()
}

func (e *Engine) takePolling() {
	for i := 1; !e.polling.CompareAndSwap(0, 1); i++ {
		atom.Yield()
		if i%64 == 0 {
			runtime.Gosched() // Go's scheduler may have the poller wait for this goroutine's turn
		}
	}
}

// PollSure polls, if necessary after the thread that is polling. It must not be called
// from a handler.
func (e *Engine) PollSure() { e.pollSure(0) }

// pollSure is PollSure and returns how much it moved. asleep is 1 if the caller has
// announced itself in Sleepers, else 0.
func (e *Engine) pollSure(asleep uint32) int {
	e.takePolling()
	n := e.pollLocked(asleep)
	if n > 0 {
		e.rearm.polled()
	}
	return n
}

func (e *Engine) pollLocked(asleep uint32) (n int) {
	// A panic in here leaves no lock taken. It is not passed on to the caller, which
	// may be waiting for something else.
	defer e.polling.Store(0)
	defer e.contain("the progress of communication")
	for _, t := range e.transports {
		n += t.Poll(e)
	}
	if e.hooks.needed.Load() > 0 {
		for _, do := range e.hooks.list {
			n += do()
		}
	}
	if e.backlog.Load() > 0 {
		n += e.flush()
	}
	if n == 0 {
		return 0
	}
	e.me.Moved++ // written under the poll lock only
	if atom.Load32(&e.me.Sleepers) > asleep {
		// Another thread of this process may wait asleep for what was just delivered.
		e.me.Ring()
	}
	return n
}

// Deliver implements fabric.Sink.
func (e *Engine) Deliver(src int, h *fabric.Header, payload []byte) {
	defer e.contain("the handling of a message")
	if h.Flags&FlagUrgent != 0 && src != e.Rank && !e.peers[src].remote {
		e.delivered.Add(1)
	}
	if int(h.Kind) < len(e.handlers) && e.handlers[h.Kind] != nil {
		e.handlers[h.Kind](src, h, payload)
	}
}

// Placer returns the address at which the payload of a long message, of n bytes, is to
// be stored; nil if it is to be passed to the handler. It runs under the poll lock.
type Placer func(src int, h *fabric.Header, n int) unsafe.Pointer

// SetPlacer sets the placer of kind k. The handler of k then finds the payload there.
func (e *Engine) SetPlacer(k fabric.Kind, l Placer) { e.placers[k] = l }

// Place implements fabric.Sink.
func (e *Engine) Place(src int, h *fabric.Header, n int) unsafe.Pointer {
	defer e.contain("the placing of a message")
	if int(h.Kind) < len(e.placers) && e.placers[h.Kind] != nil {
		return e.placers[h.Kind](src, h, n)
	}
	return nil
}

// Redirect discards the rest of a payload that is being written to mem, an address
// that a Placer returned. The caller excludes pollers.
func (e *Engine) Redirect(mem unsafe.Pointer) {
	if r, ok := e.net.(fabric.Redirector); ok {
		r.Redirect(mem)
	}
}

// pollHooks are functions that every poll calls while they are needed.
type pollHooks struct {
	list   []func() int
	needed atomic.Int32
}

// AddPollHook makes pollers call do while the count of NeedPollHooks is positive. do
// returns how much it moved. All hooks are added before the first NeedPollHooks.
func (e *Engine) AddPollHook(do func() int) { e.hooks.list = append(e.hooks.list, do) }

// NeedPollHooks adds d, which may be negative, to the number of reasons to call the
// poll hooks.
func (e *Engine) NeedPollHooks(d int) { e.hooks.needed.Add(int32(d)) }

// Bytes returns n bytes of memory outside Go's heap as a slice.
func Bytes(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// BacklogHopeless reports whether everything that is queued is for ranks that will
// never receive it.
func (e *Engine) BacklogHopeless() bool {
	for dst := range e.peers {
		p := &e.peers[dst]
		p.mu.Lock()
		n := len(p.queue) + len(p.ops)
		p.mu.Unlock()
		if n > 0 && !e.Gone(dst) && !e.Finalized(dst) {
			return false
		}
	}
	return true
}
