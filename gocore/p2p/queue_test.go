package p2p

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestErrorsNameThePeer(t *testing.T) {
	remote := func(rank int) string { return fmt.Sprintf("rank %d of the remote group", rank) }
	for _, c := range []struct {
		want      string
		q         *queue
		rank, tag int
	}{
		{"rank 1 with tag 5", &queue{}, 1, 5},
		{"rank 1 with any tag", &queue{}, 1, AnyTag},
		{"any rank with any tag", &queue{}, AnySource, AnyTag},
		{"rank 1 of the remote group with any tag", &queue{names: remote}, 1, AnyTag},
		{"rank 1 of the communicator", &queue{internal: true}, 1, AnyTag},
	} {
		assert.Equal(t, c.want, c.q.peer(c.rank, c.tag))
	}
}
