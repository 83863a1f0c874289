package op

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
)

type folding func(o Op, k dtype.Kind, to unsafe.Pointer, in []unsafe.Pointer, n int)

var foldings = map[string]folding{"Fold": Op.Fold, "FoldStream": Op.FoldStream}

// compareWithApply folds operands, into memory of its own or, if alias is one of them, into that.
func compareWithApply(t *testing.T, r *rand.Rand, f folding, o Op, k dtype.Kind, n, operands, alias int) {
	size := n * k.Size()
	var in []unsafe.Pointer
	var all, before [][]byte
	for range operands {
		_, b := misaligned(size, r.IntN(64))
		fill(r, k, b)
		in, all, before = append(in, pointer(b)), append(all, b), append(before, bytes.Clone(b))
	}
	want := bytes.Clone(all[operands-1])
	for i := operands - 2; i >= 0; i-- {
		if n > 0 {
			o.Apply(k, pointer(want), in[i], n)
		}
	}
	around, to := misaligned(size, r.IntN(64))
	if alias < operands {
		to = all[alias]
	}
	f(o, k, pointer(to), in, n)
	requireSame(t, o, k, want, to, "%d elements of %d operands, result in operand %d", n, operands, alias)
	for i := range all {
		if i != alias {
			require.True(t, bytes.Equal(before[i], all[i]), "operand %d is left alone", i)
		}
	}
	if alias >= operands {
		clear(to)
		require.Equal(t, make([]byte, len(around)), around, "bytes around are left alone")
	}
}

func TestFoldAgreesWithApply(t *testing.T) {
	for name, f := range foldings {
		t.Run(name, func(t *testing.T) {
			forAll(t, func(t *testing.T, o Op, k dtype.Kind) {
				if k.IsPair() || k == dtype.LongDouble || k == dtype.ComplexLongDouble {
					return // fill doesn't know them: see below
				}
				if o.roundsOnce(k) {
					return // see TestFoldOfBFloat16RoundsOnce
				}
				r := rand.New(rand.NewPCG(uint64(o), uint64(k)))
				most := 11
				if testing.Short() {
					most = 5
				}
				for operands := 1; operands <= most; operands++ {
					for range 3 {
						compareWithApply(t, r, f, o, k, r.IntN(200), operands, r.IntN(operands+2))
					}
					compareWithApply(t, r, f, o, k, 2*foldPiece/k.Size()+r.IntN(200), operands, r.IntN(operands+2))
				}
			})
		})
	}
}

func TestFoldOfPairs(t *testing.T) {
	for name, f := range foldings {
		a, b, c := []int32{5, 7, 1, 2}, []int32{5, 3, 9, 9}, []int32{2, 2, 9, 8}
		in := []unsafe.Pointer{unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])}
		f(Maxloc, dtype.TwoInt, in[1], in, 2)
		assert.Equal(t, []int32{5, 3, 9, 8}, b, name)
	}
}

// Sums of floating-point numbers depend on the order.
func TestFoldBeginsWithTheLast(t *testing.T) {
	for name, f := range foldings {
		a, b, c := []float32{1 << 24}, []float32{1}, []float32{1}
		in := []unsafe.Pointer{unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])}
		f(Sum, dtype.Float32, in[2], in, 1)
		assert.Equal(t, float32(1<<24+2), c[0], name)
	}
}

func TestFoldLarge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range foldings {
		for operands := 1; operands <= 6; operands++ {
			compareWithApply(t, r, f, Sum, dtype.Float32, pieceSize/2+r.IntN(100), operands, 99)
			compareWithApply(t, r, f, Sum, dtype.Float32, pieceSize/2+r.IntN(100), operands, 0)
		}
	}
}

func TestFoldInvalidPanics(t *testing.T) {
	x := 1.5
	p := unsafe.Pointer(&x)
	for _, f := range foldings {
		assert.PanicsWithValue(t, "op: Fold: MPI_SUM of 0 operands of kind float64", func() {
			f(Sum, dtype.Float64, p, nil, 1)
		})
		assert.Panics(t, func() { f(Band, dtype.Float64, p, []unsafe.Pointer{p}, 1) })
	}
}

func TestFoldAllocatesNothing(t *testing.T) {
	x := make([]float32, 10000)
	p := unsafe.Pointer(&x[0])
	in := []unsafe.Pointer{p, p, p, p, p, p}
	for _, f := range []func(){
		func() { Sum.Apply(dtype.Float32, p, p, len(x)) },
		func() { Sum.Fold(dtype.Float32, p, in, len(x)) },
		func() { Sum.Fold(dtype.Float32, p, in[:4], len(x)) },
		func() { Sum.FoldStream(dtype.Float32, p, in[:2], len(x)) },
		func() { Sum.FoldStream(dtype.Float32, p, in, len(x)) },
	} {
		assert.Zero(t, int(testing.AllocsPerRun(100, f)))
	}
}

func TestFaultsInFold(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	bad := guarded(t, 1<<12, true)
	for name, f := range foldings {
		for operands := 1; operands <= 6; operands++ {
			for faulting := range operands + 1 {
				var in []unsafe.Pointer
				for range operands + 1 {
					in = append(in, pointer(make([]byte, 1<<14)))
				}
				in[faulting] = pointer(bad)
				var err any
				func() {
					defer func() { err = recover() }()
					f(Sum, dtype.Float64, in[operands], in[:operands], 1<<11)
				}()
				fault, ok := err.(interface{ Addr() uintptr })
				require.True(t, ok, "%s of %d operands, operand %d: %v", name, operands, faulting, err)
				require.Equal(t, uintptr(pointer(bad))+1<<12, fault.Addr()&^4095)
			}
		}
	}
}

func BenchmarkFoldOfShortFloats(b *testing.B) {
	const size = 32 << 10
	for _, k := range []dtype.Kind{dtype.Float16, dtype.BFloat16} {
		for _, operands := range []int{2, 4, 8} {
			var in []unsafe.Pointer
			for range operands + 1 {
				in = append(in, pointer(bytes.Repeat([]byte{0, 0x3c}, size/2)))
			}
			b.Run(fmt.Sprintf("%v/%d operands", k, operands), func(b *testing.B) {
				b.SetBytes(size)
				for b.Loop() {
					Sum.Fold(k, in[operands], in[:operands], size/2)
				}
			})
		}
	}
}

func BenchmarkFold(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20, 8 << 20, 64 << 20} {
		for _, operands := range []int{1, 2, 4, 8} {
			var in []unsafe.Pointer
			for range operands + 1 {
				m := make([]byte, size)
				for i := range m {
					m[i] = byte(i % 63)
				}
				in = append(in, pointer(m))
			}
			for _, name := range []string{"Fold", "FoldStream"} {
				b.Run(fmt.Sprintf("%s/%d operands/%d KiB", name, operands, size>>10), func(b *testing.B) {
					b.SetBytes(int64(size))
					for b.Loop() {
						foldings[name](Sum, dtype.Float32, in[operands], in[:operands], size/4)
					}
				})
			}
		}
	}
}
