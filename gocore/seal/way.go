package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"gormapy/gocore/handshake"
)

// Overhead is the length of the tag of a record.
const Overhead = 16

// ErrForged is the error of a record that is not the next one that the other side has sealed.
var ErrForged = errors.New("what arrives is not what was sent: something on the way changes, drops, repeats or invents it")

// rekeyAfter is the number of records that a key is used for.
var rekeyAfter uint64 = 1 << 22

// Way is one direction of a connection: of the side that seals, or of the side that opens. It is
// not safe for concurrent use.
type Way struct {
	aead  cipher.AEAD
	key   []byte
	count uint64 // records so far
	nonce [12]byte
	over  bool // a record has not opened
}

// Usable returns why this program can't seal anything, nil if it can.
func Usable() error {
	if err := handshake.Usable(); err != nil {
		return err
	}
	_, err := NewWay(make([]byte, 32))
	return err
}

// NewWay returns the direction whose records have a key, of 32 bytes.
func NewWay(key []byte) (*Way, error) {
	w := &Way{}
	return w, w.use(key)
}

// Ways returns the two directions of a connection after its handshake.
func Ways(x *handshake.Exchange) (out, in *Way, err error) {
	ours, theirs, err := x.Keys()
	if err != nil {
		return nil, nil, err
	}
	if out, err = NewWay(ours); err == nil {
		in, err = NewWay(theirs)
	}
	return out, in, err
}

func (w *Way) use(key []byte) error {
	block, err := aes.NewCipher(key)
	if err == nil {
		w.aead, err = cipher.NewGCM(block)
	}
	if err != nil { // a key of another length, or GODEBUG=fips140=only, which wants random nonces
		return fmt.Errorf("make AES-GCM: %w", err)
	}
	w.key = key
	return nil
}

// number makes the nonce that of the next record.
func (w *Way) number() []byte {
	if w.count > 0 && w.count%rekeyAfter == 0 {
		next, err := hkdf.Expand(sha256.New, w.key, "gormapy next key", len(w.key))
		if err == nil {
			err = w.use(next)
		}
		if err != nil {
			panic(err) // impossible: the key before was as long
		}
	}
	binary.LittleEndian.PutUint64(w.nonce[4:], w.count)
	w.count++
	return w.nonce[:]
}

// Seal seals a record in its place: its first readable bytes stay, those behind them are encrypted,
// and the last Overhead bytes become the tag.
func (w *Way) Seal(record []byte, readable int) {
	end := len(record) - Overhead
	w.aead.Seal(record[readable:readable], w.number(), record[readable:end], record[:readable])
}

// Open opens a record in its place, of which the first bytes are readable. After an error the
// record has no meaning, and no later one opens.
func (w *Way) Open(record []byte, readable int) error {
	if w.over || len(record) < readable+Overhead {
		w.over = true
		return ErrForged
	}
	if _, err := w.aead.Open(record[readable:readable], w.number(), record[readable:], record[:readable]); err != nil {
		w.over = true
		return ErrForged
	}
	return nil
}
