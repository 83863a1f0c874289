package dtype

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// The functions of this file convert arrays of scalars between a little-endian and a
// big-endian form; nothing has to be aligned. The number of scalars is that of the
// smaller side.

func words[T any](b []byte) []T {
	n := len(b) / int(unsafe.Sizeof(*new(T)))
	if n == 0 { // the bytes that there are may be the last ones of their memory
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// swapOne converts one scalar that has the same size on both sides. It returns false for
// others.
func swapOne(rep representation, dst, src []byte) bool {
	switch rep {
	case asBytes:
		dst[0] = src[0]
	case swap2:
		binary.BigEndian.PutUint16(dst, binary.LittleEndian.Uint16(src))
	case swap4:
		binary.BigEndian.PutUint32(dst, binary.LittleEndian.Uint32(src))
	case swap8:
		binary.BigEndian.PutUint64(dst, binary.LittleEndian.Uint64(src))
	default:
		return false
	}
	return true
}

func copyBytes(dst, src []byte) {
	n := min(len(dst), len(src))
	move(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), n, toStream)
}

func swapPairs(dst, src []byte) {
	const odd = 0x00ff00ff00ff00ff
	d, s := words[uint64](dst), words[uint64](src)
	s = s[:len(d)]
	for i, x := range s {
		d[i] = x&odd<<8 | x>>8&odd
	}
	rest := len(d) * 8
	t := words[uint16](src[rest:])
	for i := range words[uint16](dst[rest:]) {
		words[uint16](dst[rest:])[i] = bits.ReverseBytes16(t[i])
	}
}

func swapFours(dst, src []byte) {
	d, s := words[uint64](dst), words[uint64](src)
	s = s[:len(d)]
	for i, x := range s {
		d[i] = bits.RotateLeft64(bits.ReverseBytes64(x), 32)
	}
	if rest := len(d) * 8; rest < len(dst) {
		words[uint32](dst[rest:])[0] = bits.ReverseBytes32(words[uint32](src[rest:])[0])
	}
}

func swapEights(dst, src []byte) {
	d, s := words[uint64](dst), words[uint64](src)
	for len(d) >= 4 && len(s) >= 4 {
		d[0] = bits.ReverseBytes64(s[0])
		d[1] = bits.ReverseBytes64(s[1])
		d[2] = bits.ReverseBytes64(s[2])
		d[3] = bits.ReverseBytes64(s[3])
		d, s = d[4:], s[4:]
	}
	for i := range d {
		d[i] = bits.ReverseBytes64(s[i])
	}
}

func swapSixteens(dst, src []byte) {
	d, s := words[[2]uint64](dst), words[[2]uint64](src)
	s = s[:len(d)]
	for i, x := range s {
		d[i] = [2]uint64{bits.ReverseBytes64(x[1]), bits.ReverseBytes64(x[0])}
	}
}

func narrowSigned(dst, src []byte) {
	d, s := words[uint32](dst), words[uint64](src)
	for len(d) >= 4 && len(s) >= 4 {
		d[0] = bits.ReverseBytes32(uint32(s[0]))
		d[1] = bits.ReverseBytes32(uint32(s[1]))
		d[2] = bits.ReverseBytes32(uint32(s[2]))
		d[3] = bits.ReverseBytes32(uint32(s[3]))
		d, s = d[4:], s[4:]
	}
	for i := range d {
		d[i] = bits.ReverseBytes32(uint32(s[i]))
	}
}

func widenSigned(dst, src []byte) {
	d, s := words[int64](dst), words[uint32](src)
	s = s[:len(d)]
	for i, x := range s {
		d[i] = int64(int32(bits.ReverseBytes32(x)))
	}
}

func narrowUnsigned(dst, src []byte) { narrowSigned(dst, src) }

func widenUnsigned(dst, src []byte) {
	d, s := words[uint64](dst), words[uint32](src)
	s = s[:len(d)]
	for i, x := range s {
		d[i] = uint64(bits.ReverseBytes32(x))
	}
}

func narrowWide(dst, src []byte) {
	d, s := words[uint16](dst), words[uint32](src)
	s = s[:len(d)]
	for i, x := range s {
		d[i] = bits.ReverseBytes16(uint16(x))
	}
}

func widenWide(dst, src []byte) {
	d, s := words[uint32](dst), words[uint16](src)
	s = s[:len(d)]
	for i, x := range s {
		d[i] = uint32(bits.ReverseBytes16(x))
	}
}

// The following return the index of the first value that needs more bits than external32
// has, -1 if there is none. They combine the values of a block, which is faster than to
// look at each.

const block = 512

func firstBeyond31(src []byte) int {
	// The numbers that fit are those from 0 to 1<<32-1 if 1<<31 is added.
	fits := func(x uint64) bool { return (x+1<<31)>>32 == 0 }
	return firstOf(words[uint64](src), fits, func(values []uint64) bool {
		all := uint64(0)
		for _, x := range values {
			all |= x + 1<<31
		}
		return all>>32 == 0
	})
}

func firstBeyond32(src []byte) int {
	return firstOf(words[uint64](src), func(x uint64) bool { return x>>32 == 0 }, func(values []uint64) bool {
		all := uint64(0)
		for _, x := range values {
			all |= x
		}
		return all>>32 == 0
	})
}

func firstBeyond16(src []byte) int {
	return firstOf(words[uint32](src), func(x uint32) bool { return x>>16 == 0 }, func(values []uint32) bool {
		all := uint32(0)
		for _, x := range values {
			all |= x
		}
		return all>>16 == 0
	})
}

// firstOf returns the index of the first value that does not fit; allFit is for a block.
func firstOf[T any](values []T, fits func(x T) bool, allFit func(values []T) bool) int {
	for at := 0; at < len(values); at += block {
		part := values[at:min(at+block, len(values))]
		if allFit(part) {
			continue
		}
		for i, x := range part {
			if !fits(x) {
				return at + i
			}
		}
	}
	return -1
}
