package transfer

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/rdmaapi/sockets"
	"gormapy/gocore/rdmaapi/soft"
)

// More engines connect to one at once than it has room for pending connections: those
// that are evicted call again, and each gets its answer.
func TestManyEnginesConnectAtOnce(t *testing.T) {
	b := engine(t, soft.TCP, "b", nil)
	errs := make([]error, 600)
	var calls sync.WaitGroup
	for i := range errs {
		calls.Add(1)
		go func() {
			defer calls.Done()
			errs[i] = sockets.Redial(2*time.Minute, func() error {
				conn, err := net.Dial("tcp", b.card.Address)
				if err != nil {
					return err
				}
				defer conn.Close()
				_, err = initiate(conn, &b.card, hello{name: "x", backend: "another", infos: [][]byte{{1}}}, time.Minute)
				return err
			})
		}()
	}
	calls.Wait()
	for _, err := range errs {
		require.Error(t, err)
		assert.ErrorContains(t, err, "it refuses")
	}
}
