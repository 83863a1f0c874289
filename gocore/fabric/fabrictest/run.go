package fabrictest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
)

// Run checks transports against the contract of package fabric. create is
// called once for each rank of each world, in the order of ranks, from one
// goroutine; all worlds are closed when it returns.
func Run(t *testing.T, create Make) { RunExcept(t, create, nil) }

// RunExcept is Run without the tests named in except, which maps each to the reason.
func RunExcept(t *testing.T, create Make, except map[string]string) {
	t.Run("descriptors", func(t *testing.T) { testDescriptors(t, create) })
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			each := func(name string, f func(t *testing.T, w *World)) {
				t.Run(name, func(t *testing.T) {
					if why := except[name]; why != "" {
						t.Skip(why)
					}
					f(t, NewWorld(t, n, create))
				})
			}
			each("caps", testCaps)
			each("messages", testMessages)
			each("threads", testThreads)
			each("replies", testReplies)
			each("back-pressure", testBackPressure)
			each("placement", testPlacement)
			each("put and get", testPutGet)
			each("runs", testRuns)
			each("many", testMany)
			each("refused", testRefused)
			each("wrong key", testWrongKey)
			each("fetch-add", testFetchAdd)
			each("compare-and-swap", testCompareSwap)
			each("sleep", testSleep)
			each("sleep with queues", testSleepQueues)
			each("sleep until complete", testSleepComplete)
			each("closed peer", testClosedPeer)
		})
	}
}

func testCaps(t *testing.T, w *World) {
	n := len(w.Ranks)
	for _, r := range w.Ranks {
		c := r.Caps()
		assert.NotEmpty(t, r.Name())
		assert.GreaterOrEqual(t, c.MaxShort, 256)
		assert.Positive(t, c.Piece)
		assert.LessOrEqual(t, c.Piece, c.MaxShort)
		assert.LessOrEqual(t, c.Ahead, c.MaxShort)
		if c.OneSided {
			assert.Positive(t, c.MaxRuns)
		}
		for _, peer := range []int{-1, n, 1 << 30} {
			_, err := r.Connect(peer)
			assert.ErrorContains(t, err, fmt.Sprint(peer), "there is no such rank")
		}
		if !c.Keys {
			_, err := r.Connect(r.ID)
			assert.Error(t, err, "it has no endpoint to itself")
		}
	}
}

// meet makes all ranks exchange a message, so that they are connected.
func meet(t *testing.T, w *World) {
	t.Helper()
	n := len(w.Ranks)
	met := make(chan [2]int, n*n)
	for _, r := range w.Ranks {
		r.StopPolling(func() {
			r.OnDeliver = func(src int, _ *fabric.Header, _ []byte) { met <- [2]int{src, r.ID} }
		})
	}
	for _, r := range w.Ranks {
		for peer := range w.Ranks {
			if peer != r.ID {
				require.NoError(t, r.Send(peer, &fabric.Header{Kind: fabric.KindEager}, nil))
			}
		}
	}
	seen := map[[2]int]int{}
	for len(seen) < n*(n-1) {
		select {
		case pair := <-met:
			seen[pair]++
			require.Equal(t, 1, seen[pair], "a message from rank %d to rank %d came twice", pair[0], pair[1])
		case <-time.After(Patience):
			t.Fatalf("only these have met: %v", seen)
		}
	}
	for _, r := range w.Ranks {
		r.StopPolling(func() { r.OnDeliver = nil })
	}
}

func descriptors(t *testing.T) []string {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	var open []string
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open = append(open, e.Name()+" "+to)
		}
	}
	return open
}

// Closing frees all descriptors, whether ranks have communicated or not.
func testDescriptors(t *testing.T, create Make) {
	use := func(talk bool) {
		w := NewWorld(t, 2, create)
		if talk {
			meet(t, w)
		}
		w.Close()
	}
	use(true) // libraries open some and never close them
	before := descriptors(t)
	for range 3 {
		use(true)
		use(false)
	}
	after := descriptors(t)
	assert.LessOrEqual(t, len(after), len(before), "open before: %q, after: %q", before, after) // an earlier test may have left some that are closed now
}

// When a rank closes, each other rank that uses it gets Broken once, and the
// other ranks can still communicate.
func testClosedPeer(t *testing.T, w *World) {
	if w.Ranks[0].Caps().Mappable {
		t.Skip("the end of a process on this host is noticed by the engine")
	}
	meet(t, w)
	last := w.Ranks[len(w.Ranks)-1]
	last.Close()
	for _, r := range w.Ranks[:last.ID] {
		ep := r.Endpoint(last.ID)
		Until(t, "the end of the peer is noticed", func() bool {
			err := ep.Send(&fabric.Header{Kind: fabric.KindEager}, nil)
			return len(r.Broke(last.ID)) > 0 || err != nil && err != fabric.ErrAgain
		})
		Until(t, "Broken", func() bool { return len(r.Broke(last.ID)) > 0 })
		err := ep.Send(&fabric.Header{Kind: fabric.KindEager}, nil)
		assert.Error(t, err)
		assert.NotErrorIs(t, err, fabric.ErrAgain, "nothing will ever help")
	}
	if len(w.Ranks) == 3 {
		got := make(chan int, 1)
		w.Ranks[1].StopPolling(func() { w.Ranks[1].OnDeliver = func(src int, _ *fabric.Header, _ []byte) { got <- src } })
		require.NoError(t, w.Ranks[0].Send(1, &fabric.Header{Kind: fabric.KindEager}, nil))
		select {
		case src := <-got:
			assert.Zero(t, src)
		case <-time.After(Patience):
			t.Fatal("the others can't talk to each other any more")
		}
		assert.Empty(t, w.Ranks[0].Broke(1))
	}
	for _, r := range w.Ranks[:last.ID] {
		assert.Len(t, r.Broke(last.ID), 1, "it is told once: %v", r.Broke(last.ID))
	}
}
