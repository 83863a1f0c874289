package pmix

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// The types of values, from pmix_common.h.
const (
	typeBool       = 1
	typeByte       = 2
	typeString     = 3
	typeSize       = 4
	typePID        = 5
	typeInt        = 6
	typeInt8       = 7
	typeInt16      = 8
	typeInt32      = 9
	typeInt64      = 10
	typeUint       = 11
	typeUint8      = 12
	typeUint16     = 13
	typeUint32     = 14
	typeUint64     = 15
	typeByteObject = 27
	typeProcRank   = 40
)

// value is what PMIx_Get gives: of a type that the server chooses. Servers differ in the
// types of the same key.
type value struct {
	kind uint16
	word [8]byte // of a number
	data []byte  // of a string or bytes
}

// number returns a value of any type of numbers that is not negative.
func (v value) number() (int, error) {
	word := v.word[:]
	var n int64
	switch v.kind {
	case typeInt8:
		n = int64(int8(word[0]))
	case typeByte, typeUint8, typeBool:
		n = int64(word[0])
	case typeInt16:
		n = int64(int16(binary.NativeEndian.Uint16(word)))
	case typeUint16:
		n = int64(binary.NativeEndian.Uint16(word))
	case typeInt, typeInt32, typePID:
		n = int64(int32(binary.NativeEndian.Uint32(word)))
	case typeUint, typeUint32, typeProcRank:
		n = int64(binary.NativeEndian.Uint32(word))
	case typeSize, typeInt64, typeUint64:
		n = int64(binary.NativeEndian.Uint64(word))
	case typeString:
		u, err := strconv.ParseUint(strings.TrimSpace(string(v.data)), 10, 31)
		if err != nil {
			return 0, fmt.Errorf("%q is no number", v.data)
		}
		n = int64(u)
	default:
		return 0, fmt.Errorf("a value of type %d is no number", v.kind)
	}
	if n < 0 || n > 1<<31-1 {
		return 0, fmt.Errorf("%d is out of range", n)
	}
	return int(n), nil
}

// text returns a string.
func (v value) text() (string, error) {
	if v.kind != typeString {
		return "", fmt.Errorf("a value of type %d is no text", v.kind)
	}
	return string(v.data), nil
}

// bytes returns the bytes of a byte object.
func (v value) bytes() ([]byte, error) {
	if v.kind != typeByteObject {
		return nil, fmt.Errorf("a value of type %d is no bytes", v.kind)
	}
	return v.data, nil
}

// numbered gives hosts numbers, in the order in which they come.
func numbered(hosts []string) []int {
	known := map[string]int{}
	nodes := make([]int, len(hosts))
	for i, host := range hosts {
		n, ok := known[host]
		if !ok {
			n = len(known)
			known[host] = n
		}
		nodes[i] = n
	}
	return nodes
}
