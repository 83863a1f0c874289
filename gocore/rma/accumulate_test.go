package rma_test

import (
	"encoding/binary"
	"math"
	"math/bits"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
)

// element encodes n*2^exp, n from 0 on, as an element of kind k; a pair gets
// index, and both parts of a complex number im.
func element(k dtype.Kind, n uint64, exp int, im uint64, index int32) []byte {
	b := make([]byte, k.Size())
	switch {
	case k.IsPair():
		copy(b, element(k.PairValue(), n, exp, 0, 0))
		binary.LittleEndian.PutUint32(b[k.PairIndex():], uint32(index))
	case k >= dtype.Complex32 && k <= dtype.ComplexLongDouble:
		part := map[dtype.Kind]dtype.Kind{dtype.Complex32: dtype.Float16, dtype.Complex64: dtype.Float32,
			dtype.Complex128: dtype.Float64, dtype.ComplexLongDouble: dtype.LongDouble}[k]
		copy(b, element(part, n, exp, 0, 0))
		copy(b[len(b)/2:], element(part, im, 0, 0, 0))
	case k == dtype.Float32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(math.Ldexp(float64(n), exp))))
	case k == dtype.Float64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(math.Ldexp(float64(n), exp)))
	case n > 0 && k == dtype.Float16:
		top := bits.Len64(n) - 1
		binary.LittleEndian.PutUint16(b, uint16(15+top+exp)<<10|uint16(n<<10>>top)&0x3ff)
	case n > 0 && k == dtype.BFloat16:
		top := bits.Len64(n) - 1
		binary.LittleEndian.PutUint16(b, uint16(127+top+exp)<<7|uint16(n<<7>>top)&0x7f)
	case n > 0 && k == dtype.LongDouble:
		top := bits.Len64(n) - 1
		binary.LittleEndian.PutUint64(b, n<<(63-top))
		binary.LittleEndian.PutUint16(b[8:], uint16(16383+top+exp))
	case k != dtype.Float16 && k != dtype.LongDouble:
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], n)
		copy(b, word[:])
	}
	return b
}

// operand returns rank's operand in its update number turn. All operands together
// give the same result in any order, and another one if any is lost or applied
// twice, where the operation makes a difference.
func operand(f op.Op, k dtype.Kind, rank, turn int) []byte {
	complexes := k >= dtype.Complex32 && k <= dtype.ComplexLongDouble
	floats := k >= dtype.Float16 && k <= dtype.LongDouble
	switch f {
	case op.Sum:
		return element(k, 1, 0, 2, 0)
	case op.Prod:
		switch {
		case complexes:
			return element(k, 0, 0, 1, 0) // turns by a right angle
		case floats:
			return element(k, 1, 1-turn%2*2, 0, 0) // twice, half
		}
		return element(k, 3, 0, 0, 0)
	case op.Land, op.Lor:
		return element(k, uint64(turn+rank)%2, 0, 0, 0)
	case op.Lxor:
		return element(k, 1, 0, 0, 0)
	case op.Band:
		return element(k, ^(uint64(1) << rank), 0, 0, 0)
	case op.Bor, op.Bxor:
		return element(k, 1<<rank, 0, 0, 0)
	}
	return element(k, uint64(1+(rank*7+turn*5)%31), 0, uint64(rank), int32(rank*100+turn))
}

// start returns the elements' values before the test.
func start(f op.Op, k dtype.Kind) []byte {
	switch f {
	case op.Prod:
		return element(k, 1, 0, 0, 0)
	case op.Min, op.Minloc:
		return element(k, 99, 0, 0, 0)
	case op.Band:
		b := make([]byte, k.Size())
		for i := range b {
			b[i] = 0xff
		}
		return b
	}
	return make([]byte, k.Size())
}

// TestEveryOperationAtOnce checks every operation on every kind that it is defined on,
// by all ranks at once on the same elements, aligned and not.
func TestEveryOperationAtOnce(t *testing.T) {
	const ranks, turns, n = 3, 40, 3 // enough that updates overlap
	run(t, ranks, 256, 1, func(w *window) {
		for _, typ := range kinds() {
			k := typ.Kind()
			size := k.Size()
			if runtime.GOARCH != "amd64" && (k == dtype.LongDouble || k == dtype.ComplexLongDouble || k == dtype.LongDoubleInt) {
				continue // another format
			}
			for f := op.Max; f <= op.NoOp; f++ {
				if !f.Valid(k) {
					continue
				}
				for _, disp := range []int{0, 3} {
					for i := range n {
						copy(w.mem[disp+i*size:], start(f, k))
					}
					w.fence()
					want := start(f, k)
					var seen, operands [][]byte
					for turn := range turns {
						x := operand(f, k, w.Rank, turn)
						operands = append(operands, append(append(append(make([]byte, 0, n*size), x...), x...), x...))
						for r := range ranks {
							y := operand(f, k, r, turn)
							f.Apply(k, unsafe.Pointer(&want[0]), unsafe.Pointer(&y[0]), 1)
						}
					}
					w.barrier()
					for _, in := range operands {
						old := make([]byte, n*size)
						origin := p2p.Buf{Addr: unsafe.Pointer(&in[0]), Count: n, Type: typ}
						result := p2p.Buf{Addr: unsafe.Pointer(&old[0]), Count: n, Type: typ}
						e := w.Accumulate(origin, &result, rma.TargetSpec{Rank: 0, Disp: disp, Count: n, Type: typ}, f)
						require.Nil(w.r.T, e, "%v on %v", f, k)
						seen = append(seen, old)
					}
					w.fence()
					if w.Rank == 0 {
						for i := range n {
							got := data(typ, w.mem[disp+i*size:])
							if f == op.Replace {
								require.Contains(w.r.T, written(typ, ranks, turns), got, "%v on %v", f, k)
							} else {
								require.Equal(w.r.T, data(typ, want), got, "%v on %v", f, k)
							}
						}
					}
					if f == op.Replace || f == op.NoOp {
						may := map[string]bool{string(data(typ, start(f, k))): true}
						for _, v := range written(typ, ranks, turns) {
							may[string(v)] = true
						}
						for _, old := range seen {
							for i := range n {
								require.True(w.r.T, may[string(data(typ, old[i*size:]))], "%v on %v: %x", f, k, old[i*size:])
							}
						}
					}
				}
			}
		}
	})
}

// kinds returns a predefined type of each kind.
func kinds() (types []*dtype.Type) {
	seen := map[dtype.Kind]bool{}
	for _, typ := range dtype.Predefined() {
		if k := typ.Kind(); k != dtype.KindNone && typ.Size() > 0 && !seen[k] {
			seen[k] = true
			types = append(types, typ)
		}
	}
	return types
}

// data returns an element without its padding.
func data(typ *dtype.Type, b []byte) []byte {
	d := make([]byte, typ.Size())
	typ.Pack(d, unsafe.Pointer(&b[0]), 1)
	if typ.Kind() == dtype.LongDouble {
		return d[:10]
	}
	return d
}

// written returns all values that REPLACE may leave.
func written(typ *dtype.Type, ranks, turns int) (all [][]byte) {
	for r := range ranks {
		for turn := range turns {
			all = append(all, data(typ, operand(op.Replace, typ.Kind(), r, turn)))
		}
	}
	return all
}
