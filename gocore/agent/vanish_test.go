package agent

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

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
	a, err := New(seg, rank, Options{})
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

// TestVanish kills the process of the agent of a node: for the other two its ranks have
// ended, and those that had not finalized are unreachable.
func TestVanish(t *testing.T) {
	segs := nodes(t, 0, 1, 2, 2, 2)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s 2", otherNode, segs[2].Path()))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	text, ok := strings.CutPrefix(strings.TrimSpace(line), "card ")
	require.True(t, ok, line)
	card, err := hex.DecodeString(text)
	require.NoError(t, err)

	cards := map[int][]byte{2: card}
	var agents []*Agent
	for _, seg := range segs[:2] {
		a, err := New(seg, first(seg), Options{})
		require.NoError(t, err)
		agents, cards[first(seg)] = append(agents, a), a.Card()
	}
	for _, a := range agents {
		require.NoError(t, a.Start(cards))
	}
	fmt.Fprintf(in, "0:%x 1:%x\n", cards[0], cards[1])
	segs[2].SetState(2, job.StateReady)
	segs[2].SetState(3, job.StateFinalized)
	segs[2].Exited(4, 0)
	segs[2].RingAgent()
	for _, seg := range segs[:2] {
		comes(t, "the states of node 2", func() bool {
			return state(seg, 2) == job.StateReady && state(seg, 3) == job.StateFinalized && ended(seg, 4)
		})
	}

	require.NoError(t, cmd.Process.Kill())
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
