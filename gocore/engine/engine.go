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

// Handler takes the short messages of one kind. It runs under the poll lock:
// it may post messages, it must not poll or wait. The payload is valid only
// during the call.
type Handler func(src int, h *fabric.Header, payload []byte)

// FlagUrgent marks, in Header.Flags, a message that the target must serve even
// if it makes no MPI call.
const FlagUrgent uint8 = 0x80

// Engine is the progress of one process.
type Engine struct {
	Job  *job.Segment
	Rank int
	Size int
	me   *job.Rank

	transports []fabric.Transport
	peers      []peer
	handlers   [fabric.Kinds]Handler

	polling   atomic.Uint32 // the poll lock
	delivered atomic.Uint32 // urgent messages handed over
	backlog   atomic.Int32  // queued messages, all peers
	spin      int           // polls before the first yield; 0 if ranks have to share cores
	spreadAt  atomic.Int64  // when it last looked for a better core
	cores     []int         // that this process may use

	background backgroundList
	completers completers
	placers    [fabric.Kinds]Placer
	hooks      pollHooks
	regions    regions

	damage atomic.Pointer[errs.Error] // see Damage

	net     fabric.Transport // nil: all ranks are reached by shared memory
	loop    peer             // the network's way to this rank itself, for its atomics
	napping atomic.Bool
	napWord uint32
	netEnds atomic.Bool // the progress engine of the network is to end
	closed  atomic.Bool // the network
	rearm   rearm

	gone      []atomic.Uint32 // by rank: how it ended, see watch.go
	onGone    func(rank int)
	stop      atomic.Bool
	stopWatch func()

	stopNetProgress func()
	served          chan struct{} // closed when the progress engine has ended
}

type peer struct {
	ep    fabric.Endpoint
	short int // largest payload of a short message
	piece int // what longer data is cut into
	once  sync.Once
	via   fabric.Transport
	err   error

	remote      bool // reached by the network: its doorbells can't be rung
	synchronous bool // see fabric.Caps
	lost        atomic.Pointer[string]

	mu    sync.Mutex // guards the queues and keeps the order of messages
	queue []*queued
	ops   []*op
}

// queued is a message that waits for room: one packet, or data that goes out
// in pieces, each with the header and its offset in B.
type queued struct {
	header fabric.Header
	data   []byte
	piece  int // 0: one packet
	off    int
	owner  any
	sent   Sender
}

// Sender is told what became of a message that had to wait.
type Sender interface {
	// Sent is called under the poll lock, once the message is out and the payload
	// may be reused; or with the reason why it will never be sent, or not whole.
	Sent(err error)
}

// Options are how an engine reaches its peers.
type Options struct {
	OneCopy bool             // the kernel may be asked to copy between address spaces
	Net     fabric.Transport // by which all other ranks are reached; nil: by shared memory
}

// New makes the engine of rank in seg.
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
	} else {
		e.cores = sys.Allowed()
	}
	return e
}

// Remote reports whether rank r is reached by a network: it shares no memory with this
// process, as far as communication is concerned.
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

// Net is the network transport, nil if there is none.
func (e *Engine) Net() fabric.Transport { return e.net }

// Handle sets the handler of kind k. It must be set before messages can come.
func (e *Engine) Handle(k fabric.Kind, h Handler) { e.handlers[k] = h }

// Transport names the transport to peer r and says what it can do.
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

// MaxShort is the largest payload that goes to peer r in one message.
func (e *Engine) MaxShort(r int) int {
	p := &e.peers[r]
	_ = e.connect(r, p)
	return p.short
}

// Send sends a short message to rank dst. It reports whether the payload may be
// reused now; otherwise sent, if not nil, is told once it may. Messages to one peer
// keep their order. Owner names the message for Detach and Drop.
//
// A message whose payload can't be read is not sent: the error is a *sys.Fault.
//
// A message that the transport refuses for good, as the connection has broken, is
// lost, and nobody is told that it is out: who waits for what depends on it learns
// that the peer is Gone.
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
	return false, nil // it waits, or is lost
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

// HandOver calls this process's progress engine if messages wait for room and no
// thread polls, which would send them. Calls that start something and return, so
// that the program may compute next, end with it; so does Wait.
func (e *Engine) HandOver() {
	if e.backlog.Load() > 0 && atom.Load32(&e.me.Pollers) == 0 {
		e.me.RingProgress()
	}
}

// TrySend is Post if the message can go out at once; else it does nothing and
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
// copy of h that has the piece's offset in B. sent is told when all are out, or
// that a piece can't be read: those before it have been sent then.
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

// Shared reports whether ranks have to share cores. All ranks say the same.
func (e *Engine) Shared() bool { return e.Size > int(e.Job.Head.Cores) }

// Active reports whether rank r looks for messages just now.
func (e *Engine) Active(r int) bool {
	rk := &e.Job.Ranks[r]
	return atom.Load32(&rk.Pollers) != 0 && atom.Load32(&rk.Sleepers) == 0
}

// Detach makes what still waits for room in the name of owner independent of
// the owner's memory: it is copied, and owner is not told when it is out. A message
// whose payload can't be read is dropped; its owner is told that by the error.
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

// Drop forgets what waits for room in the name of owner, to whatever rank, before
// the owner's memory goes. The Sender of a message is told err.
func (e *Engine) Drop(owner any, err error) {
	e.dropQueued(func(q *queued) bool { return q.owner == owner }, err)
}

// DropOlder forgets the messages of generations before gen that wait for room, and
// all one-sided operations that do, within a collective reset: the memory that they
// name is the program's again. Senders and Completers are told err. The caller excludes
// pollers.
func (e *Engine) DropOlder(gen uint32, err error) {
	e.dropQueued(func(q *queued) bool { return int32(q.header.Gen-gen) < 0 }, err)
	for i := range e.peers {
		e.dropOps(&e.peers[i], err)
	}
	e.dropOps(&e.loop, err)
}

func (e *Engine) dropQueued(which func(q *queued) bool, err error) {
	var told []Sender
	for i := range e.peers {
		e.dequeue(&e.peers[i], func(q *queued) bool {
			if !which(q) {
				return true
			}
			if q.sent != nil {
				told = append(told, q.sent)
			}
			return false
		})
	}
	for _, s := range told {
		s.Sent(err)
	}
}

// dequeue takes out of a peer's queue what keep does not want to keep.
func (e *Engine) dequeue(p *peer, keep func(q *queued) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.queue)
	p.queue = slices.DeleteFunc(p.queue, func(q *queued) bool { return !keep(q) })
	e.backlog.Add(int32(len(p.queue) - before))
}

// reach connects to a peer; false if that can't be, which breaks what there was.
func (e *Engine) reach(dst int) bool {
	err := e.connect(dst, &e.peers[dst])
	if err != nil {
		e.Broken(dst, err)
	}
	return err == nil
}

// send puts a message into the transport, counted if it is urgent: first, so
// that the count is never behind what was delivered, even if this process dies
// in between. fabric.ErrAgain says that there is no room now, a *sys.Fault that the
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
		err = fabric.ErrPeerGone // a transport may go on trying to reach a process that has ended
	}
	return err
}

// put is the one place where payloads are read. Transports leave no trace of a
// message whose payload faults.
func put(ep fabric.Endpoint, h *fabric.Header, payload []byte) (err error) {
	defer sys.CatchFault(&err)
	return ep.Send(h, payload)
}

func (e *Engine) count(dst int, p *peer, h *fabric.Header, d uint32) {
	if h.Flags&FlagUrgent != 0 && dst != e.Rank && !p.remote {
		atom.Add32(&e.Job.Ranks[dst].Urgent, d)
	}
}

// urgent follows send: it calls the receiver's progress engine if nobody polls.
func (e *Engine) urgent(dst int, p *peer, h *fabric.Header) {
	if h.Flags&FlagUrgent == 0 || dst == e.Rank || p.remote {
		return
	}
	r := &e.Job.Ranks[dst]
	if atom.Load32(&r.Pollers) == 0 {
		r.RingProgress()
	}
}

// flush sends what waits for room, as far as there is room.
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

// flushOne sends the first message that waits for room to dst, or the next piece of
// it; false if there is none, or no room.
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
		return true // lost: see Post
	}
	if q.sent != nil {
		q.sent.Sent(err)
	}
	return true
}

// sendFirst takes a message out of the queue unless there is more of it to send.
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

// Backlog is the number of messages that wait for room.
func (e *Engine) Backlog() int { return int(e.backlog.Load()) }

// Poll makes what progress can be made now, unless another thread is at it.
func (e *Engine) Poll() {
	if e.polling.CompareAndSwap(0, 1) && e.pollLocked(0) > 0 {
		e.rearm.polled()
	}
}

// Exclude runs f while nobody polls: no handler is at work on a request's
// memory when f begins, nor before it ends. Not to be called from a handler.
func (e *Engine) Exclude(f func()) {
	e.takePolling()
	defer e.polling.Store(0)
	f()
}

func (e *Engine) takePolling() {
	for i := 1; !e.polling.CompareAndSwap(0, 1); i++ {
		atom.Yield()
		if i%64 == 0 {
			runtime.Gosched() // the poller may wait for our turn in Go's scheduler
		}
	}
}

// PollSure polls even if another thread is at it, after that one. Not to be
// called from a handler.
func (e *Engine) PollSure() { e.pollSure(0) }

// pollSure polls even if it has to wait for another thread to finish polling.
// asleep says how many of the announced sleepers are the caller itself.
func (e *Engine) pollSure(asleep uint32) int {
	e.takePolling()
	n := e.pollLocked(asleep)
	if n > 0 {
		e.rearm.polled()
	}
	return n
}

func (e *Engine) pollLocked(asleep uint32) (n int) {
	// What panics in here leaves no lock taken, and is nothing to this caller, who
	// may have come for something else.
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
	e.me.Moved++ // only who has the poll lock writes it
	if atom.Load32(&e.me.Sleepers) > asleep {
		// Another thread of this process may sleep for what was just delivered.
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

// Placer tells where the payload of a long message belongs, of n bytes; nil if it
// is to be given to the handler. It runs under the poll lock.
type Placer func(src int, h *fabric.Header, n int) unsafe.Pointer

// SetPlacer sets the lander of kind k. The handler of k finds the payload there.
func (e *Engine) SetPlacer(k fabric.Kind, l Placer) { e.placers[k] = l }

// Place implements fabric.Sink.
func (e *Engine) Place(src int, h *fabric.Header, n int) unsafe.Pointer {
	defer e.contain("the placing of a message")
	if int(h.Kind) < len(e.placers) && e.placers[h.Kind] != nil {
		return e.placers[h.Kind](src, h, n)
	}
	return nil
}

// Redirect has a payload that is on its way to mem, which a Placer gave, go
// nowhere. The caller excludes pollers.
func (e *Engine) Redirect(mem unsafe.Pointer) {
	if r, ok := e.net.(fabric.Redirector); ok {
		r.Redirect(mem)
	}
}

// pollHooks are what else is to be looked at whenever anybody polls.
type pollHooks struct {
	list   []func() int
	needed atomic.Int32
}

// AddPollHook has do called by whoever polls as long as Due says that there is reason
// to; it returns how much it moved. It must be set before there is.
func (e *Engine) AddPollHook(do func() int) { e.hooks.list = append(e.hooks.list, do) }

// NeedPollHooks counts d more reasons to do chores.
func (e *Engine) NeedPollHooks(d int) { e.hooks.needed.Add(int32(d)) }

// Bytes views n bytes of foreign memory as a slice.
func Bytes(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// BacklogHopeless reports whether all that waits for room is for ranks that will
// never take it.
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
