//go:build cgo

package verbs

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gormapy/gocore/device"
	"gormapy/gocore/fabric"
	"gormapy/gocore/ibverbs"
)

const (
	bufferBytes = 8 << 10 // of a short message with its header
	recvBuffers = 256
	sendBuffers = 128
	cellBytes   = 64 // for old values and small gets
	cells       = 1024
	maxDepth    = 256 // requests of a send queue
	minDepth    = 16
	maxRuns     = 64
	wantInline  = 220 // common devices have room for it in one work queue element
	pollBatch   = 32
	repostBatch = 16
)

// timers make requests to a peer that does not answer fail after about
// 7 times 4.096 us * 2^15, which is a second.
var timers = ibverbs.Timers{Timeout: 15, Retries: device.Retries, RNRRetry: 7, MinRNR: 1}

const (
	closePatience = 2 * time.Second
	flushPatience = 500 * time.Millisecond
)

var errClosed = errors.New("the verbs transport is closed")

// Transport is the transport over RDMA devices. It is safe for concurrent use as far as
// fabric's contract says.
type Transport struct {
	port   *device.OpenPort
	dir    fabric.Directory
	rank   int
	pd     *ibverbs.PD
	ch     *ibverbs.CompChannel
	cq     *ibverbs.CQ
	srq    *ibverbs.SRQ
	caps   fabric.Caps
	timers ibverbs.Timers
	depth  uint32
	maxMsg int

	mu          sync.Mutex
	eps         []*endpoint // by rank
	pairs       map[uint32]*endpoint
	regions     device.Table[*region]
	unpublished map[*region]bool // regions that are not for local memory any more
	bounce      *slab
	cells       *slab
	stage       unsafe.Pointer // an inline message is assembled here
	starved     bool           // a call has found no buffer: sends are signalled early, too
	closed      bool
	busy        []*endpoint
	working     atomic.Int32  // len(busy)
	over        []*ibverbs.MR // no operation uses them any more

	// Only Poll uses what follows.
	recvs  *slab
	repost []ibverbs.RecvWR
	wcs    [pollBatch]ibverbs.WC
	done   []completion
	unused []*ibverbs.MR // taken from over, closed without the lock
	broke  []*endpoint
	left   []*endpoint // their peers have mailed closed
	mails  uint32
	armed  bool
	tries  int // how many more times Poll looks for the event of a completion that it has seen
}

// slab is registered memory of the transport in equal buffers.
type slab = device.Slab[*ibverbs.MR]

type completion struct {
	cookie uint64
	err    error
}

var (
	_ fabric.Transport = (*Transport)(nil)
	_ fabric.Sleeper   = (*Transport)(nil)
	_ fabric.Describer = (*Transport)(nil)
)

// New makes the transport of a rank.
func New(dir fabric.Directory, o Options) (*Transport, error) {
	lib, err := ibverbs.Load()
	if err != nil {
		return nil, err
	}
	return newTransport(lib, dir, o)
}

// Problem returns why there can be no transport on this machine, "" if there can.
func Problem(o Options) string {
	lib, err := ibverbs.Load()
	if err == nil {
		o.SharedReceive = true
		var p *device.OpenPort
		if p, err = device.OpenIB(lib, o, 0); err == nil {
			_ = p.Context.Close()
			return ""
		}
	}
	return err.Error()
}

// between names the network of this machine's devices, see fabric.Entry.
func between(o Options) string {
	lib, err := ibverbs.Load()
	if err != nil {
		return ""
	}
	o.SharedReceive = true
	return device.NetworkIB(lib, o)
}

func newTransport(lib *ibverbs.Library, dir fabric.Directory, o Options) (t *Transport, err error) {
	t = &Transport{
		dir: dir, rank: dir.Rank(), eps: make([]*endpoint, dir.Size()), pairs: map[uint32]*endpoint{}, timers: timers,
		mails: dir.Mails() - 1,
	}
	defer func() {
		if err != nil {
			_ = t.free()
			t = nil
		}
	}()
	o.SharedReceive = true
	if t.port, err = device.OpenIB(lib, o, dir.OnNode()); err != nil {
		return t, err
	}
	if t.pd, err = t.port.Context.AllocPD(); err != nil {
		return t, err
	}
	if t.ch, err = t.port.Context.CreateCompChannel(); err != nil {
		return t, err
	}
	// One completion queue has room for all completions that can be in it at a time.
	recvs := min(recvBuffers, max(t.port.Device.MaxSRQWR, 1))
	room := min(t.port.Device.MaxCQE, 1<<16) - recvs
	t.depth = uint32(min(max(room/(dir.Size()+1), minDepth), maxDepth, t.port.Device.MaxQPWR))
	if t.cq, err = t.port.Context.CreateCQ(min(recvs+(dir.Size()+1)*int(t.depth), t.port.Device.MaxCQE), t.ch); err != nil {
		return t, err
	}
	if t.srq, err = t.pd.CreateSRQ(recvs); err != nil {
		return t, err
	}
	if t.recvs, err = t.newSlab(recvs, bufferBytes, "receive buffers"); err != nil {
		return t, err
	}
	if t.bounce, err = t.newSlab(sendBuffers+1, bufferBytes, "send buffers"); err != nil {
		return t, err
	}
	t.stage = t.bounce.At(t.bounce.Take())
	if t.cells, err = t.newSlab(cells, cellBytes, "cells"); err != nil {
		return t, err
	}
	t.repost = make([]ibverbs.RecvWR, 0, recvs)
	for i := t.recvs.Take(); i >= 0; i = t.recvs.Take() {
		t.giveBack(i)
	}
	if _, err = t.srq.PostRecv(t.repost); err != nil {
		return t, err
	}
	t.repost = t.repost[:0]
	t.maxMsg = int(min(t.port.Attr.MaxMsg, 1<<30)) &^ 4095
	if t.maxMsg == 0 {
		t.maxMsg = max(int(t.port.Attr.MaxMsg), 1)
	}
	t.timers.RDAtomic, t.timers.DestRDAto = t.port.Depth(), t.port.Depth()
	t.caps = fabric.Caps{
		MaxShort: bufferBytes - fabric.HeaderBytes, Piece: bufferBytes - fabric.HeaderBytes, MaxRuns: min(maxRuns, int(t.depth)/2),
		OneSided: true, Keys: true, Atomics: t.port.Device.AtomicCap != ibverbs.AtomicNone, Ordered: true,
	}
	return t, dir.Publish([]byte("verbs " + t.port.String()))
}

// Name implements fabric.Transport.
func (t *Transport) Name() string { return "verbs" }

// Caps implements fabric.Transport.
func (t *Transport) Caps() fabric.Caps { return t.caps }

// Describe implements fabric.Describer.
func (t *Transport) Describe(peer int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.port.String()
	if peer < 0 || peer >= len(t.eps) || t.eps[peer] == nil || t.eps[peer].qp == nil {
		return text
	}
	e := t.eps[peer]
	text += fmt.Sprintf("; queue pair %d", e.qp.Num())
	if e.peerQP != 0 {
		text += fmt.Sprintf(" to %d at %s", e.peerQP, device.GIDText(e.peerGID))
	}
	if e.err != nil {
		return text + ": " + e.err.Error()
	}
	if state, err := e.qp.State(); err == nil {
		text += ", " + state.String()
	}
	return text
}

// FD implements fabric.Sleeper.
func (t *Transport) FD() int { return t.ch.FD() }

// Arm implements fabric.Sleeper.
func (t *Transport) Arm() error {
	// An event that came too late for the Poll that took its completion would wake the
	// sleeper for nothing, again and again: Poll reads events only after completions.
	for {
		got, err := t.ch.Event()
		if err != nil {
			return err
		}
		if !got {
			break
		}
	}
	t.armed, t.tries = true, 0
	return t.cq.ReqNotify(false)
}

// Close implements fabric.Transport. It waits until sent messages have arrived, for
// closePatience.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	t.mu.Unlock()
	for end := time.Now().Add(closePatience); !t.drained() && time.Now().Before(end); {
		if t.poll(discard{}) == 0 {
			runtime.Gosched()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.eps {
		if e != nil && e.err == nil && e.peer != t.rank {
			e.mail(mailClosed, "it has closed the connection")
		}
	}
	return t.free()
}

// drained reports whether nothing is under way. If something is, it posts a follower, so
// that it completes.
func (t *Transport) drained() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.eps {
		if e != nil && e.usable() == nil && (e.head != e.tail || e.long.active) {
			e.follow()
			return false
		}
	}
	return true
}

// free gives everything back, in the order that the library demands. It also works after
// errors, and if only a part was made.
func (t *Transport) free() error {
	var errs []error
	closeOf := func(c interface{ Close() error }) { errs = append(errs, c.Close()) }
	for _, e := range t.eps {
		if e == nil {
			continue
		}
		if e.qp != nil {
			closeOf(e.qp)
		}
		if e.twin != nil {
			closeOf(e.twin)
		}
		e.release()
	}
	for _, mr := range append(t.over, t.unused...) {
		closeOf(mr)
	}
	if t.srq != nil {
		closeOf(t.srq)
	}
	if t.cq != nil {
		for got := true; got; {
			got, _ = t.ch.Event()
		}
		closeOf(t.cq)
	}
	if t.ch != nil {
		closeOf(t.ch)
	}
	for _, r := range t.regions.All() {
		r.closed = true
		closeOf(r.mr)
	}
	for r := range t.unpublished {
		r.closed = true
		closeOf(r.mr)
	}
	t.regions, t.unpublished = device.Table[*region]{}, nil
	errs = append(errs, t.recvs.Close(), t.bounce.Close(), t.cells.Close())
	if t.pd != nil {
		closeOf(t.pd)
	}
	if t.port != nil {
		closeOf(t.port.Context)
	}
	return errors.Join(errs...)
}

// discard is the sink of a transport that closes.
type discard struct{}

func (discard) Deliver(int, *fabric.Header, []byte)           {}
func (discard) Place(int, *fabric.Header, int) unsafe.Pointer { return nil }
func (discard) Completed(uint64, error)                       {}
func (discard) Broken(int, error)                             {}
