package soft

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/rdmaapi/backend"
)

// More queue pairs connect to one context at once than it has room for pending
// connections: those that are evicted call again.
func TestManyQueuePairsConnectAtOnce(t *testing.T) {
	both(t, func(t *testing.T, b Backend) {
		agent, dialer := newSide(t, b), newSide(t, b)
		pair := func(s *side) *qp {
			q, err := s.region.pd.CreateQP(backend.QPInit{Send: s.qp.sendCQ, Recv: s.qp.recvCQ, MaxSend: 8, MaxRecv: 8})
			require.NoError(t, err)
			return q.(*qp)
		}
		var agents, dialers []*qp
		for range 600 {
			a, d := pair(agent), pair(dialer)
			for string(d.secret) > string(a.secret) {
				require.NoError(t, d.Reset())
			}
			agents, dialers = append(agents, a), append(dialers, d)
		}
		for k, a := range agents {
			theirs, err := dialers[k].Info()
			require.NoError(t, err)
			require.NoError(t, a.Connect(theirs, connection))
		}
		for k, d := range dialers {
			theirs, err := agents[k].Info()
			require.NoError(t, err)
			require.NoError(t, d.Connect(theirs, connection))
		}
		connected := func() bool {
			for _, d := range dialers {
				d.mu.Lock()
				l, state, why := d.link, d.state, d.why
				d.mu.Unlock()
				require.NotEqual(t, backend.StateErr, state, why)
				if l == nil {
					return false
				}
			}
			return true
		}
		for end := time.Now().Add(2 * time.Minute); !connected(); time.Sleep(10 * time.Millisecond) {
			require.True(t, time.Now().Before(end))
		}
	})
}
