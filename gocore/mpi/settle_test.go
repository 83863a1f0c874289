package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
)

func TestSettlingWaitsForOperationsAndLeavesTheCommunicator(t *testing.T) {
	req, code := CommDup(CommSelf)
	comm := freeLater(t, result(t, req, code))
	_, addr := memory[int32](t, 0)
	receive, code := P2P(KindRecv, comm, addr, 1, typeOf("INT"), 0, 5)
	succeeds(t, code)
	settling, code := CommSettle(comm)
	succeeds(t, code)
	settled, code := Test(settling, nil)
	succeeds(t, code)
	require.False(t, settled)
	succeeds(t, RequestCancel(receive))
	done(t, receive, 0)
	done(t, settling, 0)
	assert.Equal(t, 1, CommSize(comm))
	for h, text := range map[int64]string{CommWorld: "can't be freed", CommSelf: "can't be freed", CommNull: "COMM_NULL"} {
		_, code = CommSettle(h)
		fails(t, errs.Comm, text, code)
	}
}
