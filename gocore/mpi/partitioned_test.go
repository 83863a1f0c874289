package mpi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// What a sender says of itself is not trusted: a receive allocates nothing for an offer that can't be.
func TestOfferOfTooManyPartitionsMakesTheReceiveUseless(t *testing.T) {
	c, e := getComm(CommSelf)
	require.Nil(t, e)
	for tag, partitions := range []int64{mostPartitions + 1, 1 << 50, -1} {
		var sent p2p.Request
		o := offer{partitions: partitions, tag: firstPartitionTag}
		c.partitionChannel().Send(&sent, p2p.Buffered, o.buf(), 0, tag)
		_, addr := memory(t, 0.0)
		req, code := PrecvInit(CommSelf, addr, 2, 0, typeOf("DOUBLE"), 0, tag)
		succeeds(t, code)
		for range 2 {
			succeeds(t, Start(req))
			fails(t, errs.Arg, "0 to 1048576", waited(Interrupted, req, nil))
		}
		succeeds(t, RequestFree(req))
	}
}
