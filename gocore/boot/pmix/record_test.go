package pmix

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecords(t *testing.T) {
	long := []byte(strings.Repeat("\x00x", 500))
	values, err := newRecord().add("a", nil).add("key-2", long).add("b", []byte{0}).parse()
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"a": {}, "key-2": long, "b": {0}}, values)
	values, err = newRecord().parse()
	require.NoError(t, err)
	assert.Empty(t, values)
	for text, want := range map[string]string{"": "0 bytes that were not put", "x": "1 bytes that", ":\x01": "cut off", ":\x01\x01a": "cut off", ":\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01a": "cut off"} {
		_, err = record(text).parse()
		assert.ErrorContains(t, err, want, "%q", text)
	}
}

// FuzzRecords: a record is read as it was written, and any bytes give an error or values
// within them.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(newRecord().add("key", []byte("value"))), "a", []byte("b"))
	f.Add([]byte(":\xff\xff\x01"), "", []byte(nil))
	f.Fuzz(func(t *testing.T, data []byte, key string, value []byte) {
		if values, err := record(data).parse(); err == nil {
			total := 0
			for k, v := range values {
				total += len(k) + len(v)
			}
			assert.Less(t, total, len(data))
		}
		values, err := newRecord().add("before", []byte("1")).add(key, value).parse()
		assert.NoError(t, err)
		assert.Equal(t, string(value), string(values[key]))
	})
}
