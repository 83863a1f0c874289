package mpi

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
)

// freeAsExtension frees a datatype as the extension does, and reports whether it was the one to do so.
func freeAsExtension(t *typeTable, h int64) bool {
	word := t.word(h)
	if word == nil {
		return false
	}
	for {
		old := atomic.LoadUint64(word)
		if old&wordLive == 0 || int64(old>>2) != h>>32 {
			return false
		}
		if atomic.CompareAndSwapUint64(word, old, old&^(wordLive|wordCommitted)) {
			return true
		}
	}
}

func TestFreedDatatypeIsMadeAgainUnderAnotherHandle(t *testing.T) {
	var table typeTable
	table.set(1, dtype.ByName("INT"))
	made := dtype.ByName("DOUBLE")
	h := table.add(made, true)
	word := table.word(h)
	require.True(t, freeAsExtension(&table, h))
	obj, _ := table.get(h)
	assert.Nil(t, obj)
	assert.False(t, table.take(h), "it is freed once")
	other := table.add(made, false)
	assert.NotEqual(t, h&0xffffffff, other&0xffffffff, "the extension has the index")

	again := h + 1<<32
	atomic.StoreUint64(word, uint64(again>>32)<<2|wordLive)
	obj, committed := table.get(again)
	assert.Same(t, made, obj)
	assert.False(t, committed)
	obj, _ = table.get(h)
	assert.Nil(t, obj, "the first handle stays stale")
	table.commit(again)
	_, committed = table.get(again)
	assert.True(t, committed)

	require.True(t, freeAsExtension(&table, again))
	table.drop(again)
	next := table.add(made, false)
	assert.Equal(t, again&0xffffffff, next&0xffffffff, "the index is used again")
	assert.Equal(t, again>>32+1, next>>32)
}

func TestPredefinedDatatypesStay(t *testing.T) {
	var table typeTable
	table.set(1, dtype.ByName("INT"))
	assert.False(t, table.take(1))
	obj, committed := table.get(1)
	assert.NotNil(t, obj)
	assert.True(t, committed)
}

func TestOneOfTwoFreesADatatype(t *testing.T) {
	var table typeTable
	for range 1000 {
		h := table.add(dtype.ByName("INT"), true)
		var core, extension bool
		var wg sync.WaitGroup
		wg.Go(func() { core = table.take(h) })
		wg.Go(func() { extension = freeAsExtension(&table, h) })
		wg.Go(func() { table.commit(h) })
		wg.Wait()
		require.NotEqual(t, core, extension)
		obj, _ := table.get(h)
		require.Nil(t, obj)
		if extension {
			table.drop(h)
		}
	}
	assert.Len(t, table.items, 1)
}
