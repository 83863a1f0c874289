// Package self is the transport of a rank's messages to itself. It is the
// smallest complete transport and the template for the others: a queue under a
// mutex for messages, plain copies for one-sided operations.
//
// It may import fabric.
package self

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/fabric"
)

// Transport queues messages to the own rank until Poll delivers them.
type Transport struct {
	rank    int
	ring    func()       // wakes the threads of this rank that sleep in a wait
	waiting atomic.Int32 // 1: queue is not empty; lets Poll return without mu
	mu      sync.Mutex
	queue   []packet
	spare   []packet // the array that the next queue uses
}

type packet struct {
	header  fabric.Header
	payload []byte
}

// New makes the transport of world rank rank to itself. A message calls ring once Poll can deliver it, since another
// thread of the process may wait for it.
func New(rank int, ring func()) *Transport { return &Transport{rank: rank, ring: ring} }

// Name implements fabric.Transport.
func (t *Transport) Name() string { return "self" }

// Caps implements fabric.Transport.
func (t *Transport) Caps() fabric.Caps {
	return fabric.Caps{MaxShort: 64 << 10, Piece: 32 << 10, MaxRuns: 1024, OneSided: true, Mappable: true, Synchronous: true, Ordered: true}
}

// Connect implements fabric.Transport.
func (t *Transport) Connect(int) (fabric.Endpoint, error) { return endpoint{t}, nil }

// Register implements fabric.Transport; own memory needs no key.
func (t *Transport) Register(p unsafe.Pointer, _ int) (fabric.Region, error) { return region{p}, nil }

// Poll implements fabric.Transport.
func (t *Transport) Poll(sink fabric.Sink) int {
	if t.waiting.Load() == 0 {
		return 0
	}
	t.mu.Lock()
	got := t.queue
	t.queue, t.spare = t.spare[:0], nil
	t.waiting.Store(0)
	t.mu.Unlock()
	for i := range got {
		sink.Deliver(t.rank, &got[i].header, got[i].payload)
	}
	n := len(got)
	clear(got)
	t.mu.Lock()
	t.spare = got[:0]
	t.mu.Unlock()
	return n
}

// Close implements fabric.Transport.
func (t *Transport) Close() error { return nil }

type region struct{ p unsafe.Pointer }

func (r region) Key() fabric.RemoteKey { return fabric.RemoteKey{Addr: uint64(uintptr(r.p))} }
func (r region) Close() error          { return nil }

type endpoint struct{ t *Transport }

func (e endpoint) Send(h *fabric.Header, payload []byte) error {
	p := packet{header: *h}
	if len(payload) > 0 {
		p.payload = append([]byte(nil), payload...)
	}
	e.t.mu.Lock()
	e.t.queue = append(e.t.queue, p)
	e.t.waiting.Store(1)
	e.t.mu.Unlock()
	e.t.ring()
	return nil
}

func (e endpoint) Put(local unsafe.Pointer, remote fabric.RemoteKey, n int, _ uint64) (bool, error) {
	fabric.Copy(fabric.Pointer(remote.Addr), local, n)
	return true, nil
}

func (e endpoint) Get(local unsafe.Pointer, remote fabric.RemoteKey, n int, _ uint64) (bool, error) {
	fabric.Copy(local, fabric.Pointer(remote.Addr), n)
	return true, nil
}

func (e endpoint) PutRuns(local unsafe.Pointer, _ uint64, runs []fabric.Run, _ uint64) (bool, error) {
	done := 0
	for _, r := range runs {
		fabric.Copy(fabric.Pointer(r.Addr), unsafe.Add(local, done), r.N)
		done += r.N
	}
	return true, nil
}

func (e endpoint) GetRuns(local unsafe.Pointer, _ uint64, runs []fabric.Run, _ uint64) (bool, error) {
	done := 0
	for _, r := range runs {
		fabric.Copy(unsafe.Add(local, done), fabric.Pointer(r.Addr), r.N)
		done += r.N
	}
	return true, nil
}

func (e endpoint) FetchAdd(unsafe.Pointer, fabric.RemoteKey, uint64, uint64) (bool, error) {
	return false, fabric.ErrUnsupported
}

func (e endpoint) CompareSwap(unsafe.Pointer, fabric.RemoteKey, uint64, uint64, uint64) (bool, error) {
	return false, fabric.ErrUnsupported
}
