package pmix

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// record has what a rank puts between two fences. It is one value for PMIx, which is there
// even if it is empty: a server that is asked for a key that nobody has put may wait for
// it, and PRRTE asks the rank's host each time.
//
//	mark (1 byte), then for each key: its length, the value's (both uvarint), key, value
type record []byte

// recordMark begins each record.
const recordMark = ':'

func newRecord() record { return record{recordMark} }

func (r record) add(key string, value []byte) record {
	r = binary.AppendUvarint(r, uint64(len(key)))
	r = binary.AppendUvarint(r, uint64(len(value)))
	return append(append(r, key...), value...)
}

// parse returns the values by their keys.
func (r record) parse() (map[string][]byte, error) {
	if len(r) == 0 || r[0] != recordMark {
		return nil, fmt.Errorf("%d bytes that were not put by this version of gormapy: all ranks must use the same", len(r))
	}
	values := map[string][]byte{}
	for rest := r[1:]; len(rest) > 0; {
		var lengths [2]int
		for i := range lengths {
			n, size := binary.Uvarint(rest)
			if size <= 0 || n > uint64(len(rest)) {
				return nil, errors.New("a record that is cut off")
			}
			lengths[i], rest = int(n), rest[size:]
		}
		if lengths[0]+lengths[1] > len(rest) {
			return nil, errors.New("a record that is cut off")
		}
		key := string(rest[:lengths[0]])
		values[key] = rest[lengths[0] : lengths[0]+lengths[1] : lengths[0]+lengths[1]]
		rest = rest[lengths[0]+lengths[1]:]
	}
	return values, nil
}
