package mpi

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHandleNamesItsObjectUntilItIsTaken(t *testing.T) {
	table := newTable[string](1)
	one, two := "one", "two"
	h, other := table.add(&one), table.add(&two)
	assert.NotEqual(t, h, other)
	assert.Same(t, &one, table.get(h))
	assert.Same(t, &two, table.get(other))
	assert.Same(t, &one, table.take(h))
	assert.Nil(t, table.get(h))
	assert.Nil(t, table.take(h), "it is taken once")
	assert.Same(t, &two, table.get(other))
}

func TestStaleHandleDoesNotNameTheNextObject(t *testing.T) {
	table := newTable[int](1)
	first, second := 1, 2
	stale := table.add(&first)
	table.take(stale)
	h := table.add(&second)
	require.Equal(t, stale&0xffffffff, h&0xffffffff, "the index is used again")
	assert.Nil(t, table.get(stale))
	assert.Nil(t, table.take(stale))
	assert.Same(t, &second, table.get(h))
}

func TestGenerationStartsAgainWithoutMakingAHandleNegative(t *testing.T) {
	table := newTable[int](0)
	object := 1
	table.take(table.add(&object))
	table.items[0].gen = 0x3fffffff
	h := table.add(&object)
	assert.Zero(t, h>>32)
	assert.Same(t, &object, table.get(h))
}

func TestNoHandleNamesNothing(t *testing.T) {
	table := newTable[int](2)
	object := 1
	table.add(&object)
	for name, h := range map[string]int64{
		"null": 0, "negative": -1, "reserved index": 1, "index beyond the table": 3 | 1<<32, "wrong generation": 2 | 2<<32,
	} {
		t.Run(name, func(t *testing.T) {
			assert.Nil(t, table.get(h))
			assert.Nil(t, table.take(h))
		})
	}
}

func TestPredefinedObjectCanNotBeTaken(t *testing.T) {
	table := newTable[int](4)
	object := 1
	table.set(3, &object)
	assert.Nil(t, table.take(3))
	assert.Same(t, &object, table.get(3))
}

func TestReservedHandleNamesWhatFillsIt(t *testing.T) {
	table := newTable[int](1)
	object := 1
	h := table.reserve()
	assert.Nil(t, table.get(h))
	table.each(func(int64, *int) { t.Error("a reserved handle has no object yet") })
	table.fill(h, &object)
	assert.Same(t, &object, table.get(h))
	table.take(h)
	table.fill(h, &object)
	assert.Nil(t, table.get(h), "a handle that was taken stays stale")
}

func TestEachMayChangeTheTable(t *testing.T) {
	table := newTable[int](1)
	objects := []int{1, 2, 3}
	for i := range objects {
		table.add(&objects[i])
	}
	seen := []int{}
	table.each(func(h int64, object *int) {
		seen = append(seen, *object)
		assert.Same(t, object, table.take(h))
	})
	assert.Equal(t, objects, seen)
	table.each(func(int64, *int) { t.Error("all have been taken") })
}

func TestThreadsShareATable(t *testing.T) {
	const threads, each = 8, 200
	table := newTable[int](1)
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() {
			for range each {
				object := i
				h := table.add(&object)
				if got := table.get(h); got != &object {
					t.Errorf("handle %#x names %v", h, got)
				}
				if got := table.take(h); got != &object {
					t.Errorf("handle %#x named %v", h, got)
				}
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, len(table.items), 1+threads)
}
