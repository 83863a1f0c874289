package mpiio

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
)

// places computes the file's byte for each byte of the stream, by the definition.
func places(t *dtype.Type, disp int64, n int) []int64 {
	var out []int64
	for tile := int64(0); len(out) < n; tile++ {
		t.Runs(1, func(off, m int) bool {
			for i := range m {
				out = append(out, disp+tile*int64(t.Extent())+int64(off+i))
			}
			return true
		})
	}
	return out[:n]
}

func types(t *testing.T) []*dtype.Type {
	t.Helper()
	base := dtype.ByName("INT")
	var all []*dtype.Type
	add := func(made *dtype.Type, err error) {
		require.NoError(t, err)
		all = append(all, made)
	}
	add(base, nil)
	add(dtype.Contiguous(base, 3))
	add(dtype.Vector(base, 4, 2, 5))
	add(dtype.Indexed(base, []int{1, 3, 2}, []int{2, 4, 11}))
	add(dtype.Subarray(base, []int{4, 5}, []int{2, 3}, []int{1, 2}, true))
	add(dtype.Subarray(base, []int{4, 5}, []int{2, 3}, []int{1, 2}, false))
	gap, err := dtype.Indexed(base, []int{1}, []int{3})
	require.NoError(t, err)
	add(dtype.Resized(gap, 0, 40))
	return all
}

func TestViewIsThatOfItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, typ := range types(t) {
		for _, disp := range []int64{0, 7} {
			v, e := NewView(disp, dtype.ByName("INT"), typ, true)
			require.Nil(t, e)
			const n = 400
			want := places(typ, disp, n)
			for at, pos := range want {
				assert.Equal(t, pos, v.Pos(int64(at)))
			}
			for pos := range want[n-1] {
				before := 0
				for before < n && want[before] < pos {
					before++
				}
				require.Equal(t, int64(before), v.Before(pos), "%v before %d", typ, pos)
			}
			for range 200 {
				at := rng.IntN(n)
				m := rng.IntN(n - at)
				var got []int64
				end := int64(-1)
				v.Runs(int64(at), int64(m), func(off, length int64) bool {
					assert.NotEqual(t, end, off, "two runs that touch are one")
					end = off + length
					for i := range length {
						got = append(got, off+i)
					}
					return true
				})
				require.Equal(t, append([]int64(nil), want[at:at+m]...), append([]int64(nil), got...))
			}
		}
	}
}

func TestBitmapYieldsWhatWasSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var m bitmap
	for range 500 {
		n := int64(1 + rng.IntN(300))
		m.reset(n)
		want := make([]bool, n)
		for range rng.IntN(6) {
			lo := rng.Int64N(n)
			hi := lo + rng.Int64N(n-lo+1)
			m.set(lo, hi)
			for i := lo; i < hi; i++ {
				want[i] = true
			}
		}
		got := make([]bool, n)
		end := int64(-1)
		m.stretches(func(from, to int64) bool {
			assert.Less(t, end, from)
			end = to
			for i := from; i < to; i++ {
				got[i] = true
			}
			return true
		})
		require.Equal(t, want, got)
	}
}
