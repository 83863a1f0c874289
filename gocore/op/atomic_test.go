package op

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
)

// AtomicApply does the same as Apply, and returns the old values.
func TestAtomicApply(t *testing.T) {
	forAll(t, func(t *testing.T, o Op, k dtype.Kind) {
		if !Atomic(k) {
			return
		}
		r := rand.New(rand.NewPCG(uint64(o), uint64(k)))
		size := k.Size()
		for range 200 {
			n := 1 + r.IntN(4)
			words := make([]uint64, 4) // aligned
			target := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n*size)
			operand, result := make([]byte, n*size+1), make([]byte, n*size+1)
			for i := range n {
				copy(target[i*size:], element(r, k))
				copy(operand[1+i*size:], element(r, k))
			}
			before, after := append([]byte(nil), target...), append([]byte(nil), target...)
			o.Apply(k, unsafe.Pointer(&after[0]), unsafe.Pointer(&operand[1]), n)
			o.AtomicApply(k, unsafe.Pointer(&target[0]), unsafe.Pointer(&operand[1]), unsafe.Pointer(&result[1]), n)
			require.Equal(t, data(k, before), data(k, result[1:]), "result")
			require.Equal(t, data(k, after), data(k, target), "%x %v %x", before, o, operand[1:])

			copy(target, before)
			o.AtomicApply(k, unsafe.Pointer(&target[0]), unsafe.Pointer(&operand[1]), nil, n)
			require.Equal(t, data(k, after), data(k, target), "without a result")
		}
	})
}

// data returns b without the padding of pairs.
func data(k dtype.Kind, b []byte) []byte {
	if k != dtype.ShortInt {
		return b
	}
	var d []byte
	for ; len(b) > 0; b = b[8:] {
		d = append(append(d, b[:2]...), b[4:8]...)
	}
	return d
}

func TestAtomicKinds(t *testing.T) {
	for k, want := range map[dtype.Kind]bool{
		dtype.KindNone: false, dtype.Int8: false, dtype.Uint16: false, dtype.Bool: false, dtype.Float16: false,
		dtype.Int32: true, dtype.Uint64: true, dtype.Float32: true, dtype.Float64: true, dtype.Complex64: true, dtype.Wchar: true,
		dtype.TwoInt: true, dtype.ShortInt: true, dtype.Complex128: false, dtype.DoubleInt: false, dtype.LongDouble: false,
	} {
		assert.Equal(t, want, Atomic(k), k.String())
	}
}

func TestAtomicNoOperand(t *testing.T) {
	x, got := uint64(42), uint64(0)
	NoOp.AtomicApply(dtype.Uint64, unsafe.Pointer(&x), nil, unsafe.Pointer(&got), 1)
	assert.Equal(t, []uint64{42, 42}, []uint64{x, got})
}

func TestAtomicCAS(t *testing.T) {
	for _, size := range []int{4, 8} {
		target := make([]uint64, 1)
		p := unsafe.Pointer(&target[0])
		buf := make([]byte, 25)
		compare, operand, result := buf[1:9], buf[9:17], buf[17:25]
		cas := func(c, x uint64) uint64 {
			binary.LittleEndian.PutUint64(compare, c)
			binary.LittleEndian.PutUint64(operand, x)
			clear(result)
			AtomicCAS(size, p, unsafe.Pointer(&compare[0]), unsafe.Pointer(&operand[0]), unsafe.Pointer(&result[0]))
			return binary.LittleEndian.Uint64(result)
		}
		assert.Equal(t, uint64(0), cas(0, 7))
		assert.Equal(t, uint64(7), target[0])
		assert.Equal(t, uint64(7), cas(0, 9), "the old value, and no change")
		assert.Equal(t, uint64(7), target[0])
		AtomicCAS(size, p, p, unsafe.Pointer(&operand[0]), nil)
		assert.Equal(t, uint64(9), target[0])
	}
}

// Goroutines update one element at once: nothing is lost, and each old value is
// returned once.
func TestAtomicConcurrent(t *testing.T) {
	const workers, each = 4, 5000
	run := func(f func(i int)) {
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					f(w*each + i)
				}
			})
		}
		wg.Wait()
	}

	var sum float64
	one := 1.0
	run(func(int) { Sum.AtomicApply(dtype.Float64, unsafe.Pointer(&sum), unsafe.Pointer(&one), nil, 1) })
	assert.Equal(t, float64(workers*each), sum)

	var counter int32
	seen := make([]int32, workers*each)
	step := int32(1)
	run(func(int) {
		var old int32
		Sum.AtomicApply(dtype.Int32, unsafe.Pointer(&counter), unsafe.Pointer(&step), unsafe.Pointer(&old), 1)
		seen[old]++
	})
	for i, n := range seen {
		require.Equal(t, int32(1), n, fmt.Sprint(i))
	}

	var largest uint64
	run(func(i int) {
		x := uint64(i)
		Max.AtomicApply(dtype.Uint64, unsafe.Pointer(&largest), unsafe.Pointer(&x), nil, 1)
	})
	assert.Equal(t, uint64(workers*each-1), largest)

	var locked, owned int64
	zero64, one64 := int64(0), int64(1)
	run(func(int) {
		for old := int64(1); old != 0; {
			AtomicCAS(8, unsafe.Pointer(&locked), unsafe.Pointer(&zero64), unsafe.Pointer(&one64), unsafe.Pointer(&old))
		}
		owned++
		Replace.AtomicApply(dtype.Int64, unsafe.Pointer(&locked), unsafe.Pointer(&zero64), nil, 1)
	})
	assert.Equal(t, int64(workers*each), owned)
}

func TestAtomicAllocatesNothing(t *testing.T) {
	words := make([]uint64, 3)
	p, q, r := unsafe.Pointer(&words[0]), unsafe.Pointer(&words[1]), unsafe.Pointer(&words[2])
	words[1] = math.Float64bits(1)
	for _, o := range []Op{Sum, Max, Prod, Replace, NoOp} {
		assert.Zero(t, testing.AllocsPerRun(50, func() { o.AtomicApply(dtype.Float64, p, q, r, 1) }), o.String())
	}
	assert.Zero(t, testing.AllocsPerRun(50, func() { Maxloc.AtomicApply(dtype.FloatInt, p, q, r, 1) }))
	assert.Zero(t, testing.AllocsPerRun(50, func() { AtomicCAS(8, p, q, r, q) }))
	assert.Zero(t, testing.AllocsPerRun(50, func() { Sum.Apply(dtype.Float64, p, q, 1) }))
}

func BenchmarkAtomicApply(b *testing.B) {
	words := make([]uint64, 3)
	p, q, r := unsafe.Pointer(&words[0]), unsafe.Pointer(&words[1]), unsafe.Pointer(&words[2])
	words[1] = 1
	for _, c := range []struct {
		o Op
		k dtype.Kind
	}{{Sum, dtype.Int64}, {Sum, dtype.Float64}, {Replace, dtype.Int64}, {Max, dtype.Int32}} {
		b.Run(fmt.Sprintf("%v/%v", c.o, c.k), func(b *testing.B) {
			for b.Loop() {
				c.o.AtomicApply(c.k, p, q, r, 1)
			}
		})
	}
}
