package arena

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func addrOf(mem []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(mem)) }

func allZero(mem []byte) bool { return !slices.ContainsFunc(mem, func(b byte) bool { return b != 0 }) }

// descriptors returns the number of open files of the process.
func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// resident returns how many bytes of memory the arena's file has.
func resident(t *testing.T, h *heap) int64 {
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(h.file(), &st))
	return st.Blocks * 512
}

func TestMemoryIsZeroedAndFound(t *testing.T) {
	h := &heap{}
	for _, n := range []int{0, 1, 64, 65, 2048, 2049, 4096, 4097, 100_000, 5 << 20} {
		for round := range 2 { // the second one reuses the memory of the first
			mem, err := h.alloc(n, 0)
			require.NoError(t, err)
			require.Len(t, mem, n)
			assert.True(t, allZero(mem), "%d bytes, round %d", n, round)
			for i := range mem {
				mem[i] = 0xff
			}
			off, ok := h.find(addrOf(mem), n)
			require.True(t, ok, "%d bytes", n)
			if n > 1 {
				inner, ok := h.find(unsafe.Pointer(&mem[n/2]), n-n/2)
				assert.True(t, ok)
				assert.Equal(t, off+uint64(n/2), inner)
			}
			_, ok = h.find(addrOf(mem), cap(mem)+1)
			assert.False(t, ok, "more than the allocation has")
			require.NoError(t, h.free(mem))
			_, ok = h.find(addrOf(mem), n)
			assert.False(t, ok, "%d bytes that have been freed", n)
			assert.ErrorContains(t, h.free(mem), "nothing is allocated there")
		}
	}
	var here byte
	_, ok := h.find(unsafe.Pointer(&here), 1)
	assert.False(t, ok)
	_, ok = h.find(unsafe.Pointer(&here), -1)
	assert.False(t, ok)
}

func TestAlignment(t *testing.T) {
	h := &heap{}
	for align := 1; align <= MaxAlign; align *= 2 {
		for _, n := range []int{0, 1, 100, 5000, 3 << 20} {
			mem, err := h.alloc(n, align)
			require.NoError(t, err, "%d bytes aligned to %d", n, align)
			assert.Zero(t, uintptr(addrOf(mem))%uintptr(align), "%d bytes aligned to %d", n, align)
			if n > 0 {
				mem[0], mem[n-1] = 1, 2
			}
			off, ok := h.find(addrOf(mem), n)
			assert.True(t, ok)
			assert.Zero(t, off%uint64(align))
			if align%3 == 1 { // leave some, so that there are gaps
				require.NoError(t, h.free(mem))
			}
		}
	}
	for _, align := range []int{-1, 3, 48, 2 * MaxAlign} {
		_, err := h.alloc(10, align)
		assert.ErrorContains(t, err, "power of two up to 2097152")
	}
	_, err := h.alloc(-1, 0)
	assert.ErrorContains(t, err, "-1 bytes")
	_, err = h.alloc(1<<47, 0)
	assert.ErrorContains(t, err, "no such size")
}

func TestFreedMemoryIsReturnedAndItsRangeReused(t *testing.T) {
	h := &heap{}
	var all [][]byte
	for range 8 {
		mem, err := h.alloc(1<<20, 0)
		require.NoError(t, err)
		mem[0], mem[1<<20-1] = 1, 1
		all = append(all, mem)
	}
	for i := range all[0] {
		all[0][i] = 1
	}
	assert.GreaterOrEqual(t, resident(t, h), int64(1<<20))
	for _, i := range []int{0, 2, 1, 7, 6, 4, 5, 3} {
		require.NoError(t, h.free(all[i]))
	}
	assert.Zero(t, resident(t, h))
	assert.Equal(t, ranges{{0, 8 << 20}}, h.spare, "neighbours merge")
	mem, err := h.alloc(8<<20, 0)
	require.NoError(t, err)
	assert.EqualValues(t, 8<<20, h.size)
	assert.True(t, allZero(mem))
	require.NoError(t, h.free(mem))
	assert.Empty(t, h.spans)
	// A larger one begins at the free range at the end of the file.
	_, err = h.alloc(9<<20, 0)
	require.NoError(t, err)
	assert.EqualValues(t, 10<<20, h.size)
}

func TestMemoryIsAllocatedWhenTouched(t *testing.T) {
	h := &heap{}
	mem, err := h.alloc(40<<30, 0)
	require.NoError(t, err)
	_, ok := h.find(addrOf(mem), len(mem))
	assert.True(t, ok)
	mem[39<<30] = 7
	assert.LessOrEqual(t, resident(t, h), int64(2<<20))
	require.NoError(t, h.free(mem))
	assert.Zero(t, resident(t, h))
}

func TestManySmallAllocations(t *testing.T) {
	h := &heap{}
	require.NoError(t, h.open())
	before := descriptors(t)
	const n = 100_000
	all := make([][]byte, n)
	at := map[uintptr]bool{}
	for i := range all {
		mem, err := h.alloc(64, 0)
		require.NoError(t, err)
		mem[0], mem[63] = byte(i), byte(i>>8)
		at[uintptr(addrOf(mem))] = true
		all[i] = mem
	}
	assert.Len(t, at, n)
	assert.Equal(t, before, descriptors(t))
	assert.Len(t, h.spans, (n+1023)/1024)
	for i, mem := range all {
		require.True(t, mem[0] == byte(i) && mem[63] == byte(i>>8), "block %d has been overwritten", i)
		_, ok := h.find(addrOf(mem), 64)
		require.True(t, ok)
		_, ok = h.find(addrOf(mem), 65)
		require.False(t, ok, "two blocks are not one allocation")
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, mem := range all {
		require.NoError(t, h.free(mem))
	}
	assert.Len(t, h.spans, 1, "one empty slab stays")
	assert.LessOrEqual(t, resident(t, h), int64(slabBytes))
	assert.ErrorContains(t, h.free(all[0]), "nothing is allocated there")
}

// TestRandomUse checks random allocations: no two overlap, each keeps its contents, and
// in the end the file is one free range.
func TestRandomUse(t *testing.T) {
	h := &heap{}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(7, uint64(worker)))
			mine := map[int][]byte{}
			next := 0
			for range 3000 {
				if len(mine) < 40 && r.IntN(3) > 0 {
					n := 1 + r.IntN(1<<r.IntN(18))
					mem, err := h.alloc(n, 1<<r.IntN(15))
					if !assert.NoError(t, err) || !assert.True(t, allZero(mem), "what was here before shows") {
						return
					}
					for i := range mem {
						mem[i] = byte(next + worker)
					}
					mine[next] = mem
					next++
					continue
				}
				for k, mem := range mine { // any
					if slices.ContainsFunc(mem, func(b byte) bool { return b != byte(k+worker) }) {
						t.Errorf("worker %d: allocation %d has been overwritten", worker, k)
					}
					_, ok := h.find(addrOf(mem), len(mem))
					assert.True(t, ok)
					assert.NoError(t, h.free(mem))
					delete(mine, k)
					break
				}
			}
			for _, mem := range mine {
				assert.NoError(t, h.free(mem))
			}
		}()
	}
	wg.Wait()
	for _, slabs := range h.slabs {
		assert.LessOrEqual(t, len(slabs), 1)
		for _, s := range slabs {
			assert.Zero(t, s.blocks.n)
			h.remove(s)
			h.giveBack(s)
			h.reuse(s)
		}
	}
	assert.Empty(t, h.spans)
	assert.Equal(t, ranges{{0, h.end}}, h.spare)
	assert.Zero(t, resident(t, h))
}

func TestRanges(t *testing.T) {
	var r ranges
	for _, at := range []uint64{40, 0, 20, 10} {
		r.put(at, 10)
	}
	assert.Equal(t, ranges{{0, 30}, {40, 10}}, r)
	r.put(30, 10)
	assert.Equal(t, ranges{{0, 50}}, r)
	at, ok := r.take(1, 16)
	assert.True(t, ok)
	assert.Zero(t, at)
	at, ok = r.take(5, 16)
	assert.True(t, ok)
	assert.EqualValues(t, 16, at)
	assert.Equal(t, ranges{{1, 15}, {21, 29}}, r)
	_, ok = r.take(30, 1)
	assert.False(t, ok)
	_, ok = r.take(20, 32)
	assert.False(t, ok)
	assert.EqualValues(t, 21, r.takeLast(50))
	assert.EqualValues(t, 60, r.takeLast(60))
	assert.Equal(t, ranges{{1, 15}}, r)
}

func ExampleAlloc() {
	mem, err := Alloc(1<<20, 64)
	if err != nil {
		panic(err)
	}
	_, shared := Find(addrOf(mem), len(mem))
	fmt.Println(len(mem), shared, Free(mem))
	// Output: 1048576 true <nil>
}
