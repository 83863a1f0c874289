package transfer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/rdmaapi/backend"
)

// An engine that is closed as soon as a transfer has arrived says goodbye before the
// acknowledgement of the notice is there. The transfer has succeeded all the same.
func TestTargetThatClosesAtTheArrival(t *testing.T) {
	eachBackend(t, func(t *testing.T, by backend.Backend) {
		for i := range 40 {
			a := engine(t, by, fmt.Sprintf("a%d", i), nil)
			b := engine(t, by, fmt.Sprintf("b%d", i), nil)
			require.NoError(t, a.AddRemote(b.card))
			require.NoError(t, b.AddRemote(a.card))
			p := newPlace(t, a, b, 1<<16)
			status := p.session.Transfer(backend.OpRead, []Entry{{0, 0, 1 << 16}}, 7)
			arrived, err := b.Arrived(a.card.Name, 7, 20*time.Second)
			require.NoError(t, err)
			require.True(t, arrived)
			require.NoError(t, b.Close())
			finish(t, status)
			assert.Equal(t, p.target, p.source)
			require.NoError(t, a.Close())
		}
	})
}
