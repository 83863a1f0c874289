package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The context of a communicator that was freed with a receive under way is not drawn again before that is over.
func TestTheContextOfFreedCommunicatorsStaysTaken(t *testing.T) {
	old := struct{ numbers, last uint32 }{proc.contexts.numbers, proc.contexts.last}
	proc.contexts.numbers, proc.contexts.last = firstNumber+2, firstNumber-1
	defer func() { proc.contexts.numbers, proc.contexts.last = old.numbers, old.last }()
	dup := func() (h int64, code Code) {
		req, code := CommDup(CommSelf)
		require.Zero(t, code)
		code = Result(req, &h)
		return h, code
	}
	free := func(h int64) {
		req, code := CommFree(h)
		require.Zero(t, code)
		require.Zero(t, Wait(req, nil))
	}
	into, addr := memory[int32](t, 0)
	first, code := dup()
	require.Zero(t, code)
	receive, code := P2P(KindRecv, first, addr, 1, typeOf("INT"), 0, 5)
	require.Zero(t, code)
	ctx := comms.get(first).ctx
	free(first)
	assert.True(t, inUse.has(ctx))
	second, code := dup()
	require.Zero(t, code)
	assert.NotEqual(t, ctx, comms.get(second).ctx)
	_, code = dup()
	assert.Contains(t, ErrorText(code), "as many as it can")
	require.Zero(t, RequestCancel(receive))
	require.Zero(t, Wait(receive, nil))
	Progress()
	assert.False(t, inUse.has(ctx))
	third, code := dup()
	require.Zero(t, code)
	assert.Equal(t, ctx, comms.get(third).ctx)
	free(second)
	free(third)
	assert.Zero(t, into[0])
}
