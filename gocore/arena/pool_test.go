package arena

import (
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

const mib = 1 << 20

func (p *Pool) must(t testing.TB, n uint64, zero bool) []byte {
	t.Helper()
	at := p.Alloc(n, zero)
	require.NotNil(t, at, "%d bytes", n)
	return unsafe.Slice((*byte)(at), n)
}

// held returns how many bytes are allocated.
func (p *Pool) held() (live uint64) {
	for _, r := range p.live {
		live += r.bytes
	}
	return live
}

// check reports what is wrong with the pool's records: every byte of every chunk is in exactly one run.
func (p *Pool) check(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	count := map[*chunk]int{}
	covered := map[*chunk]uint64{}
	var sizes [2]uint64
	for i, f := range []*runs{&p.dirty, &p.clean} {
		for addr, r := range f.begin {
			require.Equal(t, addr, r.addr)
			require.Same(t, r, f.end[r.end()])
			require.Same(t, r, f.bins[binOf(r.bytes)][r.index])
			if next := f.begin[r.end()]; next != nil {
				require.NotSame(t, r.chunk, next.chunk, "neighbours are not merged")
			}
			covered[r.chunk] += r.bytes
			sizes[i] += r.bytes
		}
		require.Len(t, f.end, len(f.begin))
		n := 0
		for r := f.oldest; r != nil; r = r.newer {
			n++
			require.Same(t, r, f.begin[r.addr])
			require.True(t, r.newer != nil || r == f.newest)
		}
		require.Len(t, f.begin, n)
		require.Equal(t, sizes[i], f.bytes)
		for b, bin := range f.bins {
			require.Equal(t, len(bin) > 0, f.filled[b/64]>>(b%64)&1 == 1)
		}
	}
	for addr, r := range p.live {
		require.Equal(t, addr, r.addr)
		covered[r.chunk] += r.bytes
		count[r.chunk]++
	}
	for _, c := range p.chunks {
		require.Equal(t, c.bytes, covered[c])
		require.Equal(t, c.live, count[c])
		delete(covered, c)
	}
	require.Empty(t, covered, "runs of chunks that are gone")
	require.LessOrEqual(t, p.dirty.bytes, p.keep)
}

func TestPoolMemoryIsOfTheArenaAlignedAndZeroIfAsked(t *testing.T) {
	h := &heap{}
	p := newPool(h, 32*mib)
	p.lazy = 4 * mib
	for _, n := range []uint64{0, 1, 4096, 5000, 64 << 10, mib, 4 * mib, 4*mib + 1, 20 * mib, 40 * mib, 100 * mib} {
		for round := range 3 {
			mem := p.must(t, n, true)
			assert.Zero(t, uintptr(addrOf(mem))%uintptr(pageBytes))
			assert.True(t, allZero(mem), "%d bytes, round %d", n, round)
			_, ok := h.find(addrOf(mem), len(mem))
			assert.True(t, ok)
			for i := 0; i < len(mem); i += 64 {
				mem[i] = 0xff
			}
			if n > 0 {
				mem[n-1] = 0xff
			}
			p.check(t)
			assert.True(t, p.Free(addrOf(mem)))
			assert.False(t, p.Free(addrOf(mem)), "it is not the pool's any more")
			p.check(t)
		}
	}
	var here byte
	assert.False(t, p.Free(unsafe.Pointer(&here)))
	_, ours := p.Resize(unsafe.Pointer(&here), 10)
	assert.False(t, ours)
	assert.Nil(t, p.Alloc(1<<47, false))
	assert.Nil(t, p.Alloc(sys.SystemMemory()+1, true), "the kernel would kill who touches it")
	assert.Nil(t, p.Alloc(^uint64(0), true))
}

func TestPoolUsesDirtyMemoryAgain(t *testing.T) {
	p := newPool(&heap{}, 32*mib)
	p.lazy = 4 * mib
	first := p.must(t, mib, false)
	for i := range first {
		first[i] = 7
	}
	before := resident(t, p.heap)
	require.True(t, p.Free(addrOf(first)))
	assert.Equal(t, before, resident(t, p.heap), "its pages stay")
	second := p.must(t, mib, false)
	assert.Equal(t, addrOf(first), addrOf(second))
	assert.EqualValues(t, 7, second[mib/2])
	require.True(t, p.Free(addrOf(second)))
	// A part of it, and cleared.
	part := p.must(t, mib/2, true)
	assert.True(t, allZero(part))
	assert.Equal(t, before, resident(t, p.heap))
	// Zeros that may stay untouched take no memory, though there is dirty memory.
	many := p.must(t, 8*mib, false)
	clear(many)
	require.True(t, p.Free(addrOf(many)))
	many = p.must(t, 8*mib, true)
	assert.LessOrEqual(t, resident(t, p.heap), before+8*mib, "which stays")
	assert.True(t, allZero(many[:4096]))
}

func TestPoolReturnsMemoryToTheSystem(t *testing.T) {
	p := newPool(&heap{}, 8*mib)
	var all [][]byte
	for range 40 {
		mem := p.must(t, mib, false)
		clear(mem)
		all = append(all, mem)
	}
	assert.GreaterOrEqual(t, resident(t, p.heap), int64(40*mib))
	for i, mem := range all {
		require.True(t, p.Free(addrOf(mem)))
		p.check(t)
		assert.LessOrEqual(t, resident(t, p.heap), int64(max(39-i, 0)*mib+8*mib))
	}
	// What was freed last is what is dirty.
	assert.GreaterOrEqual(t, p.dirty.bytes, uint64(6*mib))
	again := p.must(t, mib, false)
	assert.GreaterOrEqual(t, uintptr(addrOf(again)), uintptr(addrOf(all[32])))
	require.True(t, p.Free(addrOf(again)))
	// More than is kept goes at once, with its chunk.
	large := p.must(t, 200*mib, false)
	assert.Len(t, p.chunks, 2)
	clear(large[:20*mib])
	require.True(t, p.Free(addrOf(large)))
	assert.Len(t, p.chunks, 1)
	assert.LessOrEqual(t, resident(t, p.heap), int64(8*mib))
}

func TestPoolResizes(t *testing.T) {
	p := newPool(&heap{}, 32*mib)
	mem := p.must(t, 100_000, false)
	for i := range mem {
		mem[i] = byte(i % 251)
	}
	for _, n := range []uint64{100_000, 101_000, 5 * mib, 90_000, 70_000, 1} {
		to, ours := p.Resize(addrOf(mem), n)
		require.True(t, ours)
		require.NotNil(t, to)
		mem = unsafe.Slice((*byte)(to), n)
		for i := range min(n, 70_000) {
			require.EqualValues(t, byte(i%251), mem[i], "%d bytes, byte %d", n, i)
		}
		p.check(t)
	}
	assert.EqualValues(t, pageBytes, p.held())
	before, next := addrOf(mem), p.must(t, mib, false)
	require.True(t, p.Free(addrOf(next)))
	longer, _ := p.Resize(before, 3*mib)
	assert.Equal(t, before, longer, "what follows is free")
	p.check(t)
	_, _ = p.Resize(longer, 1)
	p.closed = true
	to, ours := p.Resize(addrOf(mem), 65*mib) // more than the chunk has
	assert.True(t, ours)
	assert.Nil(t, to)
	mem[0] = 5
	elsewhere := make([]byte, mib)
	p.Move(addrOf(elsewhere), addrOf(mem), mib)
	assert.EqualValues(t, 5, elsewhere[0])
	emptied(t, p)
}

// play allocates, resizes and frees as the bytes of script say, and looks at every byte that it should find.
func play(t testing.TB, p *Pool, script []byte, seed byte) {
	type piece struct {
		mem  []byte
		fill byte
	}
	var all []piece
	fill := func(mem []byte, b byte) {
		for i := 0; i < len(mem); i += 512 {
			mem[i] = b
		}
		if len(mem) > 0 {
			mem[len(mem)-1] = b
		}
	}
	has := func(mem []byte, b byte) bool {
		for i := 0; i < len(mem); i += 512 {
			if mem[i] != b {
				return false
			}
		}
		return len(mem) == 0 || mem[len(mem)-1] == b
	}
	for i := 0; i+2 < len(script); i += 3 {
		n := uint64(script[i+1]) << (script[i+2] % 18)
		b := seed + byte(i)
		switch kind := script[i] % 8; {
		case kind < 4 && len(all) < 30:
			zero := kind%2 == 0
			mem := p.must(t, n, zero)
			if zero {
				require.True(t, has(mem, 0), "%d bytes that should be zero", n)
			}
			fill(mem, b)
			all = append(all, piece{mem, b})
		case kind == 4 && len(all) > 0:
			k := int(script[i+2]) % len(all)
			old := all[k]
			to, ours := p.Resize(addrOf(old.mem), n)
			require.True(t, ours && to != nil)
			mem := unsafe.Slice((*byte)(to), n)
			kept := min(len(old.mem), len(mem))
			require.True(t, kept == 0 || mem[0] == old.fill && mem[(kept-1)/512*512] == old.fill)
			fill(mem, b)
			all[k] = piece{mem, b}
		case len(all) > 0:
			k := int(script[i+1]) % len(all)
			require.True(t, has(all[k].mem, all[k].fill), "an allocation has been overwritten")
			require.True(t, p.Free(addrOf(all[k].mem)))
			all[k] = all[len(all)-1]
			all = all[:len(all)-1]
		}
	}
	for _, e := range all {
		require.True(t, has(e.mem, e.fill), "an allocation has been overwritten")
		require.True(t, p.Free(addrOf(e.mem)))
	}
}

// emptied checks that everything is free, and that nothing is left once it is clean.
func emptied(t testing.TB, p *Pool) {
	p.check(t)
	require.Empty(t, p.live)
	p.mu.Lock()
	p.trim(0)
	p.mu.Unlock()
	p.check(t)
	require.LessOrEqual(t, len(p.chunks), 1, "chunks without allocations stay")
	var st unix.Stat_t
	if p.heap.file() >= 0 {
		require.NoError(t, unix.Fstat(p.heap.file(), &st))
		require.Zero(t, st.Blocks)
	}
}

func FuzzPool(f *testing.F) {
	f.Add([]byte("a script of allocations, which this text is as well as any"), uint8(4))
	f.Add([]byte{0, 255, 15, 0, 255, 15, 5, 0, 0, 1, 200, 15, 4, 3, 1, 6, 1, 1}, uint8(0))
	f.Fuzz(func(t *testing.T, script []byte, keep uint8) {
		h := &heap{}
		p := newPool(h, uint64(keep)<<18)
		p.lazy = mib
		play(t, p, script[:min(len(script), 600)], 1)
		emptied(t, p)
		for _, c := range p.chunks {
			require.NoError(t, h.free(c.mem()))
		}
		if h.file() >= 0 {
			require.NoError(t, unix.Close(h.file()))
		}
	})
}

func TestPoolOfManyThreads(t *testing.T) {
	p := newPool(&heap{}, 16*mib)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(3, uint64(worker)))
			script := make([]byte, 6000)
			for i := range script {
				script[i] = byte(r.Uint32())
			}
			play(t, p, script, byte(worker*60))
		}()
	}
	wg.Wait()
	emptied(t, p)
}

func TestPoolHasFewMappings(t *testing.T) {
	p := newPool(&heap{}, 16*mib)
	mappings := func() int {
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		n := 0
		for _, b := range maps {
			if b == '\n' {
				n++
			}
		}
		return n
	}
	before := mappings()
	var all [][]byte
	for range 20_000 { // 640 MiB, of which 20000 pages are touched
		mem := p.must(t, 32<<10, false)
		mem[0] = 1
		all = append(all, mem)
	}
	assert.Less(t, mappings(), before+40)
	for i := 0; i < len(all); i += 2 {
		require.True(t, p.Free(addrOf(all[i])))
	}
	assert.Less(t, mappings(), before+40)
	p.check(t)
	for i := 1; i < len(all); i += 2 {
		require.True(t, p.Free(addrOf(all[i])))
	}
	emptied(t, p)
}

// TestPoolSnapshot compares the copies for a child with what was there before the fork.
func TestPoolSnapshot(t *testing.T) {
	p := newPool(&heap{}, 16*mib)
	small, large := p.must(t, 100_000, false), p.must(t, 80*mib, true)
	gone := p.must(t, 200_000, false)
	for i := range small {
		small[i] = byte(i % 253)
	}
	gone[0], large[0], large[50*mib], large[80*mib-1] = 9, 1, 2, 3
	require.True(t, p.Free(addrOf(gone)))
	out := make([]ChunkCopy, MaxChunks)
	n := p.BeforeFork(out)
	assert.Equal(t, 2, n)
	assert.False(t, p.mu.TryLock(), "nothing changes meanwhile")
	copyOf := func(mem []byte) []byte {
		for _, c := range out[:n] {
			if at := uint64(uintptr(addrOf(mem))); at >= c.Addr && at < c.Addr+c.Bytes {
				s := span{addr: uintptr(c.Copy + at - c.Addr), bytes: uint64(len(mem))}
				return s.mem()
			}
		}
		t.Fatal("no chunk has the memory")
		return nil
	}
	for _, mem := range [][]byte{small, large} {
		assert.True(t, string(mem[:100_000]) == string(copyOf(mem)[:100_000]))
		assert.Equal(t, mem[len(mem)-1], copyOf(mem)[len(mem)-1])
	}
	assert.EqualValues(t, 2, copyOf(large)[50*mib])
	copied := copyOf(large)
	copied[0] = 77
	assert.EqualValues(t, 1, large[0], "a copy is no mapping of the same memory")
	assert.LessOrEqual(t, residentOf(t, copied), 8*mib, "holes are not copied")
	assert.Less(t, resident(t, p.heap), int64(mib), "nor made")
	p.AfterFork(out[:n])
	assert.True(t, p.Free(addrOf(small)) && p.Free(addrOf(large)))
	emptied(t, p)
	assert.LessOrEqual(t, p.BeforeFork(out), 1)
	assert.Zero(t, out[0].Copy, "there is nothing to copy")
	p.AfterFork(out[:1])
}

// residentOf returns how many bytes of private memory have pages.
func residentOf(t *testing.T, mem []byte) (n int) {
	seen := make([]byte, (len(mem)+int(pageBytes)-1)/int(pageBytes))
	_, _, errno := syscall.Syscall(unix.SYS_MINCORE, uintptr(addrOf(mem)), uintptr(len(mem)), uintptr(unsafe.Pointer(&seen[0])))
	require.Zero(t, errno)
	for _, b := range seen {
		n += int(b&1) * int(pageBytes)
	}
	return n
}

func BenchmarkPool(b *testing.B) {
	for _, n := range []uint64{64 << 10, mib} {
		b.Run(map[uint64]string{64 << 10: "64KiB", mib: "1MiB"}[n], func(b *testing.B) {
			p := newPool(&heap{}, 16*mib)
			for b.Loop() {
				p.Free(p.Alloc(n, false))
			}
		})
	}
}

func TestSizeAndPlace(t *testing.T) {
	h := &heap{}
	p := newPool(h, 1<<20)
	a := p.Alloc(100, true)
	b := p.Alloc(3*pageBytes, true)
	require.Equal(t, pageBytes, p.Size(a))
	require.Equal(t, 3*pageBytes, p.Size(b))
	require.Zero(t, p.Size(unsafe.Add(b, pageBytes)), "inside of an array")
	at, ok := p.Place(unsafe.Add(b, 8), 16)
	require.True(t, ok)
	found, ok := h.find(unsafe.Add(b, 8), 16)
	require.True(t, ok)
	require.Equal(t, found, at)
	var here int
	_, ok = p.Place(unsafe.Pointer(&here), 8)
	require.False(t, ok)
	_, ok = p.Place(b, chunkBytes)
	require.False(t, ok, "beyond the chunk")
	p.Free(b)
	require.Zero(t, p.Size(b))
}
