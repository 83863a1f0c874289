package op

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
)

// forAllVectors calls f for the operations that have kernels in assembly.
func forAllVectors(t *testing.T, f func(t *testing.T, o Op, k dtype.Kind)) {
	if !hasVectors {
		t.Skip("this processor has no kernels in assembly")
	}
	forAll(t, func(t *testing.T, o Op, k dtype.Kind) {
		if vectorKernels[o][k] != nil {
			f(t, o, k)
		}
	})
	if !hasWideVectors {
		return
	}
	t.Run("AVX2", func(t *testing.T) { // what other processors use
		wide := vectorKernels
		defer func() { vectorKernels = wide }()
		vectorKernels = makeVectorKernels(true, false)
		forAll(t, func(t *testing.T, o Op, k dtype.Kind) {
			if v := vectorKernels[o][k]; v != nil && v.wide[2] != nil {
				f(t, o, k)
			}
		})
	})
}

// part returns the kind of the numbers that an element has.
func part(k dtype.Kind) dtype.Kind {
	switch k {
	case dtype.Complex32:
		return dtype.Float16
	case dtype.Complex64:
		return dtype.Float32
	case dtype.Complex128:
		return dtype.Float64
	}
	return k
}

// special are bits of elements at the edges: of integers, and of floating-point numbers with
// infinities, zeros, the smallest numbers, and both sorts of NaN.
var special = map[int][]uint64{
	1: {0, 1, 0x7f, 0x80, 0xff},
	2: {0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xfe01, 0x7fff, 0xffff,
		0x7f, 0x80, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0xffc1},
	4: {0, 1 << 31, 1, 0x80000001, 0x7fffff, 0x800000, 0x3f800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7f800001,
		0x7fc00000, 0xffc00001, 0x7fffffff, 0xffffffff},
	8: {0, 1 << 63, 1, 1<<63 | 1, 1<<52 - 1, 1 << 52, 0x3ff << 52, 0x7ff<<52 - 1, 0x7ff << 52, 0xfff << 52, 0x7ff<<52 | 1,
		0x7ff8 << 48, 0xfff8<<48 | 1, 1<<63 - 1, 1<<64 - 1, 0xffffffff, 1 << 32},
}

// fill writes elements: any bits, small numbers, and edges.
func fill(r *rand.Rand, k dtype.Kind, b []byte) {
	size := part(k).Size()
	for at := 0; at+size <= len(b); at += size {
		var w [8]byte
		switch r.IntN(8) {
		case 0:
			copy(w[:], element(r, part(k)))
		case 1, 2, 3:
			binary.LittleEndian.PutUint64(w[:], r.Uint64())
		default:
			s := special[size]
			binary.LittleEndian.PutUint64(w[:], s[r.IntN(len(s))])
		}
		copy(b[at:], w[:size])
	}
}

// isNaN tells of the bytes of a number.
func isNaN(k dtype.Kind, b []byte) bool {
	switch part(k) {
	case dtype.Float16:
		return binary.LittleEndian.Uint16(b)&0x7fff > 0x7c00
	case dtype.BFloat16:
		return binary.LittleEndian.Uint16(b)&0x7fff > 0x7f80
	case dtype.Float32:
		return binary.LittleEndian.Uint32(b)&(1<<31-1) > 0xff<<23
	case dtype.Float64:
		return binary.LittleEndian.Uint64(b)&(1<<63-1) > 0x7ff<<52
	}
	return false
}

// requireSame compares results: which NaN a sum or a product has is not determined.
func requireSame(t *testing.T, o Op, k dtype.Kind, want, got []byte, format string, args ...any) {
	t.Helper()
	if bytes.Equal(want, got) {
		return
	}
	size := part(k).Size()
	for at := 0; at < len(want); at += size {
		x, y := want[at:at+size], got[at:at+size]
		if bytes.Equal(x, y) || (o == Sum || o == Prod) && isNaN(k, x) && isNaN(k, y) {
			continue
		}
		require.Failf(t, "the kernel differs from the loop in Go", "at byte %d of %d: %x, not %x; "+format,
			append([]any{at, len(want), y, x}, args...)...)
	}
}

// misaligned returns n bytes whose address is so many bytes after a multiple of 64, with 64 more
// bytes on both sides.
func misaligned(n, by int) (around, inside []byte) {
	b := make([]byte, n+4*64)
	skip := int(-uintptr(unsafe.Pointer(&b[0]))&63) + by
	b = b[skip:]
	return b[:n+128], b[64 : 64+n : 64+n]
}

func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// compareWithLoops runs Apply on n elements, and the loop in Go beside it.
func compareWithLoops(t *testing.T, r *rand.Rand, o Op, k dtype.Kind, n, alignTo, alignIn int) {
	size := n * k.Size()
	around, to := misaligned(size, alignTo)
	for i := range around {
		around[i] = 0x5a
	}
	_, in := misaligned(size, alignIn)
	fill(r, k, to)
	fill(r, k, in)
	want, kept := bytes.Clone(to), bytes.Clone(in)
	if n > 0 {
		kernels[o][k](pointer(want), pointer(in), n)
	}
	o.Apply(k, pointer(to), pointer(in), n)
	requireSame(t, o, k, want, to, "%d elements, %d and %d bytes from alignment", n, alignTo, alignIn)
	require.True(t, bytes.Equal(kept, in), "in is left alone")
	for _, side := range [][]byte{around[:64], around[64+size:]} {
		require.True(t, bytes.Equal(side, bytes.Repeat([]byte{0x5a}, 64)), "bytes around are left alone")
	}
}

func TestKernelsAgreeWithLoops(t *testing.T) {
	forAllVectors(t, func(t *testing.T, o Op, k dtype.Kind) {
		r := rand.New(rand.NewPCG(uint64(o), uint64(k)))
		lengths, times := 201, 4
		if testing.Short() { // also the race detector, which makes this ten times as long
			lengths, times = 70, 1
		}
		for n := range lengths {
			for range times {
				compareWithLoops(t, r, o, k, n, r.IntN(64), r.IntN(64))
			}
		}
		if testing.Short() {
			return
		}
		for a := range 64 {
			for b := r.IntN(8); b < 64; b += 8 {
				compareWithLoops(t, r, o, k, 1+r.IntN(128/k.Size()), a, b)
			}
		}
		for _, n := range []int{1000, 4096, pieceSize/k.Size() - 1, pieceSize / k.Size(), 2*pieceSize/k.Size() + 77} {
			compareWithLoops(t, r, o, k, n, r.IntN(64), r.IntN(64))
		}
	})
}

// All pairs of numbers of 16 bits would take minutes: all of one with some of the other.
func TestKernelsOnAllShortFloats(t *testing.T) {
	forAllVectors(t, func(t *testing.T, o Op, k dtype.Kind) {
		if !isFloat(k) || k.Size() != 2 {
			return
		}
		all := make([]byte, 2<<16)
		for i := range 1 << 16 {
			binary.LittleEndian.PutUint16(all[2*i:], uint16(i))
		}
		r := rand.New(rand.NewPCG(uint64(o), uint64(k)))
		others := append([]uint64{r.Uint64(), r.Uint64(), 0x3c01, 0x1234}, special[2]...)
		for _, other := range others {
			in := bytes.Repeat([]byte{byte(other), byte(other >> 8)}, 1<<16)
			got, want := bytes.Clone(all), bytes.Clone(all)
			kernels[o][k](pointer(want), pointer(in), 1<<16)
			o.Apply(k, pointer(got), pointer(in), 1<<16)
			requireSame(t, o, k, want, got, "with %#x", uint16(other))
		}
	})
}

func FuzzKernels(f *testing.F) {
	f.Add(uint64(1), uint8(Sum), uint8(dtype.Float16), uint16(33), uint8(3), uint8(60))
	f.Add(uint64(2), uint8(Prod), uint8(dtype.Int64), uint16(5000), uint8(0), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, o, k uint8, n uint16, alignTo, alignIn uint8) {
		operation, kind := Op(o)%ops, dtype.Kind(k)%dtype.Kinds
		if vectorKernels[operation][kind] != nil {
			r := rand.New(rand.NewPCG(seed, 0))
			compareWithLoops(t, r, operation, kind, int(n), int(alignTo%64), int(alignIn%64))
		}
	})
}

// guarded returns n bytes that end where memory ends, or begin where it begins.
func guarded(t *testing.T, n int, atEnd bool) []byte {
	t.Helper()
	page := os.Getpagesize()
	length := (n + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, length+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Munmap(m) })
	require.NoError(t, syscall.Mprotect(m[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(m[page+length:], syscall.PROT_NONE))
	if atEnd {
		return m[page+length-n : page+length]
	}
	return m[page : page+n]
}

func TestKernelsStayInBounds(t *testing.T) {
	forAllVectors(t, func(t *testing.T, o Op, k dtype.Kind) {
		for n := 1; n < 200; n += 13 {
			for _, atEnd := range []bool{false, true} {
				a, b := guarded(t, n*k.Size(), atEnd), guarded(t, n*k.Size(), atEnd)
				o.Apply(k, pointer(a), pointer(b), n)
			}
		}
	})
}

// A fault in a kernel is a panic with the address, on whichever operand, and whatever was done of
// the vector registers.
func TestFaultsInKernels(t *testing.T) {
	good := make([]byte, 1<<13)
	forAllVectors(t, func(t *testing.T, o Op, k dtype.Kind) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		bad := guarded(t, 1<<12, true)
		n := len(good) / k.Size()
		for _, c := range []struct {
			name   string
			to, in unsafe.Pointer
		}{{"to", pointer(bad), pointer(good)}, {"in", pointer(good), pointer(bad)}} {
			var err any
			func() {
				defer func() { err = recover() }()
				o.Apply(k, c.to, c.in, n)
			}()
			fault, ok := err.(interface{ Addr() uintptr })
			require.True(t, ok, "%s: %v", c.name, err)
			require.Equal(t, uintptr(pointer(bad))+1<<12, fault.Addr()&^4095)
		}
	})
	// Go goes on as before: the garbage collector, too, which unwinds every stack.
	for range 3 {
		good = append([]byte(nil), good...)
		debug.FreeOSMemory()
	}
	require.NotEmpty(t, fmt.Sprint(good))
}

func BenchmarkKernels(b *testing.B) {
	benchmarkKernels(b, func(*assembly) bool { return true })
	if !hasWideVectors {
		return
	}
	b.Run("AVX2", func(b *testing.B) {
		wide := vectorKernels
		defer func() { vectorKernels = wide }()
		vectorKernels = makeVectorKernels(true, false)
		benchmarkKernels(b, func(v *assembly) bool { return v.wide[2] != nil })
	})
}

func benchmarkKernels(b *testing.B, which func(v *assembly) bool) {
	for _, name := range allOps {
		for k := dtype.KindNone; k < dtype.Kinds; k++ {
			if v := vectorKernels[name][k]; !name.Valid(k) || v == nil || !which(v) {
				continue
			}
			b.Run(fmt.Sprintf("%v/%v", name, k), func(b *testing.B) {
				// Both operands are in the second level of the cache, not in the first.
				const size = 64 << 10
				r := rand.New(rand.NewPCG(7, 8))
				x, y := make([]byte, size), make([]byte, size)
				for at := 0; at < size; at += k.Size() {
					copy(x[at:], element(r, k))
					copy(y[at:], element(r, k))
					if name == Prod && !isInteger(k) {
						// Products that accumulate would soon be the smallest numbers, which are slow.
						clear(y[at : at+k.Size()])
						copy(y[at:], roundTo(part(k), big.NewFloat(1)))
					}
				}
				b.SetBytes(size)
				for b.Loop() {
					name.Apply(k, pointer(x), pointer(y), size/k.Size())
				}
			})
		}
	}
}
