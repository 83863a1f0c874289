package op

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type codec struct {
	decode func([16]byte) extended
	encode func(extended) [16]byte
}

var codecs = map[string]codec{
	"x87":  {func(a [16]byte) extended { return decodeX87(a) }, func(x extended) [16]byte { return encodeX87(x) }},
	"quad": {func(a [16]byte) extended { return decodeQuad(a) }, func(x extended) [16]byte { return encodeQuad(x) }},
}

// readHex reads the hexadecimal number of a vector.
func readHex(t *testing.T, s string) (a [16]byte, isNaN bool) {
	t.Helper()
	if s == "nan" {
		return a, true
	}
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	slices.Reverse(b)
	copy(a[:], b)
	return a, false
}

// vectors returns the file of a format's vectors, or of a larger set of them, for use
// after a change.
func vectors(name string) string {
	if dir := os.Getenv("EXTENDED_VECTORS"); dir != "" {
		return dir + "/" + name + ".txt"
	}
	return "testdata/" + name + ".txt"
}

// The vectors were computed by the processor and by libgcc (testdata/extended.c).
func TestExtendedVectors(t *testing.T) {
	for name, c := range codecs {
		f, err := os.Open(vectors(name))
		require.NoError(t, err)
		defer f.Close()
		lines := 0
		for in := bufio.NewScanner(f); in.Scan(); lines++ {
			checkVector(t, c, name+": "+in.Text(), strings.Fields(in.Text()))
		}
		assert.Greater(t, lines, 900)
	}
}

func checkVector(t *testing.T, c codec, line string, fields []string) {
	t.Helper()
	operand := func(s string) extended {
		a, isNaN := readHex(t, s)
		if isNaN {
			return notANumber
		}
		x := c.decode(a)
		if got := c.encode(x); got != a {
			t.Fatalf("%s: %s decoded and encoded is %x", line, s, got)
		}
		return x
	}
	a, b := operand(fields[0]), operand(fields[1])
	for i, x := range []extended{a.add(b), a.mul(b)} {
		want, isNaN := readHex(t, fields[2+i])
		got := c.encode(x)
		if isNaN {
			if c.decode(got).class != nan {
				t.Fatalf("%s: result %d is %x, not a NaN", line, i, got)
			}
		} else if got != want {
			t.Fatalf("%s: result %d is %x, not %x", line, i, got, want)
		}
	}
	if less(a, b) != (fields[4] == "1") {
		t.Fatalf("%s: less is %v", line, less(a, b))
	}
	if equal(a, b) && (less(a, b) || less(b, a)) {
		t.Fatalf("%s: equal and less", line)
	}
}

// The fast path for normal numbers, on the same vectors.
func TestX87ShortCut(t *testing.T) {
	if !isX87 {
		t.Skip("this machine's long double is not that of x86")
	}
	f, err := os.Open(vectors("x87"))
	require.NoError(t, err)
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		fields := strings.Fields(in.Text())
		var v [4]x87
		var isNaN [4]bool
		for i := range v {
			var b [16]byte
			b, isNaN[i] = readHex(t, fields[i])
			if isNaN[i] && i < 2 {
				b = encodeX87(notANumber)
			}
			v[i] = *(*x87)(unsafe.Pointer(&b))
		}
		const padding = 0xabcdef << 16
		a := v[0]
		a.top |= padding
		for i, got := range []x87{a.add(v[1]), a.mul(v[1])} {
			require.Equal(t, uint64(padding), got.top&^0xffff)
			got.top &= 0xffff
			if isNaN[2+i] {
				require.Equal(t, nan, decodeX87(*(*[16]byte)(unsafe.Pointer(&got))).class, in.Text())
			} else if got != v[2+i] {
				t.Fatalf("%s: result %d is %x", in.Text(), i, got)
			}
		}
	}
}

func TestX87Unnormal(t *testing.T) {
	// The leading bit is missing: what the processor calls an invalid operand.
	var a [16]byte
	binary.LittleEndian.PutUint64(a[:], 1<<62)
	binary.LittleEndian.PutUint16(a[8:], bias)
	assert.Equal(t, nan, decodeX87(a).class)
}

// ld returns a long double of this machine's format.
func ld(v int) longDouble {
	if v == 0 {
		return extended{}.encode()
	}
	x := extended{class: finite, neg: v < 0, exp: 63, hi: magnitude(v)}
	x.normalize()
	return x.encode()
}

func magnitude(v int) uint64 {
	if v < 0 {
		return uint64(-v)
	}
	return uint64(v)
}

func TestLongDoubleArithmetic(t *testing.T) {
	for a := -12; a <= 12; a++ {
		for b := -12; b <= 12; b++ {
			what := fmt.Sprint(a, b)
			assert.Equal(t, ld(a+b), ld(a).add(ld(b)), what)
			if a*b != 0 {
				assert.Equal(t, ld(a*b), ld(a).mul(ld(b)), what)
			}
			assert.Equal(t, ld(max(a, b)), ld(a).max(ld(b)), what)
			assert.Equal(t, ld(min(a, b)), ld(a).min(ld(b)), what)
		}
	}
	x, y := complexLongDouble{ld(3), ld(-5)}, complexLongDouble{ld(7), ld(11)}
	assert.Equal(t, complexLongDouble{ld(10), ld(6)}, x.add(y))
	assert.Equal(t, complexLongDouble{ld(3*7 + 5*11), ld(3*11 - 5*7)}, x.mul(y))
	one, other := longDoubleInt{v: ld(2), i: 5}, longDoubleInt{v: ld(2), i: 3}
	assert.Equal(t, other, one.maxloc(other))
	assert.Equal(t, other, one.minloc(other))
	assert.Equal(t, one, one.maxloc(longDoubleInt{v: ld(1), i: 0}))
	assert.Equal(t, longDoubleInt{v: ld(1), i: 9}, one.minloc(longDoubleInt{v: ld(1), i: 9}))
}
