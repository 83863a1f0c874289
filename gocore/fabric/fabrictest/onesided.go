package fabrictest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
)

func needOneSided(t *testing.T, w *World) {
	t.Helper()
	if !w.Ranks[0].Caps().OneSided {
		t.Skip(w.Ranks[0].Name() + " has no one-sided operations")
	}
}

// Exposed is memory registered by a rank.
type Exposed struct {
	Mem    []byte
	Key    fabric.RemoteKey
	region fabric.Region
}

// Expose registers n bytes of r until the test ends.
func Expose(t testing.TB, r *Rank, n int) *Exposed {
	t.Helper()
	x := &Exposed{Mem: Memory(t, n)}
	region, err := r.Register(Pointer(x.Mem), n)
	require.NoError(t, err)
	x.region, x.Key = region, region.Key()
	t.Cleanup(x.Close)
	return x
}

// At returns the key of the memory at offset off.
func (x *Exposed) At(off int) fabric.RemoteKey {
	return fabric.RemoteKey{Addr: x.Key.Addr + uint64(off), Key: x.Key.Key}
}

// Close ends the registration.
func (x *Exposed) Close() {
	if x.region != nil {
		_ = x.region.Close()
		x.region = nil
	}
}

// targets returns the ranks that r can connect to.
func targets(w *World, r *Rank) []int {
	var list []int
	for peer := range w.Ranks {
		if peer != r.ID || r.Caps().Keys {
			list = append(list, peer)
		}
	}
	return list
}

// Single puts and gets of all sizes, at odd addresses, from registered and from
// unregistered local memory.
func testPutGet(t *testing.T, w *World) {
	needOneSided(t, w)
	const room, guard = 4<<20 + 4096, 128
	var exposed []*Exposed
	for _, r := range w.Ranks {
		exposed = append(exposed, Expose(t, r, room))
	}
	plain, own := Memory(t, room), Expose(t, w.Ranks[0], room)
	r := w.Ranks[0]
	for _, peer := range targets(w, r) {
		ep, x := r.Endpoint(peer), exposed[peer]
		for i, n := range []int{0, 1, 7, 8, 9, 64, 255, 4096, 4097, 65537, 1 << 20, 4<<20 + 3} {
			for j, local := range [][]byte{plain, own.Mem} {
				off, at := 1+i*3, guard+i*5+j
				what := fmt.Sprintf("%d bytes, rank %d, memory %d", n, peer, j)
				seed := uint64(peer*1000 + i*10 + j)
				// Only a few kilobytes around it are checked: emulated devices are slow.
				span := min(room, n+8192)
				target, origin := x.Mem[:span], local[:span]
				Fill(target, 1)
				Fill(origin, 2)
				Fill(local[off:off+n], seed)
				require.NoError(t, r.Do(seed, func() (bool, error) { return ep.Put(Pointer(local[off:]), x.At(at), n, seed) }), "put "+what)
				assert.Empty(t, Check(x.Mem[at:at+n], seed), "put "+what)
				assertRest(t, target, 1, at, n, "put "+what)

				Fill(origin, 3)
				require.NoError(t, r.Do(seed, func() (bool, error) { return ep.Get(Pointer(local[off:]), x.At(at), n, seed) }), "get "+what)
				assert.Empty(t, Check(local[off:off+n], seed), "get "+what)
				assertRest(t, origin, 3, off, n, "get "+what)
			}
		}
	}
	if r.Transport.Caps().Synchronous {
		for _, peer := range targets(w, r) {
			done, err := r.Endpoint(peer).Put(Pointer(plain), exposed[peer].At(0), 1<<20, 1)
			assert.True(t, done && err == nil, "a put to rank %d of a transport that says it is synchronous: %v, %v", peer, done, err)
		}
	}
	assert.Empty(t, r.Left(), "completed more often than started")
}

// assertRest checks that mem is still filled with seed around n bytes at off.
func assertRest(t *testing.T, mem []byte, seed uint64, off, n int, what string) {
	t.Helper()
	want := make([]byte, len(mem))
	Fill(want, seed)
	copy(want[off:off+n], mem[off:off+n])
	if string(want) != string(mem) {
		for i := range mem {
			if mem[i] != want[i] {
				t.Errorf("%s: byte %d was touched, which is %d after the last that belongs to it", what, i, i-off-n+1)
				return
			}
		}
	}
}

// Puts and gets of several runs.
func testRuns(t *testing.T, w *World) {
	needOneSided(t, w)
	r, room := w.Ranks[0], 1<<20
	for _, peer := range targets(w, r) {
		ep, x := r.Endpoint(peer), Expose(t, w.Ranks[peer], room)
		for i, local := range [][]byte{Memory(t, room), Expose(t, r, room).Mem} {
			for _, count := range []int{1, 2, 3, 17, r.Caps().MaxRuns} {
				count = min(count, r.Caps().MaxRuns, 256)
				var runs []fabric.Run
				at, total := 5, 0
				for k := range count {
					n := []int{1, 8, 100, 3, 1500, 0, 64}[k%7]
					runs = append(runs, fabric.Run{Addr: x.Key.Addr + uint64(at), N: n})
					at, total = at+n+1+k%9, total+n
				}
				what := fmt.Sprintf("%d runs, rank %d, memory %d", count, peer, i)
				want := make([]byte, room)
				Fill(want, 1)
				Fill(x.Mem, 1)
				Fill(local, 77)
				pos := 0
				for _, run := range runs {
					copy(want[run.Addr-x.Key.Addr:][:run.N], local[pos:])
					pos += run.N
				}
				cookie := uint64(count)
				require.NoError(t, r.Do(cookie, func() (bool, error) {
					return ep.PutRuns(Pointer(local), x.Key.Key, append([]fabric.Run(nil), runs...), cookie)
				}), "put "+what)
				assert.True(t, string(want) == string(x.Mem), "put "+what)

				Fill(local, 3)
				require.NoError(t, r.Do(cookie, func() (bool, error) {
					return ep.GetRuns(Pointer(local), x.Key.Key, append([]fabric.Run(nil), runs...), cookie)
				}), "get "+what)
				expected := make([]byte, room)
				Fill(expected, 77)
				assert.True(t, string(expected[:total]) == string(local[:total]), "get "+what)
				assertRest(t, local, 3, 0, total, "get "+what)
			}
		}
	}
	assert.Empty(t, r.Left(), "completed more often than started")
}

// Many operations in flight from each rank to each other, with messages in between.
func testMany(t *testing.T, w *World) {
	needOneSided(t, w)
	const n, size = 400, 4096
	ranks := len(w.Ranks)
	exposed := make([]*Exposed, ranks*ranks) // by target and origin
	local := make([][]byte, ranks)
	var boxes []*inbox
	for _, r := range w.Ranks {
		boxes = append(boxes, newInbox(w, r))
		local[r.ID] = Memory(t, ranks*n*size)
		for origin := range w.Ranks {
			exposed[r.ID*ranks+origin] = Expose(t, r, n*size)
		}
	}
	together(t, w, func(r *Rank, peer int) error {
		ep, x := r.Endpoint(peer), exposed[peer*ranks+r.ID]
		mem := local[r.ID][peer*n*size:][:n*size]
		cookie := func(k int) uint64 { return uint64(peer+1)<<32 | uint64(k) }
		for pass := range 2 {
			var open []int
			for k := range n {
				part := mem[k*size:][:size-k]
				if pass == 0 {
					Fill(part, cookie(k)^uint64(r.ID))
				} else {
					Fill(part, 5)
				}
				done, err := r.Start(func() (bool, error) {
					if pass == 0 {
						return ep.Put(Pointer(part), x.At(k*size), len(part), cookie(k))
					}
					return ep.Get(Pointer(part), x.At(k*size), len(part), cookie(k))
				})
				if err != nil {
					return err
				}
				if !done {
					open = append(open, k)
				}
			}
			if err := sendAll(r, peer, pass*100, pass*100+100); err != nil {
				return err
			}
			for _, k := range open {
				if err := r.Wait(cookie(k)); err != nil {
					return err
				}
			}
			for k := range n {
				if bad := Check(mem[k*size:][:size-k], cookie(k)^uint64(r.ID)); bad != "" {
					return fmt.Errorf("rank %d to %d, operation %d of pass %d: %s", r.ID, peer, k, pass, bad)
				}
			}
		}
		return nil
	})
	for _, r := range w.Ranks {
		assert.Empty(t, r.Left(), "completed more often than started")
		for src := range w.Ranks {
			if src != r.ID {
				boxes[r.ID].wait(t, src, 200)
			}
		}
	}
}

// Operations that the transport lacks return ErrUnsupported.
func testRefused(t *testing.T, w *World) {
	r, c := w.Ranks[0], w.Ranks[0].Caps()
	ep, mem := r.Endpoint(1), Memory(t, 64)
	meet(t, w)
	if !c.OneSided {
		for name, op := range map[string]func() (bool, error){
			"put":      func() (bool, error) { return ep.Put(Pointer(mem), fabric.RemoteKey{}, 8, 1) },
			"get":      func() (bool, error) { return ep.Get(Pointer(mem), fabric.RemoteKey{}, 8, 1) },
			"put runs": func() (bool, error) { return ep.PutRuns(Pointer(mem), 0, []fabric.Run{{N: 8}}, 1) },
			"get runs": func() (bool, error) { return ep.GetRuns(Pointer(mem), 0, []fabric.Run{{N: 8}}, 1) },
		} {
			done, err := op()
			assert.ErrorIs(t, err, fabric.ErrUnsupported, name)
			assert.False(t, done, name)
		}
	}
	if !c.Atomics {
		done, err := ep.FetchAdd(Pointer(mem), fabric.RemoteKey{}, 1, 1)
		assert.ErrorIs(t, err, fabric.ErrUnsupported)
		assert.False(t, done)
		done, err = ep.CompareSwap(Pointer(mem), fabric.RemoteKey{}, 1, 2, 1)
		assert.ErrorIs(t, err, fabric.ErrUnsupported)
		assert.False(t, done)
	}
	assert.Empty(t, r.Left())
}

// Wrong keys and addresses give an error that names the peer and touch nothing.
// Afterwards either everything works or the connection is reported broken.
func testWrongKey(t *testing.T, w *World) {
	needOneSided(t, w)
	r := w.Ranks[0]
	if !r.Caps().Keys {
		t.Skip(r.Name() + " needs no keys")
	}
	local := Memory(t, 8192)
	x, y := Expose(t, w.Ranks[1], 4096), Expose(t, w.Ranks[1], 4096)
	stale := y.Key
	Fill(x.Mem, 1)
	y.Close()
	meet(t, w)
	// Endpoint is called each time: a broken connection may be made again.
	ops := []struct {
		name string
		run  func(ep fabric.Endpoint, cookie uint64) (bool, error)
	}{
		{"put with a wrong key", func(ep fabric.Endpoint, c uint64) (bool, error) {
			return ep.Put(Pointer(local), fabric.RemoteKey{Addr: x.Key.Addr, Key: x.Key.Key ^ 0x5a5a00}, 64, c)
		}},
		{"get beyond the end", func(ep fabric.Endpoint, c uint64) (bool, error) {
			return ep.Get(Pointer(local), x.At(4090), 64, c)
		}},
		{"put before the start", func(ep fabric.Endpoint, c uint64) (bool, error) {
			return ep.Put(Pointer(local), x.At(-8), 64, c)
		}},
		{"put to memory that was deregistered", func(ep fabric.Endpoint, c uint64) (bool, error) {
			return ep.Put(Pointer(local), stale, 64, c)
		}},
		{"put to address 0", func(ep fabric.Endpoint, c uint64) (bool, error) {
			return ep.Put(Pointer(local), fabric.RemoteKey{Key: x.Key.Key}, 64, c)
		}},
	}
	for i, op := range ops {
		broken := func() bool { return len(r.Broke(1)) > 0 }
		err := r.Do(uint64(i), func() (bool, error) { return op.run(r.Endpoint(1), uint64(i)) })
		if broken() && i > 0 && err != nil {
			continue // the operation before has ended the connection, which is allowed
		}
		require.Error(t, err, op.name)
		var failed *fabric.OpError
		if assert.True(t, errors.As(err, &failed), "%s: %v", op.name, err) {
			assert.Equal(t, 1, failed.Peer, op.name)
			assert.NotEmpty(t, failed.Status, op.name)
			t.Logf("%s: %v", op.name, err)
		}
		assert.Empty(t, Check(x.Mem, 1), op.name)
		if err := r.Do(99, func() (bool, error) { return r.Endpoint(1).Get(Pointer(local), x.At(0), 64, 99) }); err != nil {
			Until(t, fmt.Sprintf("Broken, since the next operation fails: %v", err), broken)
		} else {
			assert.Empty(t, Check(local[:64], 1))
		}
	}
	assert.Empty(t, r.Left(), "completed more often than started")
}

func needAtomics(t *testing.T, w *World) {
	t.Helper()
	if !w.Ranks[0].Caps().Atomics {
		t.Skip(w.Ranks[0].Name() + " has no atomic operations")
	}
}

// origins runs f concurrently on all ranks that can connect to rank 0.
func origins(t *testing.T, w *World, f func(r *Rank) error) {
	t.Helper()
	var all sync.WaitGroup
	failed := make(chan error, len(w.Ranks))
	for _, r := range w.Ranks {
		if r.ID != 0 || r.Caps().Keys {
			all.Go(func() { failed <- f(r) })
		}
	}
	all.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
}

// All ranks, including the target, add to one word: each fetches another value.
func testFetchAdd(t *testing.T, w *World) {
	needAtomics(t, w)
	const n = 300
	x := Expose(t, w.Ranks[0], 64)
	var mu sync.Mutex
	found := map[uint64]int{}
	origins(t, w, func(r *Rank) error {
		old := Memory(t, 8)
		for range n {
			if err := r.Do(7, func() (bool, error) { return r.Endpoint(0).FetchAdd(Pointer(old), x.At(8), 3, 7) }); err != nil {
				return err
			}
			mu.Lock()
			found[word(old)]++
			mu.Unlock()
		}
		return nil
	})
	total := 0
	for value, times := range found {
		assert.Equal(t, 1, times, "%d was there twice", value)
		assert.Zero(t, value%3)
		total++
	}
	assert.Equal(t, uint64(3*total), word(x.Mem[8:]))
	assert.Zero(t, word(x.Mem), "the word before")
	assert.Zero(t, word(x.Mem[16:]), "the word behind")
}

// All ranks increment one word by compare-and-swap.
func testCompareSwap(t *testing.T, w *World) {
	needAtomics(t, w)
	const n = 100
	x := Expose(t, w.Ranks[0], 64)
	ranks := 0
	var mu sync.Mutex
	origins(t, w, func(r *Rank) error {
		mu.Lock()
		ranks++
		mu.Unlock()
		old := Memory(t, 8)
		for guess, won := uint64(0), 0; won < n; {
			if err := r.Do(8, func() (bool, error) {
				return r.Endpoint(0).CompareSwap(Pointer(old), x.At(8), guess, guess+1, 8)
			}); err != nil {
				return err
			}
			if word(old) == guess {
				won, guess = won+1, guess+1
			} else {
				guess = word(old)
			}
		}
		return nil
	})
	assert.Equal(t, uint64(ranks*n), word(x.Mem[8:]))
	assert.Zero(t, word(x.Mem), "the word before")
	assert.Zero(t, word(x.Mem[16:]), "the word behind")
}
