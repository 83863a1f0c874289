package transfer

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gormapy/gocore/rdmaapi/backend"
	"gormapy/gocore/rdmaapi/sockets"
)

// state is the state of a link (doc.go).
type state int

const (
	connecting state = iota
	up
	broken
)

// maxPost is the largest number of work requests of one post.
const maxPost = 256

// note is a notice that waits for room on its lane.
type note struct {
	t     *transfer
	lane  *lane
	lanes uint32
}

// link is a connection to another engine for transfers that begin here.
type link struct {
	remote *remote
	engine *Engine
	cancel context.CancelFunc // ends connect
	active atomic.Int64       // work requests that have not completed

	mu        sync.Mutex
	state     state
	end       failure
	blame     bool // one transfer is at fault: the others start again
	uncertain bool // it is not known which transfer: they start again one at a time
	queue     []*transfer
	single    *transfer // the transfer that is, or will be, the only one in flight
	pending   int64     // estimate of the pieces in queue
	notes     []note
	conn      net.Conn
	poller    *poller
	slab      *slab
	lanes     []*lane
	turn      int
	wrs       []backend.SendWR
	again     bool          // a timer will pump
	leaving   *failure      // the socket has ended, for this reason: late completions are awaited
	left      chan struct{} // closed when leaving is set
}

func newLink(r *remote) *link {
	e := r.engine
	l := &link{remote: r, engine: e, wrs: make([]backend.SendWR, 0, maxPost), left: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	e.work.Add(1)
	go l.run(ctx)
	return l
}

// run connects the link, handles its completions until it is broken, and closes it.
func (l *link) run(ctx context.Context) {
	defer l.engine.work.Done()
	defer l.cancel()
	name := l.remote.card.Name
	if err := l.connect(ctx); err != nil {
		l.fail(RDMAOp, fmt.Sprintf("no connection to engine %q at %s: %v", name, l.remote.card.Address, err))
	} else {
		l.mu.Lock()
		if l.state == connecting {
			l.state = up
			l.pump()
		}
		l.mu.Unlock()
		go func() {
			f := failure{RDMAOp, fmt.Sprintf("the connection to engine %q is lost: %s", name, ended(l.conn))}
			l.mu.Lock()
			l.leaving = &f
			l.mu.Unlock()
			close(l.left)
			l.awaitCompletions(lateTime)
			l.fail(f.code, f.text)
		}()
		err := l.poller.run(l.complete, func() bool { return l.engine.config.Polling && l.active.Load() > 0 })
		if err != nil {
			l.fail(RDMAOp, fmt.Sprintf("the completion queue failed: %v", err))
		}
	}
	l.close()
}

const (
	// lateTime is how long completions may come later than the end of the socket.
	lateTime = time.Second
	// earlyTime is how long failed completions may come earlier than the end of the socket.
	earlyTime = 50 * time.Millisecond
)

// awaitCompletions waits until no work request is outstanding or the link is broken,
// at most d, in which the time that this process is stopped does not count.
func (l *link) awaitCompletions(d time.Duration) {
	for range d / time.Millisecond {
		l.mu.Lock()
		over := l.state == broken
		l.mu.Unlock()
		if over || l.active.Load() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// connect connects the socket and the lanes.
func (l *link) connect(ctx context.Context) error {
	c := &l.engine.config
	card := &l.remote.card
	conn, stop, err := l.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { stop() }()
	cq, err := l.engine.ctx.CreateCQ(c.Lanes * (c.MaxSend + 1))
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.poller = newPoller(cq)
	if l.state == broken {
		l.poller.stop()
	}
	l.mu.Unlock()
	h := hello{from: l.engine.card.ID, name: l.engine.card.Name, backend: l.engine.card.Backend}
	for i := range c.Lanes {
		qp, err := l.engine.pd.CreateQP(backend.QPInit{Send: cq, Recv: cq, MaxSend: c.MaxSend, MaxRecv: 1})
		if err != nil {
			return err
		}
		l.mu.Lock() // Deregister reads l.lanes
		l.lanes = append(l.lanes, newLane(i, qp, c.MaxSend))
		l.mu.Unlock()
		info, err := qp.Info()
		if err != nil {
			return err
		}
		h.infos = append(h.infos, info)
	}
	if l.slab, err = newSlab(l.engine.pd, c.Lanes*len(l.lanes[0].ring)); err != nil {
		return err
	}
	var infos [][]byte
	again := false
	err = sockets.Redial(c.ConnectTimeout, func() (err error) {
		if again {
			stop()
			conn.Close()
			if conn, stop, err = l.dial(ctx); err != nil {
				return err
			}
		}
		again = true
		infos, err = initiate(conn, card, h, c.ConnectTimeout)
		return err
	})
	if err != nil {
		return err
	}
	for i, info := range infos {
		if err := l.lanes[i].qp.Connect(info, connection(c)); err != nil {
			return err
		}
	}
	return conn.SetDeadline(time.Time{})
}

// dial connects the link's socket. Until stop is called, the end of ctx closes it.
func (l *link) dial(ctx context.Context) (conn net.Conn, stop func() bool, err error) {
	conn, err = sockets.Dial(ctx, l.engine.config.ConnectTimeout, "tcp", l.remote.card.Address)
	if err != nil {
		return nil, func() bool { return false }, err
	}
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	return conn, context.AfterFunc(ctx, func() { conn.Close() }), nil
}

// connection returns the parameters of a lane. A notice waits for ever for a receive
// of the peer: the socket shows whether the peer lives.
func connection(c *Config) backend.Connection {
	return backend.Connection{Timeout: c.ConnectTimeout, RNRRetry: 7, RNRTimer: time.Millisecond}
}

// submit adds a transfer. It returns false if the link is broken.
func (l *link) submit(t *transfer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == broken {
		return false
	}
	l.queue = append(l.queue, t)
	l.pending += t.pieces
	l.pump()
	return true
}

// pump posts pieces and notices as far as there is room. The caller holds mu.
func (l *link) pump() {
	if l.state != up {
		return
	}
	for _, lane := range l.lanes {
		if len(lane.stuck) > 0 {
			l.post(lane, 0)
		}
	}
	l.postNotes()
	for len(l.queue) > 0 && l.state == up {
		if t := l.queue[0]; t.alone && l.single == nil {
			l.single = t
		}
		if l.single != nil && (l.queue[0] != l.single || l.single.left == 0 && l.active.Load() > 0) {
			return
		}
		lane := l.free()
		if lane == nil {
			return
		}
		share := (l.pending + int64(len(l.lanes)) - 1) / int64(len(l.lanes))
		l.postPieces(lane, int(min(int64(l.batch(lane)), max(share, 1))))
	}
}

// free returns a lane with room, in turn, nil if there is none.
func (l *link) free() *lane {
	for range l.lanes {
		lane := l.lanes[l.turn]
		l.turn = (l.turn + 1) % len(l.lanes)
		if lane.room() > 0 && len(lane.stuck) == 0 {
			return lane
		}
	}
	return nil
}

func (l *link) batch(lane *lane) int {
	n := min(lane.room(), maxPost)
	if limit := l.engine.config.PostBatch; limit > 0 {
		n = min(n, limit)
	}
	return n
}

func (l *link) postPieces(lane *lane, limit int) {
	l.wrs = l.wrs[:0]
	for len(l.wrs) < limit && len(l.queue) > 0 {
		t := l.queue[0]
		if t != l.single && (t.alone || l.single != nil) {
			break
		}
		l.wrs = append(l.wrs, backend.SendWR{})
		t.next(&l.wrs[len(l.wrs)-1])
		lane.push(t, &l.wrs[len(l.wrs)-1])
		t.left++
		t.used |= 1 << lane.index
		l.pending--
		t.started()
		if t.spent() {
			l.queue[0] = nil
			l.queue = l.queue[1:]
		}
	}
	l.post(lane, len(l.wrs))
}

// postNotes posts the notices for which there is room.
func (l *link) postNotes() {
	if len(l.notes) == 0 {
		return
	}
	for _, lane := range l.lanes {
		if len(lane.stuck) > 0 {
			continue
		}
		l.wrs = l.wrs[:0]
		limit := l.batch(lane)
		kept := l.notes[:0]
		for _, n := range l.notes {
			if n.lane != lane || len(l.wrs) == limit {
				kept = append(kept, n)
				continue
			}
			i := lane.index*len(lane.ring) + lane.slot(lane.tail)
			putNotice(l.slab.at(i), n.lanes, n.t.serial, uint64(n.t.uid))
			l.wrs = append(l.wrs, backend.SendWR{Op: backend.OpSend, Region: l.slab.region, Local: l.slab.pointer(i), N: noticeBytes})
			lane.push(n.t, &l.wrs[len(l.wrs)-1])
		}
		l.notes = kept
		l.post(lane, len(l.wrs))
	}
}

// post posts n requests of l.wrs, or those that are stuck.
func (l *link) post(lane *lane, n int) {
	wrs := l.wrs[:n]
	if len(lane.stuck) > 0 {
		wrs = lane.stuck
	}
	if len(wrs) == 0 {
		return
	}
	wrs[len(wrs)-1].Signaled = true
	lane.unsignaled = 0
	if n > 0 {
		l.active.Add(int64(n))
	}
	done, err := lane.qp.PostSend(wrs)
	if err == nil && done == len(wrs) {
		lane.stuck = nil
		return
	}
	var e *backend.Errno
	if err != nil && (!errors.As(err, &e) || e.Name != "ENOMEM" && e.Name != "EAGAIN") {
		l.breakUp(failure{RDMAOp, fmt.Sprintf("posting to engine %q failed: %v", l.remote.card.Name, err)}, false)
		return
	}
	lane.stuck = append([]backend.SendWR(nil), wrs[done:]...)
	if !l.again {
		l.again = true
		time.AfterFunc(time.Millisecond, func() {
			l.mu.Lock()
			l.again = false
			l.pump()
			l.mu.Unlock()
		})
	}
}

// complete handles completions.
func (l *link) complete(some []backend.Completion) {
	var over []*transfer
	l.mu.Lock()
	for i := range some {
		c := &some[i]
		if int(c.Cookie>>32) >= len(l.lanes) {
			continue
		}
		lane, n := l.lanes[c.Cookie>>32], uint32(c.Cookie)
		if lane.dead {
			continue
		}
		// The requests before it have succeeded, even if it has failed. If it has
		// failed, it and those after it stay outstanding until the lane is closed.
		known := lane.retire(n, c.Status == backend.Success, func(p posted) {
			l.active.Add(-1)
			t := p.t
			t.left--
			if t.left == 0 && t.spent() && l.finish(t) {
				over = append(over, t)
				if t == l.single {
					l.single = nil
				}
			}
		})
		if known && c.Status != backend.Success {
			lane.dead = true
			l.failed(lane.at(n).t, c)
		}
	}
	l.pump()
	l.mu.Unlock()
	for _, t := range over {
		if t.withheld != nil {
			t.settle(*t.withheld)
		} else {
			t.settle(failure{})
		}
	}
}

// finish reports whether a transfer with no piece outstanding has ended. If not, it
// queues the notices for the target.
func (l *link) finish(t *transfer) bool {
	if t.withheld != nil || t.notifying || t.uid < 0 || !l.engine.config.Notify {
		return true
	}
	t.notifying = true
	if t.serial == 0 {
		t.serial = l.engine.serial.Add(1)
	}
	lanes := uint32(bits.OnesCount64(t.used))
	for _, lane := range l.lanes {
		if t.used>>lane.index&1 != 0 {
			l.notes = append(l.notes, note{t, lane, lanes})
			t.left++
		}
	}
	return false
}

// failed breaks the link because a request of t has failed.
func (l *link) failed(t *transfer, c *backend.Completion) {
	// Of these a device need not know whose fault they are. A flushed request is at fault of none: a receive has failed
	// before it, for example.
	vague := c.Status == backend.RetryExcErr || c.Status == backend.WRFlushErr
	if l.leaving != nil && vague { // the lanes were closed after the socket
		l.breakUp(*l.leaving, false)
		return
	}
	text := c.Detail
	if text == "" {
		text = c.Status.Meaning()
	}
	f := failure{RDMAOp, fmt.Sprintf("%s at engine %q failed with %v: %s", t.op, l.remote.card.Name, c.Status, text)}
	// This transfer fails. The others start again, and fail if the peer is gone.
	l.uncertain = vague && !t.alone
	if !l.uncertain && t.withheld == nil && !(t.notifying && t.tries < noticeTries) {
		t.withheld = &f
	}
	l.breakUp(f, true)
}

// noticeTries is how often a transfer may start again because a notice has failed.
const noticeTries = 3

// fail breaks the link.
func (l *link) fail(code Code, text string) {
	l.mu.Lock()
	l.breakUp(failure{code, text}, false)
	l.mu.Unlock()
}

func (l *link) breakUp(f failure, blame bool) {
	if l.state == broken {
		return
	}
	l.state, l.end, l.blame = broken, f, blame
	l.cancel()
	if l.poller != nil {
		l.poller.stop()
	}
}

// withdraw fails those transfers that are not wholly posted.
func (l *link) withdraw(which func(*transfer) bool, code Code, text string) {
	var over []*transfer
	l.mu.Lock()
	kept := l.queue[:0]
	for _, t := range l.queue {
		if !which(t) {
			kept = append(kept, t)
			continue
		}
		t.withheld = &failure{code, text}
		if t.left == 0 {
			over = append(over, t)
			if t == l.single {
				l.single = nil
			}
		}
	}
	clear(l.queue[len(kept):])
	l.queue = kept
	l.pump()
	l.mu.Unlock()
	for _, t := range over {
		t.settle(*t.withheld)
	}
}

// outstanding lists the transfers of a link that have not ended. The caller holds
// mu.
func (l *link) outstanding() []*transfer {
	var all []*transfer
	seen := map[*transfer]bool{}
	add := func(t *transfer) {
		if t != nil && !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	for _, lane := range l.lanes {
		for n := lane.head; n != lane.tail; n++ {
			add(lane.at(n).t)
		}
	}
	for _, n := range l.notes {
		add(n.t)
	}
	for _, t := range l.queue {
		add(t)
	}
	return all
}

// uses reports whether a transfer that has not ended uses a region.
func (l *link) uses(r *Region) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.outstanding() {
		if t.local == r {
			return true
		}
	}
	return false
}

// awaitGoodbye makes the end of the socket the reason of a broken link whose lanes got
// no answer: a peer that leaves says so, and closes its lanes afterwards.
func (l *link) awaitGoodbye() {
	l.mu.Lock()
	silent := l.uncertain
	l.mu.Unlock()
	if !silent {
		return
	}
	select {
	case <-l.left:
		l.mu.Lock()
		l.end, l.blame = *l.leaving, false
		l.mu.Unlock()
	case <-time.After(earlyTime):
	}
}

// close ends a broken link and settles its transfers.
func (l *link) close() {
	l.awaitGoodbye()
	l.mu.Lock()
	all := l.outstanding()
	l.queue, l.notes = nil, nil
	f, blame, uncertain := l.end, l.blame, l.uncertain
	l.mu.Unlock()
	for _, lane := range l.lanes {
		lane.qp.Close() //nolint:errcheck // it has no completions from here on
	}
	if l.conn != nil {
		goodbye(l.conn, fmt.Sprintf("engine %q has ended its connection", l.engine.card.Name))
	}
	if l.slab != nil {
		l.slab.close()
	}
	if l.poller != nil {
		l.poller.close()
	}
	for _, t := range all {
		switch {
		case t.withheld != nil:
			t.settle(*t.withheld)
		case !t.local.open():
			t.settle(failure{NotFound, "the local memory was deregistered"})
		case blame && t.tries < maxTries:
			t.rewind()
			t.alone = uncertain
			l.remote.submit(t)
		default:
			t.settle(f)
		}
	}
}

// maxTries is how often a transfer may start again because of others' faults.
const maxTries = 100
