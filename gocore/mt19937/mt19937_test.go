package mt19937

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

const request = 0xabcdabcd987 // the seed of the write_cpu example

// The C++ standard defines the 10000th number of the default seed.
func TestStandard(t *testing.T) {
	s := New(5489)
	for range 9999 {
		s.Uint64()
	}
	assert.EqualValues(t, uint64(9981545732273789042), s.Uint64())
}

// The results of std::mt19937_64 of libstdc++: the first words, XOR and sum of 8 MiB.
func TestFill(t *testing.T) {
	seed := New(request).Uint64()
	assert.EqualValues(t, uint64(0xb584035fabe6ce9b), seed)
	for _, c := range []struct {
		seed     uint64
		first    [3]uint64
		xor, sum uint64
	}{
		{seed, [3]uint64{0x186219b8a789cec9, 0xcbdd7f5a8caf8839, 0x4a96561381275d5e}, 0xddd1629d07692896, 0x3a6387643c917b24},
		{seed + 1, [3]uint64{0xd97eaa4e4b9f0cda, 0x7ba2057b4aaa6f98, 0xe6cffd302a2ae36f}, 0x944ea99f1d3cf0f8, 0x37287a7675a4f066},
	} {
		data := make([]byte, 8<<20)
		assert.Equal(t, len(data), New(c.seed).Fill(data))
		var xor, sum uint64
		for i := 0; i < len(data); i += 8 {
			x := binary.LittleEndian.Uint64(data[i:])
			if i < 24 {
				assert.Equal(t, c.first[i/8], x)
			}
			xor, sum = xor^x, sum+x
		}
		assert.Equal(t, c.xor, xor)
		assert.Equal(t, c.sum, sum)
	}
}

// In pieces of any length, at any address, the numbers are the same.
func TestFillInPieces(t *testing.T) {
	whole := make([]byte, 8*1000)
	New(7).Fill(whole)
	s, got := New(7), make([]byte, len(whole)+1)[1:]
	for at, length := 0, 0; at < len(got); length += 8 {
		at += s.Fill(got[at:min(len(got), at+length+3)])
		if at < len(got) {
			assert.Equal(t, binary.LittleEndian.Uint64(whole[at:]), s.Uint64())
			copy(got[at:], whole[at:at+8])
			at += 8
		}
	}
	assert.Equal(t, whole, got)
	assert.Equal(t, 0, s.Fill(make([]byte, 7)))
	assert.Equal(t, 0, s.Fill(nil))
}

// The results of std::sample of libstdc++ 12 for the numbers from 0 on, and the next
// number of the generator.
func TestSample(t *testing.T) {
	for _, c := range []struct {
		population uint32
		n, got     int
		hash, next uint64
		first      []uint32
	}{
		{16, 8, 8, 0x9699ba58096f73ca, 0x816b0c827f989d24, []uint32{1, 3, 4, 7, 12, 13, 14, 15}},
		{16, 16, 16, 0x88b84ce5271b343, 0x816b0c827f989d24, []uint32{0, 1, 2, 3}},
		{16, 99, 16, 0x88b84ce5271b343, 0x816b0c827f989d24, []uint32{0, 1, 2, 3}},
		{16, 1, 1, 0x44bd2fd473ccfe65, 0xcfe38af43d213571, []uint32{4}},
		{1, 1, 1, 0x44bd2bd473ccf799, 0xd25d6d667cc9af9e, []uint32{0}},
		{2, 1, 1, 0x44bd2ad473ccf5e6, 0xd25d6d667cc9af9e, []uint32{1}},
		{3, 2, 2, 0x9a65ab00c545d26c, 0xad5dc00c045ecb9, []uint32{1, 2}},
		{17, 5, 5, 0x359836791b789a64, 0x816b0c827f989d24, []uint32{1, 4, 9, 12, 15}},
		{256, 100, 100, 0x74d1018cb0664303, 0xcbce16698c967108, []uint32{1, 4, 7, 12, 17}},
		{4096, 20, 20, 0x69d4574e2baf4a6c, 0x9fcf7ef86c824f54, []uint32{279, 395, 819, 1060}},
		{16384, 2040, 2040, 0x5718a93a8e6c2659, 0xda2ef1520213817f, []uint32{4, 7, 26, 33}},
	} {
		s := New(request)
		s.Uint64()
		out := make([]uint32, c.n)
		got := s.Sample(c.population, out)
		assert.Equal(t, c.got, got)
		h := uint64(1469598103934665603) // of the program that made this table; not quite FNV
		for _, x := range out[:got] {
			h = (h ^ uint64(x)) * 1099511628211
		}
		assert.Equal(t, c.hash, h, "%d of %d", c.n, c.population)
		assert.Equal(t, c.first, out[:len(c.first)])
		assert.Equal(t, c.next, s.Uint64(), "%d of %d", c.n, c.population)
	}
	s := New(request)
	assert.Equal(t, 0, s.Sample(0, make([]uint32, 3)))
	assert.Equal(t, 0, s.Sample(3, nil))
	assert.Equal(t, uint64(0xb584035fabe6ce9b), s.Uint64(), "nothing was drawn")
}

// Without rejection numbers below a bound of 3/4 of all would be uneven.
func TestBelowRejects(t *testing.T) {
	s, plain := New(1), New(1)
	drawn := 0
	for range 1000 {
		bound := uint64(3) << 62
		assert.Less(t, s.Below(bound), bound)
	}
	for plain.word != s.word || plain.used != s.used {
		plain.Uint64()
		drawn++
	}
	assert.InDelta(t, 1333, drawn, 100)
}

func TestLayout(t *testing.T) {
	assert.EqualValues(t, Size, unsafe.Sizeof(State{}))
	s := New(3)
	s.used = 1 << 40 // overwritten memory
	s.Uint64()
	s.used = 1 << 40
	assert.Equal(t, 8, s.Fill(make([]byte, 8)))
}

func BenchmarkFill(b *testing.B) {
	data, s := make([]byte, 1<<20), New(1)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		s.Fill(data)
	}
}
