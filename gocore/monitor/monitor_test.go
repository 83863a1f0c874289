package monitor

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/home"
	"gormapy/gocore/job"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("MONITOR_TEST_ROLE"); role != "" {
		act(role)
		return
	}
	os.Exit(m.Run())
}

// segment makes the segment of node 0 of a job, whose ranks are ready.
func segment(nodes ...int) *job.Segment {
	seg, err := job.CreateNode(nodes, 0)
	if err != nil {
		panic(err)
	}
	for r := range nodes {
		atomic.StoreUint32(&seg.Ranks[r].Claim, uint32(os.Getpid()))
		atomic.StoreUint32(&seg.Ranks[r].State, job.StateReady)
	}
	return seg
}

func TestClocksAreComparedInTheMiddleOfARoundTrip(t *testing.T) {
	assert.EqualValues(t, 1000, roundTrip(100, 1150, 200))
	assert.EqualValues(t, -50, roundTrip(100, 100, 200))
}

func TestWhoSpeaks(t *testing.T) {
	seg := segment(1, 0, 0, 0, 1)
	m := &Monitor{o: Options{Rank: 1}, seg: seg}
	assert.Equal(t, 1, m.speaker(3), "the first of its node")
	assert.Equal(t, 2, m.speaker(1))
	assert.Equal(t, 4, m.speaker(0))
	seg.SetEnded(0)
	assert.Equal(t, 1, m.speaker(4), "the first of the job, if the node has no other")
	for r := range 5 {
		seg.SetEnded(r)
	}
	assert.Equal(t, -1, m.speaker(2))
}

// told is a monitor whose home is in this process; next returns what the home hears.
func told(t *testing.T, seg *job.Segment, rank int) (m *Monitor, next func() *home.Message, l *home.Link) {
	t.Helper()
	h, err := home.Listen(4, func() int64 { return job.Now() + 1_000_000_000 })
	require.NoError(t, err)
	t.Cleanup(h.Close)
	at := &home.Where{Record: true}
	at.Addresses, at.Secret = h.Where()
	m = Start(Options{Segment: seg, Rank: rank, Home: at, Abort: func(int) {}})
	require.NotNil(t, m.home())
	event := func() home.Event {
		select {
		case e := <-h.Events():
			return e
		case <-time.After(10 * time.Second):
			require.FailNow(t, "the home hears nothing")
			return home.Event{}
		}
	}
	return m, func() *home.Message { return event().Message }, event().Link
}

func TestAFailureIsToldBeforeTheRankGoesOn(t *testing.T) {
	seg := segment(0, 0)
	m, next, l := told(t, seg, 1)
	assert.InDelta(t, 1e9, m.begun, 1e8)
	assert.True(t, m.Records())
	done := make(chan struct{})
	go func() {
		m.Fails("called Abort(7)", 7, true, false)
		close(done)
	}()
	assert.Equal(t, &home.Message{Kind: home.Failed, How: "called Abort(7)", Code: 7, Data: []byte{}}, next())
	require.NoError(t, l.Send(&home.Message{Kind: home.Collect}))
	assert.Equal(t, home.Record, next().Kind)
	select {
	case <-done:
		assert.Fail(t, "the rank does not wait")
	default:
	}
	require.NoError(t, l.Send(&home.Message{Kind: home.Heard}))
	<-done
	m.Ends() // its end is known
}

func TestARankDescribesItsNode(t *testing.T) {
	m, next, l := told(t, segment(0, 1, 0), 2)
	require.NoError(t, l.Send(&home.Message{Kind: home.Describe}))
	lines := next().Lines
	assert.Len(t, lines, 2)
	assert.Contains(t, lines[0][0], "rank 0 (pid ")
	go m.Ends()
	assert.Equal(t, home.Record, next().Kind)
	assert.Equal(t, home.Bye, next().Kind)
	require.NoError(t, l.Send(&home.Message{Kind: home.Heard}))
}

func TestTheEndOfANeighbourIsTold(t *testing.T) {
	seg := segment(0, 0, 0)
	m, next, _ := told(t, seg, 0)
	seg.Exited(1, 0)
	m.PeerEnded(1) // well
	seg.Exited(2, 9)
	m.PeerEnded(2)
	msg := next()
	assert.Equal(t, []any{home.Peer, 2, 9}, []any{msg.Kind, msg.Rank, msg.Code})
	who, code, yes := seg.Aborted()
	assert.Equal(t, []any{2, 137, true}, []any{who, code, yes}, "so that the others' calls don't fail for that")
}

// act is a process without a home.
func act(role string) {
	seg := segment(0, 0, 1)
	o := Options{Segment: seg, Rank: 0, Abort: func(code int) { fmt.Println("abort", code) }, Unmanaged: true}
	if role == "timeout" {
		o.Timeout = 50 * time.Millisecond
	}
	m := Start(o)
	if role == "timeout" {
		time.Sleep(20 * time.Second)
		return
	}
	seg.Exited(1, 9)
	m.PeerEnded(1)
	m.PeerEnded(1)
	time.Sleep(20 * time.Second)
}

func alone(t *testing.T, role string) (output string, status int) {
	t.Helper()
	own, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(own)
	c.Env = append(os.Environ(), "MONITOR_TEST_ROLE="+role)
	b, err := c.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, string(b))
	return string(b), exit.ExitCode()
}

func TestTimeOutWithoutAHome(t *testing.T) {
	text, status := alone(t, "timeout")
	assert.Equal(t, StatusTimeout, status, text)
	host, _ := os.Hostname()
	assert.True(t, strings.HasPrefix(text, "gormapy: time-out after 50ms; what the ranks of "+host+" do:\ngormapy:   rank 0 (pid "), text)
	assert.NotContains(t, text, "rank 2")
	assert.Contains(t, text, "abort 124\n")
}

func TestAKilledNeighbourWithoutAHome(t *testing.T) {
	text, status := alone(t, "killed")
	assert.Equal(t, 137, status, text)
	assert.Equal(t, 1, strings.Count(text, "was killed by signal 9 (SIGKILL); the job ends\n"), text)
	assert.Contains(t, text, "abort 137\n")
}
