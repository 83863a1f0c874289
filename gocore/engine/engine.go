package engine

import (
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

// Engine is the communication state of one process: its transports, queues and
// handlers. It is safe for concurrent use unless a method says otherwise.
type Engine struct {
	Job  *job.Segment
	Rank int
	Size int
	me   *job.Rank

	transports []fabric.Transport
	peers      []peer // by world rank, or number of a process of another job
	handlers   [fabric.Kinds]Handler

	polling   atomic.Uint32 // the poll lock
	delivered atomic.Uint32 // urgent messages delivered
	backlog   atomic.Int32  // queued messages and operations, all peers
	pressing  atomic.Int32  // of these, those for peers whose transport does not tell when there is room
	spin      int           // polls before the first yield; 0 if ranks have to share cores
	gaveWay   atomic.Int64  // time of the last GiveWay
	spreadAt  atomic.Int64  // time of the last look for a better core
	cores     []int         // that this process may use; nil: waits don't move threads
	allowed   int           // how many cores this process may use
	copies    copies
	local     []int // the ranks of this node

	background backgroundList
	completers completers
	arenas     arenas
	placers    [fabric.Kinds]Placer
	hooks      pollHooks
	regions    regions

	damage atomic.Pointer[errs.Error] // see Damage

	net     fabric.Transport // nil: all ranks are reached by shared memory
	netOnly bool             // see Options
	loop    peer             // this rank reached by the network, for NIC atomics
	napping atomic.Bool
	napWord uint32
	netEnds atomic.Bool // asks the progress engine of the network to end
	closed  atomic.Bool // whether the network is closed
	rearm   rearm
	// contended is the time until which the core is taken for shared with other processes, see
	// yield: those of another host, perhaps, if it is virtual.
	contended, interruptedAt atomic.Int64
	arrived                  atomic.Uint32 // counts the polls in which the network has delivered something

	connected connected

	gone   []atomic.Uint32 // by rank or number: 1 when it has ended, see watch.go
	ends   atomic.Uint32   // how many have been set in gone
	judged []atomic.Uint32 // likewise: 1 when it has ended and the launcher has decided, or had the time
	onGone []func(rank int)
	onEnd  func(rank int) // see OnEnd

	onNodeChange func()

	stop      atomic.Bool
	stopWatch func()

	stopNetProgress func()
	served          chan struct{} // closed when the progress engine has ended
}

type peer struct {
	ep    fabric.Endpoint
	short int // largest payload of a short message
	eager int // see fabric.Caps.MaxEager
	ahead int // likewise
	piece int // size of the pieces of longer data
	once  sync.Once
	via   fabric.Transport
	err   error

	remote      bool                   // reached by the network: its doorbells can't be rung
	synchronous bool                   // see fabric.Caps
	announces   bool                   // see fabric.Caps
	lost        atomic.Pointer[string] // why the connection broke; nil: it has not

	mu    sync.Mutex // guards the queues and keeps the order of messages
	queue []*queued
	ops   []*op
}

// How often a wait polls before it yields for the first time: for as long as an answer takes. A
// poll of a network costs system calls, beside which a yield is cheap; and hosts, which count their
// own cores only, may be virtual ones that share them.
const (
	spinMemory  = 500
	spinNetwork = 50
)

// Options say how an engine reaches its peers.
type Options struct {
	OneCopy bool             // the kernel may be asked to copy between address spaces
	Net     fabric.Transport // reaches the ranks of other nodes; nil: there are none
	NetOnly bool             // Net reaches those of this node, too
	// Move allows waits to move the thread of the caller to another core, see spread.
	Move bool
}

var _ fabric.Sink = (*Engine)(nil)

// New returns the engine of rank in seg.
func New(seg *job.Segment, rank int, o Options) *Engine {
	e := &Engine{Job: seg, Rank: rank, Size: len(seg.Ranks), me: &seg.Ranks[rank], net: o.Net, netOnly: o.NetOnly}
	e.peers = make([]peer, e.Places())
	e.gone, e.judged = make([]atomic.Uint32, e.Places()), make([]atomic.Uint32, e.Places())
	e.connected.known.Store(int32(e.Size))
	own := self.New(rank, e.me.Ring)
	e.transports = []fabric.Transport{own}
	e.local = seg.RanksOf(seg.Node())
	e.allowed = len(sys.Allowed())
	var memory fabric.Transport
	if len(e.local) > 1 && !o.NetOnly {
		memory = shm.New(seg, rank, o.OneCopy)
		e.transports = append(e.transports, memory)
	}
	if o.Net != nil {
		e.transports = append(e.transports, o.Net)
	}
	e.connected.links = shm.NewLinks(seg, rank, o.OneCopy, func(id string, rank, openerPID, openerFD int) (int, error) {
		return e.number(Identity{id, rank, openerPID, openerFD})
	})
	for r := range e.Size {
		p := &e.peers[r]
		p.remote = r != rank && (o.NetOnly || !seg.Local(r))
		switch {
		case r == rank:
			p.via = own
		case p.remote:
			p.via = o.Net
		default:
			p.via = memory
		}
	}
	e.loop.via = o.Net
	e.OnForget(e.arenas.forget)
	if !e.CoresShared() {
		e.spin = spinMemory
		if o.Net != nil {
			e.spin = spinNetwork
		}
	}
	if o.Move {
		e.cores = sys.Allowed()
	}
	return e
}

// Remote reports whether rank r is reached by a network. For communication it then
// counts as sharing no memory with this process.
func (e *Engine) Remote(r int) bool { return e.peers[r].remote }

// NetOnly reports whether a network reaches the ranks of this node, too.
func (e *Engine) NetOnly() bool { return e.netOnly }

// AllLocal reports whether all ranks share memory.
func (e *Engine) AllLocal(ranks []int) bool {
	for _, r := range ranks {
		if e.peers[r].remote {
			return false
		}
	}
	return true
}

// Apart reports whether no two of these ranks share memory, for communication. All ranks
// come to the same result, since all have the same GORMAPY_FABRIC.
func (e *Engine) Apart(ranks []int) bool {
	if e.netOnly {
		return true
	}
	seen := map[int]bool{}
	for _, r := range ranks {
		if seen[e.Job.NodeOf(r)] {
			return false
		}
		seen[e.Job.NodeOf(r)] = true
	}
	return true
}

// Net returns the network transport, nil if there is none.
func (e *Engine) Net() fabric.Transport { return e.net }

// Transport returns the name and the capabilities of the transport to peer r.
func (e *Engine) Transport(r int) (string, fabric.Caps) {
	return e.peers[r].via.Name(), e.peers[r].via.Caps()
}

// connect connects to peer r by p on first use.
func (e *Engine) connect(r int, p *peer) error {
	p.once.Do(func() {
		p.ep, p.err = p.via.Connect(r)
		caps := p.via.Caps()
		p.short, p.eager, p.ahead, p.piece = caps.MaxShort, caps.MaxEager, caps.Ahead, caps.Piece
		p.synchronous, p.announces = caps.Synchronous, caps.Announces
	})
	return p.err
}

// MaxShort returns the size of the largest payload of one message to peer r.
func (e *Engine) MaxShort(r int) int {
	p := &e.peers[r]
	_ = e.connect(r, p)
	return p.short
}

// MaxEager returns the length of the longest message to peer r that is best sent whole;
// otherwise, where the transport does not say, is what the caller takes.
func (e *Engine) MaxEager(r, otherwise int) int {
	p := &e.peers[r]
	_ = e.connect(r, p)
	if p.eager > 0 {
		return p.eager
	}
	return min(otherwise, p.short)
}

// Ahead returns how much of a message to peer r that is announced, and then sent, is best sent with the announcement.
func (e *Engine) Ahead(r int) int {
	p := &e.peers[r]
	_ = e.connect(r, p)
	return p.ahead
}

// CoresShared reports whether ranks have to share cores. The result is the same on all
// ranks of a node.
func (e *Engine) CoresShared() bool { return len(e.local) > int(e.Job.Head.Cores) }

// Active reports whether rank r polls for messages at the moment.
func (e *Engine) Active(r int) bool {
	rk := e.Job.Rank(r)
	return atom.Load32(&rk.Pollers) != 0 && atom.Load32(&rk.Sleepers) == 0
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

// Bytes returns n bytes of memory outside Go's heap as a slice.
func Bytes(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }
