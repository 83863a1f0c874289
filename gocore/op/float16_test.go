package op

import (
	"math"
	"sort"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// positives are the finite float16 from 0 up, in order of value and of bits.
var positives = func() []float64 {
	var v []float64
	for i := range 0x7c00 {
		exp, frac := i>>10, i&0x3ff
		if exp == 0 {
			v = append(v, math.Ldexp(float64(frac), -24))
		} else {
			v = append(v, math.Ldexp(float64(1024+frac), exp-25))
		}
	}
	return v
}()

// nearestFloat16 rounds by comparing the neighbours.
func nearestFloat16(v float64) float16 {
	sign := float16(0)
	if math.Signbit(v) {
		sign, v = 0x8000, -v
	}
	if v >= 65520 {
		return sign | 0x7c00
	}
	i := sort.SearchFloat64s(positives, v)
	if i == len(positives) {
		return sign | float16(i-1)
	}
	if i > 0 && positives[i] != v {
		below, above := v-positives[i-1], positives[i]-v
		if below < above || below == above && i%2 == 1 {
			i--
		}
	}
	return sign | float16(i)
}

func TestFloat16Conversion(t *testing.T) {
	for i := range 1 << 16 {
		h := float16(i)
		f := h.float()
		if i&0x7c00 == 0x7c00 && i&0x3ff != 0 {
			require.True(t, f != f)
			back := toFloat16(f)
			require.True(t, back&0x7c00 == 0x7c00 && back&0x3ff != 0)
			continue
		}
		if i&0x7fff < len(positives) {
			require.Equal(t, positives[i&0x7fff], math.Abs(float64(f)))
		}
		require.Equal(t, h, toFloat16(f))
	}
	// Halfway cases and their neighbours, over the whole range.
	for i := range len(positives) - 1 {
		mid := float32((positives[i] + positives[i+1]) / 2)
		for _, f := range []float32{mid, math.Nextafter32(mid, 0), math.Nextafter32(mid, 1e9)} {
			require.Equal(t, nearestFloat16(float64(f)), toFloat16(f), "%v", f)
			require.Equal(t, nearestFloat16(float64(-f)), toFloat16(-f), "%v", -f)
		}
	}
	for _, f := range []float32{65504, 65519.996, 65520, 1e38, math.SmallestNonzeroFloat32, 1e-9, float32(math.Inf(1))} {
		assert.Equal(t, nearestFloat16(float64(f)), toFloat16(f), "%v", f)
	}
}

func TestFloat16Arithmetic(t *testing.T) {
	// Every 61st number with every 67th: sums and products are exact in float64.
	for i := 0; i < 1<<16; i += 61 {
		for j := 0; j < 1<<16; j += 67 {
			a, b := float16(i), float16(j)
			x, y := float64(a.float()), float64(b.float())
			if math.IsNaN(x) || math.IsNaN(y) || math.IsInf(x, 0) || math.IsInf(y, 0) {
				continue
			}
			if got, want := a.add(b), nearestFloat16(x+y); got != want {
				t.Fatalf("%v + %v is %#x, not %#x", x, y, got, want)
			}
			if got, want := a.mul(b), nearestFloat16(x*y); got != want {
				t.Fatalf("%v * %v is %#x, not %#x", x, y, got, want)
			}
		}
	}
}
