package rendezvous

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testRank is the other end of a member's connection, which has no handshake. What the
// server says is read at once, in order.
type testRank struct {
	t      testing.TB
	conn   net.Conn
	heard  chan frame
	served chan struct{}
}

func attach(t testing.TB, s *server, rank int) *testRank {
	t.Helper()
	here, there := net.Pipe()
	l, refusal := s.join(there, card{rank: rank, size: s.size, node: rank, instance: [16]byte{byte(rank)}})
	require.Empty(t, refusal)
	r := &testRank{t, here, make(chan frame, 1000), make(chan struct{})}
	go func() {
		defer close(r.heard)
		for {
			f, err := readFrame(here)
			if err != nil {
				return
			}
			r.heard <- f
		}
	}()
	go func() {
		defer close(r.served)
		s.entered()
		s.serve(rank, l)
	}()
	return r
}

func (r *testRank) say(f frame) {
	r.t.Helper()
	_, err := r.conn.Write(f.marshal())
	require.NoError(r.t, err)
}

func (r *testRank) hear() frame {
	r.t.Helper()
	select {
	case f, ok := <-r.heard:
		if !ok {
			require.NoError(r.t, io.EOF)
		}
		return f
	case <-time.After(30 * time.Second):
		require.Fail(r.t, "nothing is said")
		return frame{}
	}
}

func TestTimeoutNamesWhoIsMissing(t *testing.T) {
	s := newServer(5, 50*time.Millisecond)
	a, b, c := attach(t, s, 0), attach(t, s, 1), attach(t, s, 3)
	a.say(frame{opFence, nil})
	b.say(frame{opNodes, nil})
	for _, r := range []*testRank{a, b} {
		f := r.hear()
		assert.Equal(t, opFailed, f.op)
		assert.Equal(t, "ranks 2 and 4 never joined the job, and ranks 1 and 3 joined but did not come as far as the others within 50ms, of 5 ranks (GORMAPY_RENDEZVOUS_TIMEOUT is the time-out in seconds)", string(f.body))
	}
	c.say(frame{opFence, nil}) // too late: the others have given up
	assert.Equal(t, opFailed, c.hear().op)
}

func TestLossEndsAFence(t *testing.T) {
	s := newServer(3, time.Minute)
	a, b, c := attach(t, s, 0), attach(t, s, 1), attach(t, s, 2)
	a.say(frame{opFence, nil})
	c.say(frame{opFence, nil})
	c.conn.Close()
	e, err := a.hear().event()
	require.NoError(t, err)
	assert.Equal(t, 2, e.Rank)
	f := a.hear()
	assert.Equal(t, opFailed, f.op)
	assert.Contains(t, string(f.body), "rank 2")
	assert.Equal(t, opEvent, b.hear().op)
	b.say(frame{opFence, nil})
	assert.Equal(t, opFailed, b.hear().op, "a fence after the loss")
}

func TestFinalizedRankEndsAFence(t *testing.T) {
	s := newServer(2, time.Minute)
	a, b := attach(t, s, 0), attach(t, s, 1)
	a.say(frame{opFence, nil})
	b.say(frame{opFinalize, nil})
	f := a.hear()
	assert.Equal(t, opFailed, f.op)
	assert.Equal(t, "rank 1 has finalized and won't come to a fence any more", string(f.body))
	<-b.served
}

func TestServerRefuses(t *testing.T) {
	s := newServer(2, time.Minute)
	attach(t, s, 1)
	here, there := net.Pipe()
	defer here.Close()
	for _, c := range []struct {
		card card
		want string
	}{
		{card{rank: 1, size: 2}, "rank 1 has been taken by another process"},
		{card{rank: 2, size: 2}, "there is no rank 2 in a job of 2"},
		{card{rank: 1, size: 3}, "rank 0 is of a job of 2 ranks, and rank 1 says that there are 3"},
	} {
		_, refusal := s.join(there, c.card)
		assert.Contains(t, refusal, c.want)
	}
	// The process that has the rank may come again.
	_, refusal := s.join(there, card{rank: 1, size: 2, instance: [16]byte{1}})
	assert.Empty(t, refusal)
	assert.Equal(t, 1, s.joined)
}

func TestRanks(t *testing.T) {
	for want, ranks := range map[string][]int{
		"rank 3": {3}, "ranks 0 and 1": {0, 1}, "ranks 0-2": {0, 1, 2}, "ranks 0, 2-5 and 9": {0, 2, 3, 4, 5, 9},
		"ranks 0, 2, 4, 6, 8, 10, 12, 14 and others": {0, 2, 4, 6, 8, 10, 12, 14, 16, 18},
	} {
		assert.Equal(t, want, Ranks(ranks))
	}
}
