package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/rma"
)

func unused(uint32) bool { return false }

// Contexts of different ranks differ in jobs of any size, and leave room for the bit that
// tells the two channels of a communicator apart.
func TestContextsAreUnique(t *testing.T) {
	for _, size := range []int{1, 2, 3, 512, 513, 1024, 1025, 65_536} {
		seen := map[uint32]bool{0: true} // COMM_WORLD
		for _, rank := range []int{0, 1, size / 2, 1023, 1024, size - 2, size - 1} {
			var c contexts
			if rank < 0 || rank >= size {
				continue
			}
			c.init(rank, size)
			if seen[c.self()] {
				continue // the same rank again
			}
			require.Less(t, c.self(), uint32(1)<<ctxWidth)
			seen[c.self()] = true
			for range min(c.numbers-firstNumber, 50_000) {
				d, e := c.draw(unused)
				ctx := d.ctx
				require.Nil(t, e)
				require.False(t, seen[ctx], "context %#x of rank %d of %d", ctx, rank, size)
				require.Less(t, ctx, uint32(1)<<ctxWidth)
				seen[ctx] = true
			}
		}
	}
}

// A rank of a large job has few contexts. It uses those of freed communicators again, and
// gives an error when there is none.
func TestContextsAreUsedAgain(t *testing.T) {
	var c contexts
	c.init(65_535, 65_536)
	taken := map[uint32]bool{}
	used := func(ctx uint32) bool { return taken[ctx] }
	for range 4_094 {
		d, e := c.draw(used)
		require.Nil(t, e)
		taken[d.ctx] = true
	}
	_, e := c.draw(used)
	require.NotNil(t, e)
	assert.Contains(t, e.Error(), "rank 65535 has numbered 4094 communicators and windows")
	for _, number := range []uint32{firstNumber, 77, 4_095} {
		ctx := c.rank*c.numbers + number
		delete(taken, ctx)
		again, e := c.draw(used)
		require.Nil(t, e)
		assert.Equal(t, ctx, again.ctx)
		taken[again.ctx] = true
	}
}

// A rank that has no context left makes the call fail, on all ranks.
func TestNoContextIsLeft(t *testing.T) {
	old := proc.contexts.numbers
	proc.contexts.numbers = firstNumber
	defer func() { proc.contexts.numbers = old }()
	group := groupOf(t, 0)
	for name, make := range map[string]func() (int64, Code){
		"dup":          func() (int64, Code) { return CommDup(CommWorld) },
		"create group": func() (int64, Code) { return CommCreateGroup(CommWorld, group, 5) },
		"window":       func() (int64, Code) { return WinCreate(int(rma.FlavorAllocate), 0, 8, 1, CommWorld, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			req, code := make()
			if code == 0 {
				code = Wait(req, nil)
			}
			assert.Contains(t, ErrorText(code), "free those that are not needed any more")
		})
	}
}
