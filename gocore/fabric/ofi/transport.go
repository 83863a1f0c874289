//go:build cgo

package ofi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
	"gormapy/gocore/libfabric"
)

// Bounds of what a transport holds.
const (
	slotCount  = 1024 // requests under way
	slotsEach  = 512  // of them to one peer
	bufCount   = 128  // frames and bounce buffers under way
	bufsEach   = 64   // of them to one peer
	reserved   = 16   // slots and buffers for frames that free others
	recvCount  = 128  // posted receives
	stashMost  = 4096 // early messages of one peer
	maxRuns    = 256
	postBatch  = 64
	maxRequest = 64 << 20
	grace      = time.Second // see the package comment
)

// slotWords is the registered memory of a slot, for atomics.
const slotWords = 3 * 8

// slab is a part of the memory of frames in equal buffers.
type slab = device.Slab[*libfabric.MR]

// Transport implements fabric.Transport.
type transport struct {
	dir      fabric.Directory
	me, size int
	o        Options
	caps     fabric.Caps

	offer  *device.Offer
	info   *libfabric.Info // of offer
	net    *libfabric.Fabric
	domain *libfabric.Domain
	av     *libfabric.AV
	cq     *libfabric.CQ
	ep     *libfabric.Endpoint
	name   []byte

	ordered, localMR, virtual bool
	immediate                 bool // puts are acknowledged by frames
	putFlags                  uint64
	inject                    int
	longest                   int // request

	// Memory of frames: received ones, sent ones and bounce buffers, words of slots.
	// All of it is one mapping, registered once.
	mem    *device.Mapping[*libfabric.MR]
	frames *slab // received
	bufs   *slab // sent
	words  *slab // by slot: operand, compare, result of an atomic
	recvs  *libfabric.Contexts

	regions regions

	// Of whoever polls.
	repost    []int // receives to post again
	deliver   []int // receives with something in them, and how long
	lengths   []int
	finished  []finish
	finishing []finish

	work  atomic.Bool // Poll has to look at what mu guards
	again atomic.Bool // somebody was told ErrAgain by the provider

	mu       sync.Mutex
	closed   bool
	dead     error // the completion queue does not work any more
	txs      *libfabric.Contexts
	slots    []slot
	free     []int // slots
	eps      []*endpoint
	waiting  []*endpoint // not connected yet
	stalled  []*endpoint // with an operation that is not posted whole
	breaking []*endpoint // broken and not told yet
	ackTo    []int       // ranks that have acknowledgements to come
	opPool   []*operation
	temps    int // registrations for one operation
	requests [postBatch]libfabric.Request
	acks     []byte
}

// slot is a request under way.
type slot struct {
	ep   *endpoint
	op   *operation // nil: a frame, or an operation that has been given up
	buf  int        // of a frame, -1 if none is held
	wait uint8      // for what
	used bool
}

// What slots wait for.
const (
	waitLocal = 1 << iota // its completion
	waitAck               // the target's acknowledgement
)

// finish is something to tell the sink.
type finish struct {
	cookie uint64
	err    error
}

func newTransport(dir fabric.Directory, o Options, c *device.Offer) (t *transport, err error) {
	i, r := c.Info, o.Restrictions
	t = &transport{
		dir: dir, me: dir.Rank(), size: dir.Size(), o: o, offer: c, info: i,
		ordered:  c.Order && !r.NoOrder,
		localMR:  i.MRMode&libfabric.MRLocal != 0 || r.LocalMR,
		virtual:  i.MRMode&libfabric.MRVirtAddr != 0,
		inject:   i.InjectSize,
		longest:  maxRequest,
		putFlags: libfabric.Completed | libfabric.DeliveryComplete,
	}
	if r.NoInject {
		t.inject = 0
	}
	if i.MaxMsgSize < uint64(t.longest) {
		t.longest = int(i.MaxMsgSize)
	}
	if r.MaxMsg > 0 {
		t.longest = min(t.longest, r.MaxMsg)
	}
	t.caps = fabric.Caps{
		MaxShort: maxShort, Piece: maxShort, MaxRuns: maxRuns, OneSided: true, Keys: true,
		Atomics: c.Atomics, Manual: !i.AutoProgress, Ordered: true,
	}
	if !c.Delivery {
		t.immediate, t.putFlags = true, libfabric.Completed|libfabric.RemoteData
		t.caps.OneSided = i.CQDataSize >= 4 && t.size <= 1<<16
	}
	t.eps = make([]*endpoint, t.size)
	for p := range t.eps {
		t.eps[p] = &endpoint{t: t, peer: p, tokenOut: token(dir.Secret(), t.me, p), tokenIn: token(dir.Secret(), p, t.me)}
	}
	defer func() {
		if err != nil {
			_ = t.Close()
			t = nil
		}
	}()
	if err = t.open(); err != nil {
		return t, err
	}
	c2 := card{provider: i.Provider, name: t.name}
	b, err := c2.encode()
	if err != nil {
		return t, err
	}
	return t, dir.Publish(b)
}

// open makes the objects, and posts the receives.
func (t *transport) open() (err error) {
	i := t.info
	receives := min(recvCount, i.RxSize)
	i.SetSizes(min(slotCount, i.TxSize), receives)
	if t.net, err = libfabric.OpenFabric(i); err != nil {
		return err
	}
	if t.domain, err = t.net.OpenDomain(i); err != nil {
		return err
	}
	if t.av, err = t.domain.OpenAV(i, t.size); err != nil {
		return err
	}
	size := slotCount + recvCount
	if i.CQSize > 0 {
		size = min(size, i.CQSize)
	}
	if !t.o.Restrictions.NoWait {
		t.cq, _ = t.domain.OpenCQ(size, true) // a provider without such a thing refuses
	}
	if t.cq == nil {
		if t.cq, err = t.domain.OpenCQ(size, false); err != nil {
			return err
		}
	}
	if t.ep, err = t.domain.OpenEndpoint(i, t.av, t.cq); err != nil {
		return err
	}
	if t.name, err = t.ep.Name(); err != nil {
		return err
	}
	t.caps.Atomics = t.caps.Atomics && t.ep.HasAtomics()

	if err = t.allocate(receives); err != nil {
		return err
	}
	t.txs = libfabric.NewContexts(slotCount)
	t.slots = make([]slot, slotCount)
	for s := slotCount - 1; s >= 0; s-- {
		t.free = append(t.free, s)
	}
	t.recvs = libfabric.NewContexts(receives)
	for r := range receives {
		t.repost = append(t.repost, r)
	}
	if err = t.postReceives(); err != nil {
		return fmt.Errorf("post receives: %w", err)
	}
	return nil
}

// allocate makes the memory of frames. It is registered for all access: what no peer
// may access can have one key on a device, which operations need (prepare).
func (t *transport) allocate(receives int) (err error) {
	register := func(addr uintptr, n int) (*libfabric.MR, error) { return t.register(addr, n, device.AllAccess) }
	if !t.localMR {
		register = nil
	}
	bufs, words := receives*frameBytes, (receives+bufCount)*frameBytes
	if t.mem, err = device.Map(words+slotCount*slotWords, "frames", register); err != nil {
		return err
	}
	t.frames, t.bufs, t.words = t.mem.Cut(0, receives, frameBytes), t.mem.Cut(bufs, bufCount, frameBytes), t.mem.Cut(words, slotCount, slotWords)
	return nil
}

// desc is the descriptor of t.mem.
func (t *transport) desc() uintptr {
	if t.mem.MR == nil {
		return 0
	}
	return t.mem.MR.Desc
}

// postReceives posts what is in t.repost, as far as there is room.
func (t *transport) postReceives() error {
	for len(t.repost) > 0 {
		var requests [32]libfabric.Request
		n := min(len(t.repost), len(requests))
		for k, r := range t.repost[:n] {
			requests[k] = libfabric.Request{
				Kind: libfabric.Recv, Flags: libfabric.Completed, Local: addressOf(t.frames.Bytes(int32(r))), Len: frameBytes,
				Desc: t.desc(), Addr: libfabric.AddrUnspec, Context: t.recvs.At(r),
			}
		}
		posted, err := t.ep.Post(requests[:n])
		t.repost = t.repost[:copy(t.repost, t.repost[posted:])]
		if err != nil {
			if errors.Is(err, libfabric.EAGAIN) {
				return nil // the next Poll goes on
			}
			return err
		}
	}
	return nil
}

// Name implements fabric.Transport.
func (t *transport) Name() string { return "ofi" }

// Caps implements fabric.Transport.
func (t *transport) Caps() fabric.Caps { return t.caps }

// Connect implements fabric.Transport.
func (t *transport) Connect(peer int) (fabric.Endpoint, error) {
	if peer < 0 || peer >= t.size {
		return nil, &fabric.OpError{Op: "connect", Peer: peer, Status: "no such rank", Detail: fmt.Sprintf("there are %d", t.size)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	return t.eps[peer], t.eps[peer].connect()
}

// errClosed: a call after Close.
var errClosed = errors.New("the transport is closed")

// Refusal implements fabric.Explainer.
func (t *transport) Refusal(int) string {
	if t.caps.OneSided {
		return ""
	}
	return fmt.Sprintf("provider %s has neither FI_DELIVERY_COMPLETE nor 4 bytes of immediate data", t.info.Provider)
}

// Describe implements fabric.Describer.
func (t *transport) Describe(peer int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return "closed"
	}
	l, _ := libfabric.Open(libfabric.Defaults{})
	s := fmt.Sprintf("libfabric %s, provider %s on %s", l.Version(), t.info.Provider, t.info.Domain)
	if t.info.NIC != "" && t.info.NIC != t.info.Domain {
		s += " (" + t.info.NIC + ")"
	}
	if t.info.LinkSpeed > 0 {
		s += fmt.Sprintf(", %d Gbit/s", t.info.LinkSpeed/1e9)
	}
	s += ", from " + t.av.Text(t.name)
	if peer >= 0 && peer < t.size {
		if c, err := decodeCard(t.dir.Card(peer)); err == nil {
			s += " to " + t.av.Text(c.name)
		}
	}
	if t.immediate {
		s += ", puts acknowledged by the target"
	}
	return s
}

func (t *transport) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// Close implements fabric.Transport.
func (t *transport) Close() error {
	if t.ep != nil && t.mem != nil && !t.isClosed() {
		t.leave()
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	t.mu.Unlock()
	var errs []error
	shut := func(err error) { errs = append(errs, err) }
	early := t.info.MRMode&libfabric.MREndpoint != 0 // regions before the endpoint they are bound to
	if !early && t.ep != nil {
		shut(t.ep.Close())
	}
	shut(t.regions.closeAll())
	shut(t.mem.Deregister())
	if early && t.ep != nil {
		shut(t.ep.Close())
	}
	if t.cq != nil {
		shut(t.cq.Close())
	}
	if t.av != nil {
		shut(t.av.Close())
	}
	if t.domain != nil {
		shut(t.domain.Close())
	}
	if t.net != nil {
		shut(t.net.Close())
	}
	t.info.Free()
	err := errors.Join(errs...)
	if err != nil {
		return err // something is still in use, so memory has to stay
	}
	if t.txs != nil {
		t.txs.Free()
	}
	if t.recvs != nil {
		t.recvs.Free()
	}
	return t.mem.Unmap()
}

// Patience of Close, with frames that the provider has accepted, and with peers
// that it does not take a goodbye for.
const (
	drainTime = time.Second
	byeTime   = 200 * time.Millisecond
)

// leave says goodbye to the peers that this rank has talked to, since a provider
// of datagrams does not tell them, and moves on what was accepted: closing an
// endpoint drops what is not sent yet. Nobody else polls any more.
func (t *transport) leave() {
	start := time.Now()
	t.mu.Lock()
	var to []*endpoint
	for _, e := range t.eps {
		if e.peer != t.me && (e.connected || e.known || e.received > 0) {
			to = append(to, e)
		}
	}
	t.mu.Unlock()
	for {
		t.readQueue()
		for k, r := range t.deliver { // others say goodbye, too
			t.receive(nobody{}, t.frames.Bytes(int32(r))[:t.lengths[k]])
			t.repost = append(t.repost, r)
		}
		t.deliver, t.lengths = t.deliver[:0], t.lengths[:0]
		if t.postReceives() != nil {
			return
		}
		t.mu.Lock()
		if t.closed || t.dead != nil {
			t.mu.Unlock()
			return
		}
		t.sendAcks() // peers that go on wait for them
		to = slices.DeleteFunc(to, func(e *endpoint) bool {
			err := e.ready()
			if err == nil {
				err = e.sendFrame(frameBye, e.sent+1, nil, nil)
			}
			return err != fabric.ErrAgain
		})
		left := 0
		for s := range t.slots {
			if sl := &t.slots[s]; sl.used && sl.op == nil && sl.ep.broken == nil {
				left++
			}
		}
		t.mu.Unlock()
		waited := time.Since(start)
		if len(to) == 0 && left == 0 || len(to) > 0 && waited > byeTime || waited > drainTime {
			return
		}
		runtime.Gosched()
	}
}

// nobody is the sink of a transport that closes.
type nobody struct{}

func (nobody) Deliver(int, *fabric.Header, []byte)           {}
func (nobody) Place(int, *fabric.Header, int) unsafe.Pointer { return nil }
func (nobody) Completed(uint64, error)                       {}
func (nobody) Broken(int, error)                             {}

// putWord writes a word of a slot's memory.
func putWord(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }
