package dtype

import (
	"math"
	"math/bits"
)

// arith does integer arithmetic and remembers whether any result did not fit,
// so that a constructor checks once at its end instead of at every step.
type arith struct{ overflow bool }

func (a *arith) add(x, y int) int {
	s := x + y
	if (x >= 0) == (y >= 0) && (s >= 0) != (x >= 0) {
		a.overflow = true
	}
	return s
}

func (a *arith) sub(x, y int) int {
	d := x - y
	if (x >= 0) != (y >= 0) && (d >= 0) != (x >= 0) {
		a.overflow = true
	}
	return d
}

func (a *arith) mul(x, y int) int {
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	neg := (x < 0) != (y < 0)
	switch {
	case hi != 0, lo > 1<<63, lo == 1<<63 && !neg:
		a.overflow = true
	}
	if neg {
		return int(-lo)
	}
	return int(lo)
}

func magnitude(x int) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// saturatingMul and saturatingAdd return the nearest int where the result does not fit.
// They are for ranges that are compared with other ranges: a range that does not fit
// must remain out of bounds instead of wrapping around.
func saturatingMul(x, y int) int {
	var a arith
	p := a.mul(x, y)
	if !a.overflow {
		return p
	}
	if (x < 0) != (y < 0) {
		return math.MinInt
	}
	return math.MaxInt
}

func saturatingAdd(x, y int) int {
	var a arith
	s := a.add(x, y)
	if !a.overflow {
		return s
	}
	if x < 0 {
		return math.MinInt
	}
	return math.MaxInt
}
