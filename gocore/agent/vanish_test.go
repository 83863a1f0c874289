package agent

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/job"
)

// otherNode is set in a process that is the agent of another node: the path of its segment
// and its rank. It prints its card, reads those of all agents, and works until it is killed.
const otherNode = "AGENT_TEST_OTHER_NODE"

func TestMain(m *testing.M) {
	if text := os.Getenv(otherNode); text != "" {
		if err := beOtherNode(text); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func beOtherNode(text string) error {
	var path string
	var rank int
	if _, err := fmt.Sscan(text, &path, &rank); err != nil {
		return err
	}
	seg, err := job.Open(path)
	if err != nil {
		return err
	}
	a, err := New(seg, rank, guarded)
	if err != nil {
		return err
	}
	fmt.Println("card", hex.EncodeToString(a.Card()))
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	cards := map[int][]byte{rank: a.Card()}
	for _, field := range strings.Fields(line) {
		r, text, _ := strings.Cut(field, ":")
		var peer int
		fmt.Sscan(r, &peer)
		if cards[peer], err = hex.DecodeString(text); err != nil {
			return err
		}
	}
	if err := a.Start(cards); err != nil {
		return err
	}
	_, _ = in.ReadString('\n') // until the test kills this process, or has ended
	return nil
}

// other is another process, whose agent is rank 2 of the third node.
type other struct {
	cmd *exec.Cmd
	in  io.Writer
}

// startOther starts the process, and connects its agent to those of the first two nodes.
func startOther(t *testing.T, segs []*job.Segment) (*other, []*Agent) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s 2", otherNode, segs[2].Path()))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	text, ok := strings.CutPrefix(strings.TrimSpace(line), "card ")
	require.True(t, ok, line)
	card, err := hex.DecodeString(text)
	require.NoError(t, err)

	cards := map[int][]byte{2: card}
	var agents []*Agent
	for _, seg := range segs[:2] {
		a, err := New(seg, first(seg), guarded)
		require.NoError(t, err)
		agents, cards[first(seg)] = append(agents, a), a.Card()
	}
	for _, a := range agents {
		require.NoError(t, a.Start(cards))
	}
	fmt.Fprintf(in, "0:%x 1:%x\n", cards[0], cards[1])
	return &other{cmd, in}, agents
}

// kill kills the process, and records that rank 2 has ended.
func (o *other) kill(t *testing.T, seg *job.Segment) {
	require.NoError(t, o.cmd.Process.Kill())
	_ = o.cmd.Wait()
	seg.SetEnded(2)
}

// TestVanish kills the process of the agent of a node, where no rank can take its place: for the
// other two its ranks have ended, and those that had not finalized are unreachable.
func TestVanish(t *testing.T) {
	segs := nodes(t, 0, 1, 2, 2, 2)
	o, agents := startOther(t, segs)
	segs[2].SetState(2, job.StateReady)
	segs[2].SetState(3, job.StateFinalized)
	segs[2].Exited(4, 0)
	segs[2].RingAgent()
	for _, seg := range segs[:2] {
		comes(t, "the states of node 2", func() bool {
			return state(seg, 2) == job.StateReady && state(seg, 3) == job.StateFinalized && ended(seg, 4)
		})
	}

	_, _, ok := segs[2].Heir()
	assert.False(t, ok, "the agent lives")
	o.kill(t, segs[2])
	_, _, ok = segs[2].Heir()
	assert.False(t, ok)
	for _, seg := range segs[:2] {
		comes(t, "the end of node 2", func() bool { return ended(seg, 2) && ended(seg, 3) })
		assert.Equal(t, job.NodeLeft|job.Unreachable, flags(seg, 2))
		assert.Equal(t, job.NodeLeft, flags(seg, 3), "it had finalized")
		assert.Equal(t, job.NodeLeft, flags(seg, 4), "it had ended")
		assert.False(t, ended(seg, 0) || ended(seg, 1))
	}
	segs[0].SetState(0, job.StateReady) // the others still hear of each other
	comes(t, "a state of node 0", func() bool { return state(segs[1], 0) == job.StateReady })
	require.NoError(t, segs[0].Directory(0).Mail(2, []byte("to a node that has left")))
	leave(agents...)
}

// TestSuccession kills the process of the agent of a node. Another rank takes its place: the
// nodes go on hearing of each other, and nobody is lost.
func TestSuccession(t *testing.T) {
	segs := nodes(t, 0, 1, 2, 2, 2)
	o, agents := startOther(t, segs)
	for _, r := range []int{2, 3, 4} {
		segs[2].SetState(r, job.StateReady)
	}
	for _, seg := range segs[:2] {
		comes(t, "the states of node 2", func() bool {
			return state(seg, 2) == job.StateReady && state(seg, 3) == job.StateReady && state(seg, 4) == job.StateReady
		})
	}
	o.kill(t, segs[2])
	segs[0].SetState(0, job.StateReady) // while nobody listens
	segs[2].SetState(4, job.StateFinalized)
	heir, agent, ok := segs[2].Heir()
	require.True(t, ok)
	require.Equal(t, []int{3, 2}, []int{heir, agent})
	require.True(t, segs[2].TakeOver(3, 2))
	require.False(t, segs[2].TakeOver(4, 2), "once")
	third, err := Succeed(segs[2], 3, guarded)
	require.NoError(t, err)
	for _, seg := range segs[:2] {
		comes(t, "the end of rank 2, and that of MPI on rank 4", func() bool { return ended(seg, 2) && state(seg, 4) == job.StateFinalized })
	}
	comes(t, "a state of node 0", func() bool { return state(segs[2], 0) == job.StateReady })
	require.NoError(t, segs[2].Directory(3).Mail(1, []byte("there")))
	comes(t, "a mail", func() bool { return segs[1].Directory(1).Mailed(3) != nil })
	require.NoError(t, segs[1].Directory(1).Mail(3, []byte("and back")))
	comes(t, "a mail", func() bool { return segs[2].Directory(3).Mailed(1) != nil })
	time.Sleep(heirTime + 200*time.Millisecond)
	for _, seg := range segs[:2] {
		assert.False(t, ended(seg, 3) || ended(seg, 4))
		assert.Zero(t, flags(seg, 2)|flags(seg, 3)|flags(seg, 4), "their node has not left")
		rank, card := seg.Agent(2)
		assert.Equal(t, 3, rank)
		assert.Equal(t, third.Card(), card)
	}

	// The node loses its agent again, and nobody takes the place in time.
	segs[2].SetState(4, job.StateReady)
	for _, seg := range segs[:2] {
		comes(t, "the state of rank 4", func() bool { return state(seg, 4) == job.StateReady })
	}
	third.Leave()
	for _, seg := range segs[:2] {
		comes(t, "the end of node 2", func() bool { return ended(seg, 3) && ended(seg, 4) })
		assert.Equal(t, job.NodeLeft|job.Unreachable, flags(seg, 4))
	}
	late, err := Succeed(segs[2], 4, guarded)
	require.NoError(t, err)
	comes(t, "the end of the other nodes for one that comes too late", func() bool { return ended(segs[2], 0) && ended(segs[2], 1) })
	leave(append(agents, late)...)
}

// TestTwoLoseTheirAgents: of three nodes two lose their agents at once. The heirs know each
// other through the third.
func TestTwoLoseTheirAgents(t *testing.T) {
	for range 10 {
		segs := nodes(t, 0, 0, 1, 1, 2)
		agents := meet(t, segs...)
		for r := range segs[0].Ranks {
			segs[segs[0].NodeOf(r)].SetState(r, job.StateReady)
		}
		for _, seg := range segs {
			comes(t, "all states", func() bool {
				for r := range seg.Ranks {
					if state(seg, r) != job.StateReady {
						return false
					}
				}
				return true
			})
		}
		leave(agents[:2]...)
		segs[0].SetEnded(0)
		segs[1].SetEnded(2)
		var heirs []*Agent
		for k, r := range []int{1, 3} {
			require.True(t, segs[k].TakeOver(r, 2*k))
			a, err := Succeed(segs[k], r, guarded)
			require.NoError(t, err)
			heirs = append(heirs, a)
		}
		segs[0].SetState(1, job.StateFinalized)
		segs[1].SetState(3, job.StateFinalized)
		comes(t, "states", func() bool {
			return state(segs[1], 1) == job.StateFinalized && state(segs[0], 3) == job.StateFinalized && state(segs[2], 1) == job.StateFinalized
		})
		assert.False(t, ended(segs[0], 3) || ended(segs[1], 1) || ended(segs[2], 1))
		leave(append(heirs, agents[2])...)
	}
}

// TestBothHandOver: the agents of both nodes finalize at the same time, and other ranks take over
// while they leave.
func TestBothHandOver(t *testing.T) {
	for k := range 30 {
		segs := nodes(t, 0, 0, 1, 1)
		agents := meet(t, segs...)
		for r := range segs[0].Ranks {
			segs[segs[0].NodeOf(r)].SetState(r, job.StateReady)
		}
		for _, seg := range segs {
			comes(t, "all states", func() bool {
				return state(seg, 0)+state(seg, 1)+state(seg, 2)+state(seg, 3) == 4*job.StateReady
			})
		}
		heirs := make([]*Agent, 2)
		var all sync.WaitGroup
		for n, seg := range segs {
			all.Go(func() {
				before, heir := 2*n, 2*n+1
				seg.SetState(before, job.StateFinalized)
				seg.SetEnded(before)
				assert.True(t, seg.TakeOver(heir, before))
				all.Go(agents[n].Leave)
				time.Sleep(time.Duration(k) * 100 * time.Microsecond)
				var err error
				heirs[n], err = Succeed(seg, heir, guarded)
				assert.NoError(t, err)
			})
		}
		all.Wait()
		segs[0].SetState(1, job.StateFinalized)
		segs[1].SetState(3, job.StateFinalized)
		comes(t, "states by the heirs", func() bool {
			return state(segs[1], 1) == job.StateFinalized && state(segs[0], 3) == job.StateFinalized
		})
		assert.False(t, ended(segs[0], 3) || ended(segs[1], 1))
		leave(heirs...)
	}
}
