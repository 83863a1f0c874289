package shm

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// Transport is the transport between the ranks of one job segment.
type Transport struct {
	seg  *job.Segment
	rank int
	in   []ring // by sender; in[rank] is not used
	copy bool   // one-sided copies through the kernel are on
}

// New makes the transport of world rank rank. With oneCopy it has one-sided
// operations, which the kernel carries out; Refusal reports whether it does so
// for a peer.
func New(seg *job.Segment, rank int, oneCopy bool) *Transport {
	t := &Transport{seg: seg, rank: rank, in: make([]ring, len(seg.Ranks)), copy: oneCopy}
	for src := range t.in {
		t.in[src] = newRing(seg.Ring(src, rank))
	}
	return t
}

// Name implements fabric.Transport.
func (t *Transport) Name() string { return "shm" }

// Caps implements fabric.Transport.
func (t *Transport) Caps() fabric.Caps {
	return caps(int(t.seg.Head.RingBytes), t.copy)
}

// caps returns the capabilities of a transport with rings of this size.
func caps(ring int, copies bool) fabric.Caps {
	return fabric.Caps{MaxShort: maxPayload(ring), Piece: min(piece, maxPayload(ring)), MaxRuns: sys.MaxRuns, OneSided: copies, Mappable: true, Synchronous: true, Ordered: true}
}

// Refusal implements fabric.Explainer.
func (t *Transport) Refusal(peer int) string {
	return refusal(t.copy, &t.seg.Ranks[peer])
}

// refusal returns why the kernel does not copy from or to a peer, "" if it does.
func refusal(copies bool, peer *job.Rank) string {
	if !copies {
		return "GORMAPY_ONE_COPY=0"
	}
	pid := peer.PID()
	if pid == 0 {
		return "it has not initialised MPI yet"
	}
	return sys.CopyRefusal(pid)
}

// Connect implements fabric.Transport.
func (t *Transport) Connect(peer int) (fabric.Endpoint, error) {
	if peer < 0 || peer >= len(t.in) || peer == t.rank {
		return nil, fmt.Errorf("connect to rank %d: there are ranks 0 to %d, and this is rank %d", peer, len(t.in)-1, t.rank)
	}
	return &endpoint{copies: t.copy, peer: &t.seg.Ranks[peer], ring: newRing(t.seg.Ring(t.rank, peer))}, nil
}

// Register implements fabric.Transport. It has nothing to do: the kernel checks
// addresses itself.
func (t *Transport) Register(p unsafe.Pointer, _ int) (fabric.Region, error) { return region{p}, nil }

// pollBatch bounds the messages that Poll takes from one sender before it turns
// to the next, so that no sender starves.
const pollBatch = 16

// piece is small enough for several pieces to be in a ring at a time, and for
// one to stay in the cache between the sender's copy and the receiver's.
const piece = 32 << 10

// Poll implements fabric.Transport.
func (t *Transport) Poll(sink fabric.Sink) int {
	n := 0
	for src := range t.in {
		if src == t.rank {
			continue
		}
		r := &t.in[src]
		if *(*uint32)(r.at(r.pos)) == 0 { // the usual case, without a closure
			continue
		}
		n += r.deliver(func(h *fabric.Header, payload []byte) { sink.Deliver(src, h, payload) })
	}
	return n
}

// deliver passes messages to a function, up to pollBatch of them, and returns their number.
func (r *ring) deliver(to func(h *fabric.Header, payload []byte)) (n int) {
	for n < pollBatch && r.receive(to) {
		n++
	}
	return n
}

// Drained implements fabric.Drainer: the ring is empty.
func (t *Transport) Drained(peer int) bool { return t.in[peer].empty() }

// Close implements fabric.Transport. The segment belongs to the job.
func (t *Transport) Close() error { return nil }

type region struct{ p unsafe.Pointer }

func (r region) Key() fabric.RemoteKey { return fabric.RemoteKey{Addr: uint64(uintptr(r.p))} }
func (r region) Close() error          { return nil }

type endpoint struct {
	copies bool // one-sided copies through the kernel are on
	peer   *job.Rank
	mu     sync.Mutex
	ring   ring
}

// Send implements fabric.Endpoint.
func (e *endpoint) Send(h *fabric.Header, payload []byte) error {
	if !e.write(h, payload) {
		// The peer computes and takes no messages: wake its progress engine, which does.
		e.peer.RingProgress()
		return fabric.ErrAgain
	}
	e.peer.Ring()
	return nil
}

func (e *endpoint) write(h *fabric.Header, payload []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock() // also if the payload faults
	return e.ring.send(h, payload)
}

// Put implements fabric.Endpoint.
func (e *endpoint) Put(local unsafe.Pointer, remote fabric.RemoteKey, n int, _ uint64) (bool, error) {
	if err := e.refusal(); err != nil {
		return false, err
	}
	return e.copied(sys.WriteProcess(e.peer.PID(), local, remote.Addr, n))
}

// Get implements fabric.Endpoint.
func (e *endpoint) Get(local unsafe.Pointer, remote fabric.RemoteKey, n int, _ uint64) (bool, error) {
	if err := e.refusal(); err != nil {
		return false, err
	}
	return e.copied(sys.ReadProcess(e.peer.PID(), local, remote.Addr, n))
}

// PutRuns implements fabric.Endpoint.
func (e *endpoint) PutRuns(local unsafe.Pointer, _ uint64, runs []fabric.Run, _ uint64) (bool, error) {
	if err := e.refusal(); err != nil {
		return false, err
	}
	return e.copied(sys.WriteProcessRuns(e.peer.PID(), local, iovecs(runs)))
}

// GetRuns implements fabric.Endpoint.
func (e *endpoint) GetRuns(local unsafe.Pointer, _ uint64, runs []fabric.Run, _ uint64) (bool, error) {
	if err := e.refusal(); err != nil {
		return false, err
	}
	return e.copied(sys.ReadProcessRuns(e.peer.PID(), local, iovecs(runs)))
}

// refusal returns why the kernel is not asked to copy from or to the peer, nil if
// it may be. The kernel knows the peer by its process id, which may be another
// process's once the peer has ended. The launcher sets Ended before it reaps the
// peer and so frees the id; if another process reaps it, such as a shell around
// the peer, an engine sets Ended within a millisecond.
func (e *endpoint) refusal() error {
	if !e.copies {
		return fabric.ErrUnsupported
	}
	if atomic.LoadUint32(&e.peer.Ended) != 0 {
		return fabric.ErrPeerGone
	}
	return nil
}

// copied returns the result of a copy. Only if the peer has not ended meanwhile is
// it certain that the memory was the peer's.
func (e *endpoint) copied(err error) (bool, error) {
	if atomic.LoadUint32(&e.peer.Ended) != 0 || err != nil && errors.Is(err, unix.ESRCH) {
		return true, fabric.ErrPeerGone
	}
	return true, err
}

// iovecs returns runs as the kernel's array: a Run has the layout of a struct iovec.
func iovecs(runs []fabric.Run) []unix.RemoteIovec {
	return unsafe.Slice((*unix.RemoteIovec)(unsafe.Pointer(unsafe.SliceData(runs))), len(runs))
}

var _ = [1]byte{}[unsafe.Sizeof(fabric.Run{})-unsafe.Sizeof(unix.RemoteIovec{})]

// FetchAdd implements fabric.Endpoint. It is not supported: ranks of one host use
// the processor's atomics, on memory that all of them map.
func (e *endpoint) FetchAdd(unsafe.Pointer, fabric.RemoteKey, uint64, uint64) (bool, error) {
	return false, fabric.ErrUnsupported
}

// CompareSwap implements fabric.Endpoint, likewise.
func (e *endpoint) CompareSwap(unsafe.Pointer, fabric.RemoteKey, uint64, uint64, uint64) (bool, error) {
	return false, fabric.ErrUnsupported
}
