package soft

import (
	"io"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/rdmaapi/backend"
)

// A receive is posted while a message is refused for lack of one: the frame that
// announces it follows the rnr, or the peer would wait for ever.
func TestAReceiveIsPostedWhileAMessageIsRefused(t *testing.T) {
	both(t, func(t *testing.T, b Backend) {
		a, c := newSide(t, b), newSide(t, b)
		a.connect(t, c)
		c.connect(t, a)
		for i := range 5000 {
			_, err := a.qp.PostSend([]backend.SendWR{{Op: backend.OpSend, Signaled: true, Region: a.region, Local: unsafe.Pointer(&a.memory[guard]), N: 8}})
			require.NoError(t, err)
			for end := time.Now().Add(time.Duration(i%64) * time.Microsecond); time.Now().Before(end); {
			}
			c.receives(t, 1)
			c.wait(t, 1)
			a.wait(t, 1)
		}
	})
}

// The timer of a pause that ended early does not end the next pause.
func TestTheTimerOfAPauseThatEndedEarly(t *testing.T) {
	a, _, conn := linked(t, TCP)
	const pause = 400 * time.Millisecond
	require.Eventually(t, func() bool { return a.qp.State() == backend.StateRTS }, 10*time.Second, time.Millisecond)
	a.qp.mu.Lock()
	a.qp.conn.RNRRetry, a.qp.conn.RNRTimer = 3, pause
	a.qp.mu.Unlock()
	say := func(kind uint8, psn uint32) {
		f := frame{kind: kind, psn: psn}
		_, err := conn.Write(f.append(nil))
		require.NoError(t, err)
	}
	hear := func(psn uint32) {
		head := make([]byte, headerBytes)
		_, err := io.ReadFull(conn, head)
		require.NoError(t, err)
		f, err := parse(head)
		require.NoError(t, err)
		assert.Equal(t, psn, f.psn)
	}
	post := func() {
		_, err := a.qp.PostSend([]backend.SendWR{{Op: backend.OpSend, Signaled: true}})
		require.NoError(t, err)
	}
	post()
	hear(0)
	say(frRNR, 0)
	say(frReceive, 0)
	hear(0)
	say(frAck, 0)
	post()
	hear(1)
	time.Sleep(pause * 3 / 4)
	say(frRNR, 1)
	conn.SetReadDeadline(time.Now().Add(pause * 3 / 4)) //nolint:errcheck // it is open
	n, err := conn.Read(make([]byte, 1))
	assert.Zero(t, n, "repeated too early")
	require.Error(t, err)
}
