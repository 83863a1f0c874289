// Package ranktest runs the ranks of a job as goroutines of one test process, each
// with its own engine on one real job segment, for tests of the layers from the engine
// up: rings, doorbells and kernel copies work as between processes.
//
// It may import engine, fabric, job and p2p; only tests import it.
package ranktest

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/engine"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// Rank is one rank of a test's job.
type Rank struct {
	T      *testing.T
	Rank   int
	Size   int
	Engine *engine.Engine
	P2P    *p2p.P2P
	World  []int
	Net    *Net // nil: the ranks share memory
}

// End makes the process of a rank appear ended to the others.
func (r *Rank) End(rank int) {
	if r.Net != nil {
		r.Net.End(rank)
	}
	atomic.StoreUint32(&r.Engine.Job.Ranks[rank].Exit, 1)
}

// limit is the longest time that a job of a test may take.
const limit = 60 * time.Second

// Run calls f as each of n ranks at once. A job that does not end within a
// minute fails with what every rank waits for.
func Run(t *testing.T, n int, oneCopy bool, f func(r *Rank)) {
	t.Helper()
	run(t, n, nil, func(int) engine.Options { return engine.Options{OneCopy: oneCopy, Move: true} }, f)
}

// RunNet is Run with ranks that reach each other by a Net, see NewNet.
func RunNet(t *testing.T, n int, caps fabric.Caps, f func(r *Rank)) {
	t.Helper()
	net := NewNet(n, caps)
	run(t, n, net, func(rank int) engine.Options { return engine.Options{Net: net.nodes[rank], NetOnly: true} }, f)
}

// RunSleeping is RunNet with a network that has a descriptor to sleep on.
func RunSleeping(t *testing.T, n int, caps fabric.Caps, f func(r *Rank)) {
	t.Helper()
	net := NewNet(n, caps)
	for _, node := range net.nodes {
		var err error
		node.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		require.NoError(t, err)
		defer func() {
			net.mu.Lock()
			defer net.mu.Unlock()
			node.due = false
			_ = unix.Close(node.event)
		}()
	}
	run(t, n, net, func(rank int) engine.Options { return engine.Options{Net: sleeper{net.nodes[rank]}, NetOnly: true} }, f)
}

// Transports are the transports by which the ranks of a test reach each other.
var Transports = []Transport{
	{"copy", func(t *testing.T, n int, f func(r *Rank)) { t.Helper(); Run(t, n, true, f) }},
	{"ring", func(t *testing.T, n int, f func(r *Rank)) { t.Helper(); Run(t, n, false, f) }},
	{"net", func(t *testing.T, n int, f func(r *Rank)) { t.Helper(); RunNet(t, n, fabric.Caps{}, f) }},
	{"rdma", func(t *testing.T, n int, f func(r *Rank)) {
		t.Helper()
		RunNet(t, n, fabric.Caps{OneSided: true, Keys: true, Atomics: true}, f)
	}},
}

// Transport runs f as each of n ranks, like Run.
type Transport struct {
	Name string
	Run  func(t *testing.T, n int, f func(r *Rank))
}

func run(t *testing.T, n int, net *Net, options func(rank int) engine.Options, f func(r *Rank)) {
	t.Helper()
	require.NoError(t, sys.PrepareRuntime())
	// Every rank has threads that poll and yield; in a job each has a process of its own
	// with its own Go processors.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4 + 3*n))
	seg, err := job.Create(n)
	require.NoError(t, err)
	world := make([]int, n)
	for i := range world {
		world[i] = i
	}
	ranks := make([]*Rank, n)
	for i := range n {
		_, ok := seg.Claim(i)
		require.True(t, ok)
		e := engine.New(seg, i, options(i))
		ranks[i] = &Rank{T: t, Rank: i, Size: n, Engine: e, P2P: p2p.New(e), World: world, Net: net}
		atomic.StoreUint32(&seg.Ranks[i].State, job.StateReady)
	}
	var all sync.WaitGroup
	for _, r := range ranks {
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("rank %d: %v\n%s", r.Rank, p, debug.Stack())
				}
			}()
			if err := r.Engine.Start(); err != nil {
				t.Errorf("rank %d: %v", r.Rank, err)
				return
			}
			f(r)
		}()
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
		var lines []string
		for i := range n {
			lines = append(lines, seg.Describe(i)...)
		}
		panic(fmt.Sprintf("%s: not done after %v:\n%s", t.Name(), limit, strings.Join(lines, "\n")))
	}
	for _, r := range ranks {
		r.Engine.Stop()
	}
	require.NoError(t, seg.Close())
}

// Until waits until done returns true. It panics with the error that ends the wait,
// which fails the test.
func (r *Rank) Until(done func() bool, check func() error) {
	why := &engine.Reason{Call: job.CallWait, Peer: -2, Tag: -1}
	for {
		switch err := r.Engine.Wait(why, done, check); err {
		case engine.ErrInterrupted:
		case nil:
			return
		default:
			panic(err)
		}
	}
}
