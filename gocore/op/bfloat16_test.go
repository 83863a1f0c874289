package op

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
)

// nearestBFloat16 rounds by comparing the neighbours, whose bits follow one another.
func nearestBFloat16(v float64) bfloat16 {
	sign := bfloat16(0)
	if math.Signbit(v) {
		sign, v = 0x8000, -v
	}
	value := func(b bfloat16) float64 {
		if b == 0x7f80 {
			return math.Ldexp(1, 128) // what would be next, if it were a number
		}
		return float64(b.float())
	}
	low, high := bfloat16(0), bfloat16(0x7f80)
	for high-low > 1 {
		if mid := (low + high) / 2; value(mid) <= v {
			low = mid
		} else {
			high = mid
		}
	}
	below, above := v-value(low), value(high)-v
	if above < below || above == below && high%2 == 0 {
		low = high
	}
	return sign | low
}

func TestBFloat16Conversion(t *testing.T) {
	for i := range 1 << 16 {
		b := bfloat16(i)
		f := b.float()
		if f != f {
			require.Equal(t, b|0x40, toBFloat16(f), "a NaN is quiet and keeps its bits")
			continue
		}
		require.Equal(t, b, toBFloat16(f))
	}
	// Halfway cases and their neighbours, over the whole range.
	for i := range bfloat16(0x7f80) {
		mid := math.Float32frombits(uint32(i)<<16 | 0x8000)
		for _, f := range []float32{mid, math.Nextafter32(mid, 0), math.Nextafter32(mid, math.MaxFloat32)} {
			require.Equal(t, nearestBFloat16(float64(f)), toBFloat16(f), "%v", f)
			require.Equal(t, nearestBFloat16(float64(-f)), toBFloat16(-f), "%v", -f)
		}
	}
	assert.Equal(t, bfloat16(0x7fc0), toBFloat16(math.Float32frombits(0x7f800001)), "a NaN does not become infinity")
	assert.Equal(t, bfloat16(0xffff), toBFloat16(math.Float32frombits(0xffffffff)), "nor zero")
}

func TestBFloat16Arithmetic(t *testing.T) {
	// Every 61st number with every 67th: sums are exact in float64, but for very different ones,
	// and so are products. The smallest numbers are left out, which float32 rounds, too.
	for i := 0; i < 1<<16; i += 61 {
		for j := 0; j < 1<<16; j += 67 {
			a, b := bfloat16(i), bfloat16(j)
			x, y := float64(a.float()), float64(b.float())
			if math.IsNaN(x+y) || math.IsInf(x, 0) || math.IsInf(y, 0) {
				continue
			}
			if got, want := a.add(b), nearestBFloat16(x+y); got != want {
				t.Fatalf("%v + %v is %#x, not %#x", x, y, got, want)
			}
			if got, want := a.mul(b), nearestBFloat16(x*y); got != want && math.Abs(x*y) > 0x1p-120 {
				t.Fatalf("%v * %v is %#x, not %#x", x, y, got, want)
			}
		}
	}
}

// foldInFloat32 is what Fold of bfloat16 is to give, one element at a time.
func foldInFloat32(o Op, elements []bfloat16) bfloat16 {
	acc := elements[len(elements)-1].float()
	for i := len(elements) - 2; i >= 0; i-- {
		if o == Sum {
			acc += elements[i].float()
		} else {
			acc *= elements[i].float()
		}
	}
	return toBFloat16(acc)
}

func TestFoldOfBFloat16RoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	rounded := 0
	for name, f := range foldings {
		for _, o := range []Op{Sum, Prod} {
			for operands := 1; operands <= 11; operands++ {
				for _, n := range []int{1, 3, 15, 16, 17, 100, 2047, 2048, 2049, 5000} {
					alias := r.IntN(operands + 2)
					in, all := make([]unsafe.Pointer, operands), make([][]bfloat16, operands)
					for i := range all {
						_, b := misaligned(2*n, r.IntN(64))
						fill(r, dtype.BFloat16, b)
						in[i], all[i] = pointer(b), unsafe.Slice((*bfloat16)(pointer(b)), n)
					}
					want, twice := make([]bfloat16, n), append([]bfloat16(nil), all[operands-1]...)
					for i := range want {
						var elements []bfloat16
						for _, operand := range all {
							elements = append(elements, operand[i])
						}
						want[i] = foldInFloat32(o, elements)
						if operands == 1 {
							want[i] = elements[0]
						}
					}
					for i := operands - 2; i >= 0; i-- {
						o.Apply(dtype.BFloat16, unsafe.Pointer(&twice[0]), in[i], n)
					}
					_, b := misaligned(2*n, r.IntN(64))
					if alias < operands {
						b = unsafe.Slice((*byte)(in[alias]), 2*n)
					}
					f(o, dtype.BFloat16, pointer(b), in, n)
					for i, got := range unsafe.Slice((*bfloat16)(pointer(b)), n) {
						what := fmt.Sprintf("%s, %v of %d operands: element %d of %d", name, o, operands, i, n)
						if want[i].float() == want[i].float() || operands == 1 {
							require.Equal(t, want[i], got, what)
						} else {
							require.True(t, got.float() != got.float() && got&0x40 != 0, what)
						}
						if want[i] != twice[i] {
							rounded++
						}
					}
				}
			}
		}
	}
	assert.NotZero(t, rounded, "the data would not show a second rounding")
}
