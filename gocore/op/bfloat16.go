package op

import (
	"math"
	"unsafe"

	"gormapy/gocore/dtype"
)

// bfloat16 is the upper half of a float32. Sums and products are computed in float32 and
// then rounded to nearest even.
type bfloat16 uint16

func (a bfloat16) float() float32 { return math.Float32frombits(uint32(a) << 16) }

func toBFloat16(f float32) bfloat16 {
	b := math.Float32bits(f)
	if f != f {
		return bfloat16(b>>16 | 0x40) // quiet, also if all that is dropped made it a NaN
	}
	// A carry out of the fraction is the next exponent, or infinity.
	return bfloat16((b + 0x7fff + b>>16&1) >> 16)
}

func (a bfloat16) add(b bfloat16) bfloat16 { return toBFloat16(a.float() + b.float()) }
func (a bfloat16) mul(b bfloat16) bfloat16 { return toBFloat16(a.float() * b.float()) }

// roundsOnce reports whether Fold computes in float32 and rounds what comes of all operands.
func (o Op) roundsOnce(k dtype.Kind) bool { return k == dtype.BFloat16 && (o == Sum || o == Prod) }

// wideScratch has the float32 of a piece of some operands.
type wideScratch [mostOperands][2 * foldPiece]byte

// foldWide folds n bytes of any number of operands in float32, by kernels. n is a multiple of
// vectorBlock, and a piece at most.
func (v *assembly) foldWide(to unsafe.Pointer, in []unsafe.Pointer, at, n int) {
	if n == 0 {
		return
	}
	wide := wideScratches.Get().(*wideScratch)
	var p [mostOperands]unsafe.Pointer
	for i := range p {
		p[i] = unsafe.Pointer(&wide[i])
	}
	acc, left := p[mostOperands-1], len(in)-1
	widenBFloat16(acc, unsafe.Add(in[left], at), n)
	float32s := &vectorKernels[v.op][dtype.Float32].folds
	for left > 0 {
		take := min(left, mostOperands-1)
		for i, operand := range in[left-take : left] {
			widenBFloat16(p[i], unsafe.Add(operand, at), n)
		}
		left -= take
		q := p
		q[take] = acc
		float32s[take+1](acc, q[0], q[1], q[2], q[3], 2*n)
	}
	narrowBFloat16(to, acc, n)
	wideScratches.Put(wide)
}

// foldRounding is foldWide, without kernels and for any n.
func (o Op) foldRounding(to unsafe.Pointer, in []unsafe.Pointer, at, n int) {
	result := unsafe.Slice((*bfloat16)(to), n/2)
	for i := range result {
		element := func(operand int) float32 { return (*(*bfloat16)(unsafe.Add(in[operand], at+2*i))).float() }
		acc := element(len(in) - 1)
		for operand := len(in) - 2; operand >= 0; operand-- {
			if o == Sum {
				acc += element(operand)
			} else {
				acc *= element(operand)
			}
		}
		result[i] = toBFloat16(acc)
	}
}
