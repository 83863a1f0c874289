package agent

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/job"
)

// guarded are the options of the agents of jobs.
var guarded = Options{TCP: tcp.Options{Guard: tcp.Authenticated}}

// nodes makes the segments of a job whose ranks this process claims. nodes has the number
// of the node of each rank.
func nodes(t *testing.T, nodes ...int) []*job.Segment {
	t.Helper()
	segs, err := job.CreateNodes(nodes)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, seg := range segs {
			seg.Close()
		}
	})
	for r, node := range nodes {
		_, ok := segs[node].Claim(r)
		require.True(t, ok)
	}
	return segs
}

// first returns the first rank of the node of a segment.
func first(seg *job.Segment) int { return seg.RanksOf(seg.Node())[0] }

// meet starts the agents of all segments. The test ends them if they have not left.
func meet(t *testing.T, segs ...*job.Segment) (agents []*Agent) {
	t.Helper()
	cards := map[int][]byte{}
	for _, seg := range segs {
		a, err := New(seg, first(seg), guarded)
		require.NoError(t, err)
		agents = append(agents, a)
		cards[first(seg)] = a.Card()
	}
	for _, a := range agents {
		require.NoError(t, a.Start(cards))
	}
	t.Cleanup(func() { leave(agents...) })
	return agents
}

// leave has agents leave at once.
func leave(agents ...*Agent) {
	var all sync.WaitGroup
	for _, a := range agents {
		all.Go(a.Leave)
	}
	all.Wait()
}

// comes waits until something is true.
func comes(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not come: %s", what)
		}
	}
}

func state(seg *job.Segment, r int) uint32 { return atomic.LoadUint32(&seg.Ranks[r].State) }
func ended(seg *job.Segment, r int) bool   { return atomic.LoadUint32(&seg.Ranks[r].Ended) != 0 }
func flags(seg *job.Segment, r int) uint32 { return atomic.LoadUint32(&seg.Ranks[r].Flags) }

// layouts are the numbers of the nodes of the ranks.
var layouts = [][]int{{0, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 2}, {2, 1, 0, 1, 2}}

func onLayouts(t *testing.T, f func(t *testing.T, segs []*job.Segment)) {
	for _, layout := range layouts {
		t.Run(fmt.Sprint(layout), func(t *testing.T) { f(t, nodes(t, layout...)) })
	}
}

func TestStatus(t *testing.T) {
	onLayouts(t, func(t *testing.T, segs []*job.Segment) {
		meet(t, segs...)
		for r := range segs[0].Ranks {
			home := segs[segs[0].NodeOf(r)]
			home.SetState(r, job.StateReady)
			atomic.StoreUint32(&home.Ranks[r].Gen, uint32(r)+7)
			home.RingAgent()
			for _, seg := range segs {
				comes(t, fmt.Sprintf("rank %d on node %d", r, seg.Node()), func() bool { return seg.Status(r) == home.Status(r) })
			}
			home.Exited(r, 3<<8)
			for _, seg := range segs {
				comes(t, fmt.Sprintf("the end of rank %d on node %d", r, seg.Node()), func() bool { return seg.Status(r) == home.Status(r) })
				assert.True(t, ended(seg, r))
				assert.Zero(t, flags(seg, r), "its node has not left")
			}
		}
	})
}

// A node learns its address from the first link.
func TestAddress(t *testing.T) {
	onLayouts(t, func(t *testing.T, segs []*job.Segment) {
		for _, seg := range segs {
			assert.False(t, seg.Directory(first(seg)).Address(time.Now()).IsValid(), "before the agents meet")
		}
		meet(t, segs...)
		for _, seg := range segs {
			found := seg.Directory(first(seg)).Address(time.Now().Add(20 * time.Second))
			assert.Equal(t, "127.0.0.1", found.String())
		}
	})
	for text, want := range map[string]string{
		"10.0.0.1:33531 to 10.0.0.2:53162":               "10.0.0.1",
		"[::ffff:10.0.0.1]:33531 to 10.0.0.2:53162":      "10.0.0.1",
		"[fd00::2]:33531 to [fd00::3]:53162":             "fd00::2",
		"listens at [10.0.0.1:5], not connected":         "",
		"10.0.0.1:5, not connected":                      "",
		"connect to rank 3 failed: nobody listens there": "",
		"": "",
	} {
		found, ok := localEnd(text)
		assert.Equal(t, want != "", ok, text)
		if ok {
			assert.Equal(t, want, found.String())
		}
	}
	ip := netip.MustParseAddr
	list := []netip.Addr{ip("fe80::1"), ip("fd00::1"), ip("10.0.0.1"), ip("10.0.0.9")}
	for here, want := range map[string]string{"10.0.0.9": "10.0.0.9", "192.168.0.1": "10.0.0.1", "fd01::1": "fd00::1"} {
		assert.Equal(t, ip(want), onInterface(ip(here), list))
		assert.Equal(t, ip(here), onInterface(ip(here), nil))
	}
	assert.Contains(t, addressesOf("lo"), ip("127.0.0.1"))
	assert.Empty(t, addressesOf(""))
}

func TestCards(t *testing.T) {
	onLayouts(t, func(t *testing.T, segs []*job.Segment) {
		early := segs[0].RanksOf(0)[0]
		require.NoError(t, segs[0].Directory(early).Publish([]byte("early"))) // before the agents meet
		meet(t, segs...)
		for r := range segs[0].Ranks {
			want := "early"
			if r != early {
				want = fmt.Sprint("card ", r)
				require.NoError(t, segs[segs[0].NodeOf(r)].Directory(r).Publish([]byte(want)))
			}
			for _, seg := range segs {
				comes(t, fmt.Sprintf("card %d on node %d", r, seg.Node()), func() bool { return seg.Directory(first(seg)).Card(r) != nil })
				assert.Equal(t, want, string(seg.Directory(first(seg)).Card(r)))
			}
		}
	})
}

// TestMails sends mails between all pairs of ranks while every bell is rung. A mail takes the place
// of an earlier one that was not read, so a receiver sees numbers that grow, and the last one.
func TestMails(t *testing.T) {
	const many = 300
	onLayouts(t, func(t *testing.T, segs []*job.Segment) {
		meet(t, segs...)
		size := len(segs[0].Ranks)
		var over atomic.Bool
		var bells, ranks sync.WaitGroup
		for _, seg := range segs {
			bells.Go(func() {
				for !over.Load() {
					seg.RingAll()
					time.Sleep(50 * time.Microsecond)
				}
			})
		}
		for r := range size {
			dir := segs[segs[0].NodeOf(r)].Directory(r)
			ranks.Go(func() {
				for n := range uint32(many) {
					for to := range size {
						if !assert.NoError(t, dir.Mail(to, binary.LittleEndian.AppendUint32([]byte{byte(r)}, n))) {
							return
						}
					}
					time.Sleep(10 * time.Microsecond)
				}
			})
			ranks.Go(func() {
				reader := segs[segs[0].NodeOf(r)].Directory(r)
				seen := make([]int, size)
				for i := range seen {
					seen[i] = -1
				}
				end := time.Now().Add(20 * time.Second)
				for done := 0; done < size && time.Now().Before(end); time.Sleep(20 * time.Microsecond) {
					for from := range size {
						msg := reader.Mailed(from)
						if msg == nil {
							continue
						}
						n := int(binary.LittleEndian.Uint32(msg[1:]))
						assert.Equal(t, byte(from), msg[0])
						assert.Greater(t, n, seen[from])
						if seen[from] = n; n == many-1 {
							done++
						}
					}
				}
				for from, n := range seen {
					assert.Equal(t, many-1, n, "the last mail from rank %d to rank %d", from, r)
				}
			})
		}
		ranks.Wait()
		over.Store(true)
		bells.Wait()
	})
}

func TestAbort(t *testing.T) {
	onLayouts(t, func(t *testing.T, segs []*job.Segment) {
		meet(t, segs...)
		last := len(segs) - 1
		assert.True(t, segs[last].Abort(first(segs[last]), -3))
		for _, seg := range segs {
			comes(t, "the abort", func() bool { _, _, yes := seg.Aborted(); return yes })
			rank, code, _ := seg.Aborted()
			assert.Equal(t, first(segs[last]), rank)
			assert.Equal(t, -3, code)
		}
	})
}

// TestAbortsAtOnce aborts on each node: every node keeps the one that it learns of first.
func TestAbortsAtOnce(t *testing.T) {
	segs := nodes(t, 0, 1, 2)
	agents := meet(t, segs...)
	for r, seg := range segs {
		seg.Abort(r, r+1)
	}
	for _, seg := range segs {
		rank, code, yes := seg.Aborted()
		assert.True(t, yes)
		assert.Equal(t, rank+1, code)
	}
	leave(agents...)
}

// TestLeaveWhileOtherSends: the one that leaves has told everything, the other one loses its ranks.
func TestLeaveWhileOtherSends(t *testing.T) {
	for k := range 10 {
		unfinished := job.StateFinalized
		if k == 0 { // costs heirTime
			unfinished = job.StateReady
		}
		segs := nodes(t, 0, 0, 1)
		agents := meet(t, segs...)
		var over atomic.Bool
		var sender sync.WaitGroup
		sender.Go(func() {
			dir := segs[1].Directory(2)
			for n := uint32(0); !over.Load(); n++ {
				atomic.StoreUint32(&segs[1].Ranks[2].Gen, n)
				segs[1].RingAgent()
				_ = dir.Mail(0, []byte("mail"))
			}
		})
		reader := segs[0].Directory(0)
		comes(t, "a mail", func() bool { return reader.Mailed(2) != nil })
		require.NoError(t, segs[0].Directory(1).Mail(2, []byte("the last mail")))
		segs[0].SetState(0, job.StateFinalized)
		segs[0].SetState(1, unfinished)
		agents[0].Leave()

		comes(t, "the end of node 0", func() bool { return ended(segs[1], 0) && ended(segs[1], 1) })
		assert.Equal(t, job.NodeLeft, flags(segs[1], 0), "it had finalized")
		assert.Equal(t, unfinished == job.StateReady, flags(segs[1], 1)&job.Unreachable != 0)
		assert.Equal(t, unfinished, state(segs[1], 1))
		assert.Equal(t, "the last mail", string(segs[1].Directory(2).Mailed(1)))
		over.Store(true)
		sender.Wait()
		leave(agents...)
	}
}

// TestAllLeaveAtOnce: none is lost for one that stays, since it is told that the others' ranks
// have finalized.
func TestAllLeaveAtOnce(t *testing.T) {
	for range 10 {
		onLayouts(t, func(t *testing.T, segs []*job.Segment) {
			agents := meet(t, segs...)
			for r := range segs[0].Ranks {
				segs[segs[0].NodeOf(r)].SetState(r, job.StateFinalized)
			}
			leave(agents[1:]...)
			for _, a := range agents[1:] {
				assert.True(t, a.deadline.After(time.Now()), "an agent gave up waiting for the answer of another one")
			}
			seg := segs[0]
			for r := range seg.Ranks {
				comes(t, fmt.Sprintf("the end of rank %d", r), func() bool { return seg.Local(r) || ended(seg, r) })
				assert.Equal(t, job.StateFinalized, state(seg, r))
				assert.Zero(t, flags(seg, r)&job.Unreachable, "rank %d", r)
			}
		})
	}
}

// TestWrongSecret: agents of different jobs have no link, and tell each other nothing.
func TestWrongSecret(t *testing.T) {
	segs := nodes(t, 0, 1)
	segs[1].Head.Secret[0]++
	a, err := New(segs[0], 0, guarded)
	require.NoError(t, err)
	b, err := New(segs[1], 1, guarded)
	require.NoError(t, err)
	cards := map[int][]byte{0: a.Card(), 1: b.Card()}
	require.NoError(t, a.Start(cards))
	require.NoError(t, b.Start(cards))
	segs[0].SetState(0, job.StateReady)
	segs[1].Abort(1, 5)
	time.Sleep(300 * time.Millisecond)
	assert.Zero(t, state(segs[1], 0))
	_, _, yes := segs[0].Aborted()
	assert.False(t, yes)
	leave(a, b)
}

// TestOneTraceback: of ranks that fail in the same place at the same time one is granted the traceback, and
// so are all that fail elsewhere.
func TestOneTraceback(t *testing.T) {
	for range 10 {
		onLayouts(t, func(t *testing.T, segs []*job.Segment) {
			meet(t, segs...)
			var granted atomic.Int32
			var ranks sync.WaitGroup
			for r := range segs[0].Ranks {
				ranks.Go(func() {
					if segs[segs[0].NodeOf(r)].ClaimError(77) {
						granted.Add(1)
					}
				})
			}
			ranks.Wait()
			assert.Equal(t, 1, int(granted.Load()))
			for _, seg := range segs {
				assert.False(t, seg.ClaimError(77), "later")
				assert.True(t, seg.ClaimError(78), "of another one")
			}
		})
	}
}

// TestCrossingClaimsNeedNoAnswer: the node that grants a claim of the same place to a node with a lower number does not wait for that
// node's answer to its own, which may never come.
func TestCrossingClaimsNeedNoAnswer(t *testing.T) {
	segs := nodes(t, 0, 1)
	for node, seg := range segs {
		granted := make(chan bool, 1)
		go func() { granted <- seg.ClaimError(77) }()
		comes(t, "the claim", func() bool { _, _, yes := seg.ClaimedError(); return yes })
		if node == 0 {
			assert.Equal(t, job.ClaimDenied, seg.ClaimedElsewhere(77, 1))
			seg.JudgeError(job.ClaimGranted)
			assert.True(t, <-granted)
			continue
		}
		assert.Equal(t, job.ClaimGranted, seg.ClaimedElsewhere(78, 0), "of another place")
		assert.Equal(t, job.ClaimGranted, seg.ClaimedElsewhere(77, 0))
		assert.False(t, <-granted)
	}
}

// TestTracebackAfterNodeHasLeft: nobody is asked any more, so it is granted.
func TestTracebackAfterNodeHasLeft(t *testing.T) {
	segs := nodes(t, 0, 1)
	agents := meet(t, segs...)
	agents[1].Leave()
	comes(t, "the end of node 1", func() bool { return ended(segs[0], 1) })
	assert.True(t, segs[0].ClaimError(77))
	assert.True(t, segs[1].ClaimError(77), "its agent has left")
}
