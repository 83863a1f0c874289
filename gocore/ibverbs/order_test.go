//go:build cgo

package ibverbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/ibverbs"
)

// TestQueuePairsWithTheSameQueuesTheOtherWayRound are made at the same time in two
// protection domains.
func TestQueuePairsWithTheSameQueuesTheOtherWayRound(t *testing.T) {
	a := newEnd(t, software(t), "double0")
	pd, err := a.ctx.AllocPD()
	require.NoError(t, err)
	cq, err := a.ctx.CreateCQ(16, nil)
	require.NoError(t, err)
	make2000 := func(pd *ibverbs.PD, send, recv *ibverbs.CQ) {
		for range 2000 {
			qp, err := pd.CreateQP(ibverbs.QPOptions{SendCQ: send, RecvCQ: recv, MaxSend: 1, MaxRecv: 1})
			if !assert.NoError(t, err) || !assert.NoError(t, qp.Close()) {
				return
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		other := make(chan struct{})
		go func() { defer close(other); make2000(pd, cq, a.cq) }()
		make2000(a.pd, a.cq, cq)
		<-other
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		panic("they wait for each other's queues") // closing them would wait, too
	}
	require.NoError(t, cq.Close())
	require.NoError(t, pd.Close())
}
