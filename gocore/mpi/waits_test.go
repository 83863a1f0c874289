package mpi

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// awaited returns the wait of the only thread that waits, once it does.
func awaited(t testing.TB) (one waiting) {
	t.Helper()
	eventually(t, func() bool {
		var now struct {
			Waits []waiting
			PID   int
		}
		require.NoError(t, json.Unmarshal([]byte(Waits()), &now))
		assert.Equal(t, os.Getpid(), now.PID)
		if len(now.Waits) == 0 {
			return false
		}
		require.Len(t, now.Waits, 1)
		one = now.Waits[0]
		return true
	})
	return one
}

func TestWaitsOfThreadsAreDescribed(t *testing.T) {
	_, to := memory[int32](t, 0)
	for name, c := range map[string]struct {
		comm  int64
		tag   int
		on    string
		shown int
	}{
		"self": {CommSelf, 5, "COMM_SELF", 5}, "world": {CommWorld, 6, "COMM_WORLD", 6}, "any tag": {CommSelf, AnyTag, "COMM_SELF", -1},
	} {
		t.Run(name, func(t *testing.T) {
			received := make(chan Code)
			go func() {
				received <- blocking(func(pending *int64) Code {
					return Blocking(KindRecv, c.comm, to, 1, typeOf("INT"), 0, c.tag, nil, pending)
				})
			}()
			got := awaited(t)
			_, from := memory[int32](t, 1)
			req, code := P2P(KindSend, c.comm, from, 1, typeOf("INT"), 0, max(c.tag, 0))
			done(t, req, code)
			succeeds(t, <-received)
			assert.Contains(t, []string{"Recv", "Wait"}, got.Call)
			assert.Equal(t, c.on, got.On)
			assert.Equal(t, []int{0}, got.Members)
			assert.Equal(t, []int{0, c.shown}, []int{got.Peer, got.Tag})
			assert.GreaterOrEqual(t, got.Seconds, 0.0)
			assert.False(t, got.All)
		})
	}
}
