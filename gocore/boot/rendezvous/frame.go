package rendezvous

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"gormapy/gocore/boot/store"
	"gormapy/gocore/handshake"
)

// protocol is that of the handshake: the bodies are a card and a verdict.
var protocol = handshake.Protocol{Name: "rendezvs", Version: 3, Limits: []int{cardBytes, verdictBytes}, Keyed: true}

const (
	cardBytes    = 32
	verdictBytes = 400
	// maxFrame bounds the memory for a frame of a peer.
	maxFrame = 16 << 20
	// maxStored bounds the memory for the values of a rank.
	maxStored = 64 << 20
)

// unknownNode is the node of a rank that does not know it.
const unknownNode = -1

// card is what a rank says of itself.
type card struct {
	rank, size, node int
	instance         [16]byte
}

func (c *card) marshal() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(c.rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.size))
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(c.node)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	return append(b, c.instance[:]...)
}

func (c *card) unmarshal(b []byte) error {
	if len(b) != cardBytes {
		return errors.New("a card of another length")
	}
	c.rank = int(binary.LittleEndian.Uint32(b))
	c.size = int(binary.LittleEndian.Uint32(b[4:]))
	c.node = max(unknownNode, int(int32(binary.LittleEndian.Uint32(b[8:]))))
	copy(c.instance[:], b[16:])
	return nil
}

// op is the kind of a frame.
type op byte

const (
	opPut op = iota + 1
	opFence
	opGet
	opNodes
	opAbort
	opFinalize
	opFenced
	opFailed
	opValue
	opMissing
	opTable
	opEvent
	opOver
)

// frame is one message after the handshake.
type frame struct {
	op   op
	body []byte
}

// marshal returns the frame with its length in front.
func (f frame) marshal() []byte {
	b := make([]byte, 0, 5+len(f.body))
	b = binary.LittleEndian.AppendUint32(b, uint32(1+len(f.body)))
	b = append(b, byte(f.op))
	return append(b, f.body...)
}

// readFrame reads one frame. It allocates what arrives, not what is announced.
func readFrame(r io.Reader) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n < 1 || n > maxFrame {
		return frame{}, fmt.Errorf("a frame of %d bytes: the limit is %d", n, maxFrame)
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n-1)))
	if err == nil && len(body) < int(n-1) {
		err = io.ErrUnexpectedEOF
	}
	return frame{op(head[4]), body}, err
}

func putFrame(key string, value []byte) frame {
	b := append([]byte{byte(len(key))}, key...)
	return frame{opPut, append(b, value...)}
}

func (f frame) put() (key string, value []byte, err error) {
	if len(f.body) < 1 || len(f.body) < 1+int(f.body[0]) {
		return "", nil, errors.New("a put without a key")
	}
	n := 1 + int(f.body[0])
	key = string(f.body[1:n])
	return key, f.body[n:], store.CheckKey(key)
}

func getFrame(rank int, key string) frame {
	return frame{opGet, append(binary.LittleEndian.AppendUint32(nil, uint32(rank)), key...)}
}

func (f frame) get() (rank int, key string, err error) {
	if len(f.body) < 4 {
		return 0, "", errors.New("a get without a rank")
	}
	return int(binary.LittleEndian.Uint32(f.body)), string(f.body[4:]), nil
}

func abortFrame(code int) frame {
	return frame{opAbort, binary.LittleEndian.AppendUint32(nil, uint32(int32(code)))}
}

func (f frame) abort() (code int, err error) {
	if len(f.body) != 4 {
		return 0, errors.New("an abort without a code")
	}
	return int(int32(binary.LittleEndian.Uint32(f.body))), nil
}

func eventFrame(e store.Event) frame {
	b := []byte{byte(e.Kind)}
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(e.Rank)))
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(e.Code)))
	return frame{opEvent, append(b, e.Why...)}
}

func (f frame) event() (store.Event, error) {
	if len(f.body) < 9 || store.Kind(f.body[0]) > store.Lost {
		return store.Event{}, errors.New("an event that is none")
	}
	return store.Event{
		Kind: store.Kind(f.body[0]),
		Rank: int(int32(binary.LittleEndian.Uint32(f.body[1:]))),
		Code: int(int32(binary.LittleEndian.Uint32(f.body[5:]))),
		Why:  string(f.body[9:]),
	}, nil
}

func tableFrame(nodes []int) frame {
	var b []byte
	for _, n := range nodes {
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(n)))
	}
	return frame{opTable, b}
}

func (f frame) table(size int) ([]int, error) {
	if len(f.body) != 4*size {
		return nil, errors.New("a table of nodes of another length")
	}
	nodes := make([]int, size)
	for i := range nodes {
		nodes[i] = int(int32(binary.LittleEndian.Uint32(f.body[4*i:])))
	}
	return nodes, nil
}
