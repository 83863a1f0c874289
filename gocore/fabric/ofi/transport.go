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
	maxEarly   = 4096 // early messages of one peer
	maxRuns    = 256
	postBatch  = 64
	maxRequest = 64 << 20
	grace      = time.Second // see the package comment
)

// slotWords is the registered memory of a slot, for atomics.
const slotWords = 3 * 8

// slab is a part of the transport's memory, cut into equal buffers.
type slab = device.Slab[*libfabric.MR]

// transport implements fabric.Transport.
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

	nonce nonce

	ordered, localMR, virtual bool
	immediate                 bool // puts are acknowledged by frames
	putFlags                  uint64
	inject                    int
	longest                   int // bytes of a request

	// One mapping, registered once, for received frames, for sent frames and bounce
	// buffers, and for the words of slots.
	mem    *device.Mapping[*libfabric.MR]
	frames *slab // received
	bufs   *slab // sent
	words  *slab // by slot: operand, compare, result of an atomic
	recvs  *libfabric.Contexts

	regions regions

	// Owned by the thread that polls, but for finished, which mu guards.
	repost    []int // receives to post again
	deliver   []int // receives that have arrived
	lengths   []int // of those in deliver
	finished  []finish
	finishing []finish

	work  atomic.Bool // resume has work
	again atomic.Bool // the provider has refused a request for now

	mu       sync.Mutex
	closed   bool
	dead     error // the completion queue does not work any more
	txs      *libfabric.Contexts
	slots    []slot
	free     []int // slots
	eps      []*endpoint
	waiting  []*endpoint // not connected yet
	stalled  []*endpoint // with an operation whose requests are not all posted
	breaking []*endpoint // broken; the sink is not notified yet
	ackTo    []int       // ranks whose puts have to be acknowledged
	opPool   []*operation
	temps    int // registrations for a single operation
	requests [postBatch]libfabric.Request
	acks     []byte
}

// slot is a request under way.
type slot struct {
	ep   *endpoint
	op   *operation // nil: a frame, or an operation that has been given up
	buf  int        // of a frame, -1 if none is held
	wait uint8      // waitLocal, waitAck
	used bool
}

// Values of slot.wait, which are combined.
const (
	waitLocal = 1 << iota // the local completion
	waitAck               // the target's acknowledgement
)

// finish is a completion that the sink is to be notified of.
type finish struct {
	cookie uint64
	err    error
}

func newTransport(dir fabric.Directory, o Options, c *device.Offer) (t *transport, err error) {
	i, r := c.Info, o.Restrictions
	t = &transport{
		dir: dir, me: dir.Rank(), size: dir.Size(), o: o, offer: c, info: i, nonce: drawNonce(),
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
		t.eps[p] = &endpoint{t: t, peer: p}
	}
	defer func() {
		if err != nil {
			_ = t.Close()
			t = nil
		}
	}()
	if _, err = newSeal(dir.Secret(), t.me, t.me, t.nonce, o.Sealed); err != nil {
		return t, err
	}
	if err = t.open(); err != nil {
		return t, err
	}
	c2 := card{provider: i.Provider, name: t.name, nonce: t.nonce}
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
		t.cq, _ = t.domain.OpenCQ(size, true) // a provider without FI_WAIT_FD refuses
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

// allocate maps and registers t.mem. It is registered for all access: a device may give
// all memory that no peer may access one key, which operations need (see prepare).
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

// desc returns the descriptor of t.mem, 0 if it is not registered.
func (t *transport) desc() uintptr {
	if t.mem.MR == nil {
		return 0
	}
	return t.mem.MR.Desc
}

// postReceives posts the receives in t.repost, as far as there is room.
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
				return nil // the next Poll continues
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

// errClosed is the error of calls after Close.
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
	if t.o.Sealed {
		s += ", messages authenticated"
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

// How long Close waits for frames that the provider has accepted, and for the provider to
// accept the goodbyes.
const (
	drainTime = time.Second
	byeTime   = 200 * time.Millisecond
)

// leave sends a goodbye to the peers that this rank has communicated with, because a
// provider of datagrams does not notify them. It drives the provider until accepted frames
// are sent, because closing an endpoint drops the others. No other thread polls any more.
func (t *transport) leave() {
	start := time.Now()
	t.mu.Lock()
	var to []*endpoint
	for _, e := range t.eps {
		if e.peer != t.me && (e.connected || e.received > 0) {
			to = append(to, e)
		}
	}
	t.mu.Unlock()
	for {
		t.readQueue()
		for k, r := range t.deliver { // peers send goodbyes, too
			t.receive(discard{}, t.frames.Bytes(int32(r))[:t.lengths[k]])
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
		t.sendAcks() // peers that have not closed wait for them
		to = slices.DeleteFunc(to, func(e *endpoint) bool {
			err := e.ready()
			if err == nil {
				err = e.sendFrame(frameBye, nil, nil)
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

// discard is the sink of a transport that closes.
type discard struct{}

func (discard) Deliver(int, *fabric.Header, []byte)           {}
func (discard) Place(int, *fabric.Header, int) unsafe.Pointer { return nil }
func (discard) Completed(uint64, error)                       {}
func (discard) Broken(int, error)                             {}

// putWord writes a word of a slot's memory.
func putWord(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }
