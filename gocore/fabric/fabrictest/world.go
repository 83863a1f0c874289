package fabrictest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
)

// Patience limits every wait: a test fails when an expected event takes longer.
const Patience = 60 * time.Second

// Make makes the transport of the rank that owns dir.
type Make func(dir fabric.Directory) (fabric.Transport, error)

// World is a job of ranks in this process.
type World struct {
	t     testing.TB
	Ranks []*Rank
}

// NewWorld makes the transports of n ranks, starts a goroutine for each that
// polls it, and closes them when the test ends.
func NewWorld(t testing.TB, n int, create Make) *World {
	t.Helper()
	w := &World{t: t}
	t.Cleanup(w.Close)
	for _, dir := range Directories(n) {
		tr, err := create(dir)
		require.NoError(t, err)
		r := &Rank{Transport: tr, ID: dir.rank, t: t, eps: make([]fabric.Endpoint, n), completed: map[uint64][]error{}, broken: map[int][]error{}}
		w.Ranks = append(w.Ranks, r)
	}
	for _, r := range w.Ranks {
		r.Resume()
	}
	return w
}

// Close closes the transports that are not closed yet.
func (w *World) Close() {
	for _, r := range w.Ranks {
		r.Close()
	}
}

// Rank is one transport and the Sink that records what it reports.
type Rank struct {
	fabric.Transport
	ID int

	// The test's handlers of messages; nil: messages are dropped. They are set
	// in StopPolling, or before messages arrive, and run on the goroutine that polls.
	OnDeliver func(src int, h *fabric.Header, payload []byte)
	OnPlace   func(src int, h *fabric.Header, n int) unsafe.Pointer

	t      testing.TB
	poll   sync.Mutex // held during a poll
	stop   chan struct{}
	ended  chan struct{}
	closed bool
	polls  atomic.Uint64

	mu        sync.Mutex
	eps       []fabric.Endpoint
	completed map[uint64][]error
	broken    map[int][]error
}

var _ fabric.Sink = (*Rank)(nil)

// Poll polls once. It returns the result of Transport.Poll.
func (r *Rank) Poll() int {
	r.poll.Lock()
	defer r.poll.Unlock()
	r.polls.Add(1)
	return r.Transport.Poll(r)
}

// StopPolling runs f while no goroutine polls.
func (r *Rank) StopPolling(f func()) {
	r.poll.Lock()
	defer r.poll.Unlock()
	f()
}

// Resume starts a goroutine that polls until Pause.
func (r *Rank) Resume() {
	stop, ended := make(chan struct{}), make(chan struct{})
	r.stop, r.ended = stop, ended
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if r.Poll() == 0 {
				runtime.Gosched()
			}
		}
	}()
}

// Pause ends the goroutine that polls, until Resume.
func (r *Rank) Pause() {
	if r.stop != nil {
		close(r.stop)
		<-r.ended
		r.stop = nil
	}
}

// Close pauses and closes the transport. Further calls have no effect.
func (r *Rank) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.Pause()
	if err := r.Transport.Close(); err != nil {
		r.t.Errorf("close rank %d: %v", r.ID, err)
	}
}

// Endpoint returns the endpoint to peer, which it connects on first use.
func (r *Rank) Endpoint(peer int) fabric.Endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.eps[peer] == nil {
		ep, err := r.Connect(peer)
		if err != nil {
			panic(fmt.Sprintf("rank %d connects to rank %d: %v", r.ID, peer, err))
		}
		r.eps[peer] = ep
	}
	return r.eps[peer]
}

// Send sends a message as soon as there is room. Another goroutine must poll.
func (r *Rank) Send(peer int, h *fabric.Header, payload []byte) error {
	ep := r.Endpoint(peer)
	for end := time.Now().Add(Patience); ; {
		before := r.polls.Load()
		err := ep.Send(h, payload)
		if !errors.Is(err, fabric.ErrAgain) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("rank %d has no room to rank %d for %v", r.ID, peer, Patience)
		}
		for r.polls.Load() == before && time.Now().Before(end) {
			runtime.Gosched()
		}
	}
}

// Do starts an operation as Start does and waits until it is complete. No other
// operation in flight may have its cookie.
func (r *Rank) Do(cookie uint64, start func() (bool, error)) error {
	done, err := r.Start(start)
	if done || err != nil {
		return err
	}
	return r.Wait(cookie)
}

// Start starts an operation; it repeats the attempt while there is no room.
func (r *Rank) Start(start func() (bool, error)) (done bool, err error) {
	for end := time.Now().Add(Patience); ; {
		done, err := start()
		if !errors.Is(err, fabric.ErrAgain) {
			return done, err
		}
		if done {
			return done, errors.New("an operation is done and ErrAgain at once")
		}
		if time.Now().After(end) {
			return false, fmt.Errorf("rank %d had no room for an operation for %v", r.ID, Patience)
		}
		runtime.Gosched()
	}
}

// Wait waits until an operation with this cookie is complete and removes its
// completion.
func (r *Rank) Wait(cookie uint64) error {
	for end := time.Now().Add(Patience); time.Now().Before(end); runtime.Gosched() {
		r.mu.Lock()
		if list := r.completed[cookie]; len(list) > 0 {
			if r.completed[cookie] = list[1:]; len(list) == 1 {
				delete(r.completed, cookie)
			}
			r.mu.Unlock()
			return list[0]
		}
		r.mu.Unlock()
	}
	return fmt.Errorf("operation %#x of rank %d did not complete in %v", cookie, r.ID, Patience)
}

// Left returns the cookies of completions that Wait has not taken.
func (r *Rank) Left() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []uint64
	for cookie := range r.completed {
		left = append(left, cookie)
	}
	return left
}

// Broke returns the errors that Broken was called with for peer.
func (r *Rank) Broke(peer int) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.broken[peer]...)
}

// Deliver implements fabric.Sink.
func (r *Rank) Deliver(src int, h *fabric.Header, payload []byte) {
	if r.OnDeliver != nil {
		r.OnDeliver(src, h, payload)
	}
}

// Place implements fabric.Sink.
func (r *Rank) Place(src int, h *fabric.Header, n int) unsafe.Pointer {
	if r.OnPlace != nil {
		return r.OnPlace(src, h, n)
	}
	return nil
}

// Completed implements fabric.Sink.
func (r *Rank) Completed(cookie uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.completed[cookie] = append(r.completed[cookie], err)
}

// Broken implements fabric.Sink.
func (r *Rank) Broken(peer int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken[peer] = append(r.broken[peer], err)
}

// Until waits until holds returns true, and fails the test after Patience.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", Patience, what)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// Memory returns n bytes of foreign (not Go's) memory, mapped until the test ends.
func Memory(t testing.TB, n int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, max(n, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return mem[:n]
}

// Pointer returns the address of mem.
func Pointer(mem []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(mem)) }

// Fill writes a pattern that depends on seed. It writes words: single bytes are
// slow under the race detector.
func Fill(mem []byte, seed uint64) {
	x := start(seed)
	for ; len(mem) >= 8; mem = mem[8:] {
		x = step(x)
		binary.LittleEndian.PutUint64(mem, x)
	}
	x = step(x)
	for i := range mem {
		mem[i] = byte(x >> (i * 8))
	}
}

// Check returns where mem differs from Fill's pattern, "" if nowhere.
func Check(mem []byte, seed uint64) string {
	x := start(seed)
	for rest := mem; len(rest) > 0; rest = rest[min(8, len(rest)):] {
		if x = step(x); len(rest) >= 8 && binary.LittleEndian.Uint64(rest) == x {
			continue
		}
		for i, b := range rest[:min(8, len(rest))] {
			if want := byte(x >> (i * 8)); b != want {
				return fmt.Sprintf("byte %d of %d is %#x, not %#x", len(mem)-len(rest)+i, len(mem), b, want)
			}
		}
	}
	return ""
}

func start(seed uint64) uint64 { return seed*0x9e3779b97f4a7c15 + 0x1234567 }

func step(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7
	return x ^ x<<17
}
