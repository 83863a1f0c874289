package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBlockThatNobodyUsesIsOfferedAgain(t *testing.T) {
	b := offerBlock()
	require.GreaterOrEqual(t, b, int64(0))
	keepBlock(b)
	assert.Equal(t, b, offerBlock())

	alone := &making{parent: comms.get(CommSelf), comm: comms.get(CommSelf), offered: b}
	alone.block[0] = -1
	alone.adopt(b, true)
	assert.Equal(t, int64(-1), alone.block[0], "one rank needs no block")
	assert.Equal(t, b, offerBlock())

	other := &making{parent: comms.get(CommSelf), comm: comms.get(CommSelf), offered: b}
	other.adopt(b+1, false)
	assert.Equal(t, b, offerBlock(), "that of another rank is used")

	failed := &making{parent: comms.get(CommSelf), offered: b}
	failed.adopt(b, true)
	next := offerBlock()
	assert.NotEqual(t, b, next, "others may use it")
	keepBlock(next)
	proc.seg.GiveBlock(int(b))
}

func TestOneBlockIsKept(t *testing.T) {
	first, second := offerBlock(), offerBlock()
	require.NotEqual(t, first, second)
	keepBlock(first)
	keepBlock(second)
	assert.Equal(t, first, offerBlock())
	assert.Equal(t, second, int64(proc.seg.TakeBlock()), "it is free again")
	proc.seg.GiveBlock(int(first))
	proc.seg.GiveBlock(int(second))
}
