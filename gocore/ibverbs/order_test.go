//go:build cgo

package ibverbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/ibverbs"
)

// TestMoreRequestsThanOneListHolds go out in several.
func TestMoreRequestsThanOneListHolds(t *testing.T) {
	const most = 5000
	a := newEnd(t, software(t), "double0")
	cq, err := a.ctx.CreateCQ(16, nil)
	require.NoError(t, err)
	var two [2]*ibverbs.QP
	for i := range two {
		two[i], err = a.pd.CreateQP(ibverbs.QPOptions{SendCQ: cq, RecvCQ: cq, MaxSend: most, MaxRecv: 1})
		require.NoError(t, err)
	}
	for i := range two {
		e := *a
		e.qp = two[i]
		e.connect(&end{t: t, qp: two[1-i], mtu: a.mtu, gid: a.gid})
	}
	list := make([]ibverbs.SendWR, most)
	for i := range list {
		list[i] = ibverbs.SendWR{ID: uint64(i), Opcode: ibverbs.RDMAWrite, Addr: a.at(0), Len: 8, LKey: a.mr.LKey(), RemoteAddr: a.at(8), RKey: a.mr.RKey()}
	}
	list[most-1].Flags = ibverbs.Signaled
	n, err := two[0].PostSend(list)
	require.NoError(t, err)
	assert.Equal(t, most, n)
	var wc [2]ibverbs.WC
	require.Eventually(t, func() bool { n, err := cq.Poll(wc[:]); return err == nil && n == 1 }, 10*time.Second, time.Millisecond)
	assert.EqualValues(t, most-1, wc[0].ID)
	assert.Equal(t, ibverbs.Success, wc[0].Status)
	for _, c := range []interface{ Close() error }{two[0], two[1], cq} {
		require.NoError(t, c.Close())
	}
}

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
