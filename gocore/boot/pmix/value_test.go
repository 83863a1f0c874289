package pmix

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func word(n uint64) (w [8]byte) {
	binary.NativeEndian.PutUint64(w[:], n)
	return w
}

// TestNumbers: the type that came decides how many bytes count, and the sign.
func TestNumbers(t *testing.T) {
	const noise = 0xe69b_0000_0000_0000 // what lies behind a short number
	for _, c := range []struct {
		value value
		want  int
		err   string
	}{
		{value{typeUint32, word(noise | 7), nil}, 7, ""},
		{value{typeInt, word(noise | 7), nil}, 7, ""},
		{value{typeInt32, word(noise | 7), nil}, 7, ""},
		{value{typeProcRank, word(noise | 7), nil}, 7, ""},
		{value{typeUint16, word(noise | 1<<16 | 7), nil}, 7, ""},
		{value{typeInt16, word(noise | 7), nil}, 7, ""},
		{value{typeUint8, word(noise | 1<<8 | 7), nil}, 7, ""},
		{value{typeInt8, word(7), nil}, 7, ""},
		{value{typeBool, word(1), nil}, 1, ""},
		{value{typeSize, word(7), nil}, 7, ""},
		{value{typeUint64, word(7), nil}, 7, ""},
		{value{typeInt64, word(7), nil}, 7, ""},
		{value{typeUint, word(7), nil}, 7, ""},
		{value{typePID, word(7), nil}, 7, ""},
		{value{typeString, word(0), []byte("7")}, 7, ""},
		{value{typeInt, word(0xffff_ffff), nil}, 0, "-1 is out of range"},
		{value{typeUint64, word(1 << 63), nil}, 0, "out of range"},
		{value{typeUint32, word(0xffff_fffe), nil}, 0, "out of range"},
		{value{typeString, word(0), []byte("seven")}, 0, `"seven" is no number`},
		{value{typeByteObject, word(0), []byte("7")}, 0, "type 27 is no number"},
		{value{0, word(0), nil}, 0, "type 0"},
	} {
		n, err := c.value.number()
		if c.err != "" {
			assert.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.want, n, "type %d", c.value.kind)
	}
}

func TestTextAndBytes(t *testing.T) {
	text, err := value{kind: typeString, data: []byte("host0")}.text()
	require.NoError(t, err)
	assert.Equal(t, "host0", text)
	_, err = value{kind: typeInt}.text()
	assert.ErrorContains(t, err, "type 6 is no text")
	data, err := value{kind: typeByteObject, data: []byte("\x00a")}.bytes()
	require.NoError(t, err)
	assert.Equal(t, []byte("\x00a"), data)
	_, err = value{kind: typeString, data: []byte("a")}.bytes()
	assert.ErrorContains(t, err, "type 3 is no bytes")
}

func TestNumbered(t *testing.T) {
	assert.Equal(t, []int{0, 1, 0, 2}, numbered([]string{"b", "a", "b", "c"}))
	assert.Empty(t, numbered(nil))
}

// FuzzValues: a value of any type and bytes gives a number in range, or an error.
func FuzzValues(f *testing.F) {
	f.Add(uint16(typeString), uint64(0), []byte("12"))
	f.Add(uint16(typeUint16), uint64(1<<40), []byte(nil))
	f.Fuzz(func(t *testing.T, kind uint16, number uint64, data []byte) {
		v := value{kind, word(number), data}
		if n, err := v.number(); err == nil {
			assert.True(t, n >= 0 && n < 1<<31)
		}
		_, _ = v.text()
		_, _ = v.bytes()
	})
}
