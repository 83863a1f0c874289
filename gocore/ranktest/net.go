package ranktest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
)

// Net is a network between the ranks of a test, in the memory of its process. Messages
// arrive when the receiver polls, one-sided operations take effect and complete some
// polls later, in any order, and sometimes there is no room. It has no descriptor to
// sleep on. It serves to test the layers above with every set of capabilities, under the
// race detector, which sees its memory.
type Net struct {
	caps    fabric.Caps
	mu      sync.Mutex // guards everything: correctness matters here, speed does not
	nodes   []*node
	ended   map[int]bool
	stopped map[int]bool
	rand    *rand.Rand // decides delays and lack of room
	sent    map[[2]int]int

	Diverts bool // see fabric.Redirector: the test that has a payload arrive in steps says so
}

type node struct {
	net     *Net
	rank    int
	inbox   []parcel
	pending []pending
	regions map[uint64]*region
	nextKey uint64
	event   int // eventfd of a sleeper
	armed   bool
	due     bool // event will be written shortly
}

type pending struct {
	to int
	do func(sink fabric.Sink)
}

type parcel struct {
	src  int
	h    fabric.Header
	data []byte
}

type region struct {
	n    *node
	addr uintptr
	size int
	key  uint64

	unpublished bool
}

// NewNet returns a network of n ranks. It uses OneSided, Keys and Atomics of caps.
func NewNet(n int, caps fabric.Caps) *Net {
	return NewSeededNet(n, caps, rand.NewPCG(rand.Uint64(), rand.Uint64()))
}

// NewSeededNet is NewNet with delays from a source: if one thread at a time uses the
// network, it behaves the same each time.
func NewSeededNet(n int, caps fabric.Caps, source rand.Source) *Net {
	caps.Ahead = 1024
	caps.MaxShort, caps.Piece, caps.MaxRuns, caps.Ordered, caps.Manual = 4096, 2048, 16, true, true
	net := &Net{caps: caps, ended: map[int]bool{}, stopped: map[int]bool{}, rand: rand.New(source), sent: map[[2]int]int{}}
	for r := range n {
		net.nodes = append(net.nodes, &node{net: net, rank: r, regions: map[uint64]*region{}})
	}
	return net
}

// Sent returns how many messages for receives have been sent from ranks to others for which
// count returns true.
func (net *Net) Sent(count func(from, to int) bool) (n int) {
	net.mu.Lock()
	defer net.mu.Unlock()
	for pair, k := range net.sent {
		if count(pair[0], pair[1]) {
			n += k
		}
	}
	return n
}

// Node returns rank's transport.
func (net *Net) Node(rank int) fabric.Transport { return net.nodes[rank] }

func (n *node) Name() string                              { return "test" }
func (n *node) Caps() fabric.Caps                         { return n.net.caps }
func (n *node) Close() error                              { return nil }
func (n *node) Connect(peer int) (fabric.Endpoint, error) { return &line{n, n.net.nodes[peer]}, nil }
func (n *node) Redirect(unsafe.Pointer)                   {}
func (n *node) Divert(unsafe.Pointer) bool                { return n.net.Diverts }
func (r *region) Key() fabric.RemoteKey                   { return fabric.RemoteKey{Addr: 0, Key: r.key} }
func (n *node) Register(p unsafe.Pointer, size int) (fabric.Region, error) {
	n.net.mu.Lock()
	defer n.net.mu.Unlock()
	n.nextKey++
	r := &region{n: n, addr: uintptr(p), size: size, key: n.nextKey<<8 | uint64(n.rank)}
	n.regions[r.key] = r
	return r, nil
}

func (r *region) Close() error {
	r.n.net.mu.Lock()
	defer r.n.net.mu.Unlock()
	delete(r.n.regions, r.key)
	return nil
}

// Unpublish implements fabric.Unpublisher.
func (r *region) Unpublish() {
	r.n.net.mu.Lock()
	defer r.n.net.mu.Unlock()
	r.unpublished = true
}

// Regions returns the number of regions that a rank has registered, and of those that
// are not unpublished.
func (net *Net) Regions(rank int) (all, local int) {
	net.mu.Lock()
	defer net.mu.Unlock()
	for _, r := range net.nodes[rank].regions {
		all++
		if !r.unpublished {
			local++
		}
	}
	return all, local
}

// Poll implements fabric.Transport.
func (n *node) Poll(sink fabric.Sink) int {
	n.net.mu.Lock()
	got := n.inbox
	n.inbox = nil
	n.net.rand.Shuffle(len(n.pending), func(i, j int) { n.pending[i], n.pending[j] = n.pending[j], n.pending[i] })
	due := n.pending[:(len(n.pending)+1)/2]
	n.pending = append([]pending{}, n.pending[len(due):]...)
	for _, p := range due {
		if n.net.stopped[p.to] {
			n.pending = append(n.pending, p)
		}
	}
	due = slices.DeleteFunc(due, func(p pending) bool { return n.net.stopped[p.to] })
	n.net.mu.Unlock()
	for i := range got {
		p := &got[i]
		if len(p.data) > 64 {
			if at := sink.Place(p.src, &p.h, len(p.data)); at != nil {
				placed := unsafe.Slice((*byte)(at), len(p.data))
				copy(placed, p.data)
				p.data = placed
			}
		}
		sink.Deliver(p.src, &p.h, p.data)
	}
	for _, p := range due {
		p.do(sink)
	}
	return len(got) + len(due)
}

// Stop holds all one-sided operations on the memory of rank if stop is set, and lets
// them continue if it is not.
func (net *Net) Stop(rank int, stop bool) {
	net.mu.Lock()
	defer net.mu.Unlock()
	net.stopped[rank] = stop
}

// Held returns the number of operations that wait for the memory of rank.
func (net *Net) Held(rank int) int {
	net.mu.Lock()
	defer net.mu.Unlock()
	held := 0
	for _, n := range net.nodes {
		for _, p := range n.pending {
			if p.to == rank {
				held++
			}
		}
	}
	return held
}

// End makes rank unreachable, as if its process had ended: new operations on it fail.
func (net *Net) End(rank int) {
	net.mu.Lock()
	defer net.mu.Unlock()
	net.ended[rank] = true
}

// sleeper is a node with a descriptor that signals, once each time it is armed, that
// something has arrived, a little later than it does. A thread that polls meanwhile
// also consumes the signal, as with a device's completion channel.
type sleeper struct{ *node }

func (s sleeper) Caps() fabric.Caps {
	c := s.node.Caps()
	c.Manual = false
	return c
}

func (s sleeper) FD() int { return s.event }

func (s sleeper) Arm() error {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.armed = true
	return nil
}

func (s sleeper) Poll(sink fabric.Sink) int {
	n := s.node.Poll(sink)
	if n > 0 {
		s.net.mu.Lock()
		defer s.net.mu.Unlock()
		s.due = false
		var count [8]byte
		_, _ = unix.Read(s.event, count[:])
	}
	return n
}

// notify signals the node's descriptor if it is armed. The caller holds the lock.
func (n *node) notify() {
	if !n.armed {
		return
	}
	n.armed, n.due = false, true
	time.AfterFunc(100*time.Microsecond, func() {
		n.net.mu.Lock()
		defer n.net.mu.Unlock()
		if n.due {
			n.due = false
			_, _ = unix.Write(n.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		}
	})
}

// line is the endpoint of one node for another.
type line struct{ from, to *node }

func (l *line) full() bool { return l.from.net.rand.IntN(8) == 0 }

func (l *line) Send(h *fabric.Header, payload []byte) error {
	l.from.net.mu.Lock()
	defer l.from.net.mu.Unlock()
	if l.from.net.ended[l.to.rank] {
		return fabric.ErrPeerGone
	}
	if len(l.to.inbox) > 64 || l.full() {
		return fabric.ErrAgain
	}
	if h.Kind == fabric.KindEager || h.Kind == fabric.KindRTS {
		l.from.net.sent[[2]int{l.from.rank, l.to.rank}]++
	}
	l.to.inbox = append(l.to.inbox, parcel{l.from.rank, *h, append([]byte(nil), payload...)})
	l.to.notify()
	return nil
}

// later queues do, which runs under the lock in some later poll of this rank.
func (l *line) later(what string, cookie uint64, do func() error) (bool, error) {
	n := l.from
	n.net.mu.Lock()
	defer n.net.mu.Unlock()
	if n.net.ended[l.to.rank] {
		return false, fabric.ErrPeerGone
	}
	if l.full() {
		return false, fabric.ErrAgain
	}
	n.pending = append(n.pending, pending{l.to.rank, func(sink fabric.Sink) {
		n.net.mu.Lock()
		err := do()
		n.net.mu.Unlock()
		if err != nil {
			err = &fabric.OpError{Op: what, Peer: l.to.rank, Status: err.Error()}
		}
		sink.Completed(cookie, err)
	}})
	n.notify()
	return false, nil
}

type remoteError string

func (e remoteError) Error() string { return string(e) }

// at returns n bytes of the peer's memory; addresses are offsets in the region. The
// caller holds the lock.
func (l *line) at(k fabric.RemoteKey, n int) ([]byte, error) {
	r := l.to.regions[k.Key]
	if r == nil || k.Addr > uint64(r.size) || uint64(n) > uint64(r.size)-k.Addr {
		return nil, remoteError("remote access error")
	}
	return unsafe.Slice((*byte)(unsafe.Add(fabric.Pointer(uint64(r.addr)), k.Addr)), n), nil
}

func (l *line) Put(local unsafe.Pointer, k fabric.RemoteKey, n int, cookie uint64) (bool, error) {
	return l.PutRuns(local, k.Key, []fabric.Run{{Addr: k.Addr, N: n}}, cookie)
}

func (l *line) Get(local unsafe.Pointer, k fabric.RemoteKey, n int, cookie uint64) (bool, error) {
	return l.GetRuns(local, k.Key, []fabric.Run{{Addr: k.Addr, N: n}}, cookie)
}

func (l *line) runs(put bool, local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (bool, error) {
	if !l.from.net.caps.OneSided {
		return false, fabric.ErrUnsupported
	}
	runs = append([]fabric.Run(nil), runs...)
	return l.later("put or get", cookie, func() error {
		done := 0
		for _, r := range runs {
			there, err := l.at(fabric.RemoteKey{Addr: r.Addr, Key: key}, r.N)
			if err != nil {
				return err
			}
			here := unsafe.Slice((*byte)(unsafe.Add(local, done)), r.N)
			if put {
				copy(there, here)
			} else {
				copy(here, there)
			}
			done += r.N
		}
		return nil
	})
}

func (l *line) PutRuns(local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (bool, error) {
	return l.runs(true, local, key, runs, cookie)
}

func (l *line) GetRuns(local unsafe.Pointer, key uint64, runs []fabric.Run, cookie uint64) (bool, error) {
	return l.runs(false, local, key, runs, cookie)
}

func (l *line) atomic(old unsafe.Pointer, k fabric.RemoteKey, cookie uint64, f func(was uint64) uint64) (bool, error) {
	if !l.from.net.caps.Atomics {
		return false, fabric.ErrUnsupported
	}
	return l.later("atomic", cookie, func() error {
		there, err := l.at(k, 8)
		if err != nil {
			return err
		}
		p := (*uint64)(unsafe.Pointer(&there[0]))
		was := *p
		*p = f(was)
		*(*uint64)(old) = was
		return nil
	})
}

func (l *line) FetchAdd(old unsafe.Pointer, k fabric.RemoteKey, add uint64, cookie uint64) (bool, error) {
	return l.atomic(old, k, cookie, func(was uint64) uint64 { return was + add })
}

func (l *line) CompareSwap(old unsafe.Pointer, k fabric.RemoteKey, compare, swap uint64, cookie uint64) (bool, error) {
	return l.atomic(old, k, cookie, func(was uint64) uint64 {
		if was == compare {
			return swap
		}
		return was
	})
}
