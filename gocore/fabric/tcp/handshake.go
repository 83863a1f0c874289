package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gormapy/gocore/handshake"
)

// The bodies of the handshake's messages, see the package comment.
const (
	ranksBytes   = 8
	verdictBytes = 1
)

var protocol = handshake.Protocol{Name: "tcp", Version: 1, Limits: []int{ranksBytes, verdictBytes}}

// The verdicts.
const (
	verdictUse   = 1
	verdictYield = 2
)

var (
	errOtherJob  = errors.New("it does not know this job's secret")
	errMalformed = errors.New("its message is malformed")
)

// identity has the rank and the secret by which a rank proves itself in handshakes.
type identity struct {
	secret     []byte
	tag        handshake.Tag
	rank, size int
}

func newIdentity(secret []byte, rank, size int) *identity {
	return &identity{secret: secret, tag: protocol.Tag(secret), rank: rank, size: size}
}

// find returns the secret with a tag, if it is this job's.
func (id *identity) find(tag handshake.Tag) []byte {
	if tag != id.tag {
		return nil
	}
	return id.secret
}

// ranks returns what an initiator says: from which rank it calls, and which.
func (id *identity) ranks(peer int) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(id.rank)), uint32(peer))
}

// caller returns the rank that has said ranks.
func (id *identity) caller(ranks []byte) (int, error) {
	if len(ranks) != ranksBytes {
		return -1, errMalformed
	}
	from, to := binary.LittleEndian.Uint32(ranks), binary.LittleEndian.Uint32(ranks[4:])
	if uint64(from) >= uint64(id.size) || from == uint32(id.rank) || to != uint32(id.rank) {
		return -1, fmt.Errorf("rank %d wants rank %d, this is rank %d of %d", from, to, id.rank, id.size)
	}
	return int(from), nil
}

// verdict returns what an acceptor says.
func verdict(use bool) []byte {
	if use {
		return []byte{verdictUse}
	}
	return []byte{verdictYield}
}

// decided returns whether a verdict is to use the connection.
func decided(verdict []byte) (use bool, err error) {
	if len(verdict) != verdictBytes || verdict[0] != verdictUse && verdict[0] != verdictYield {
		return false, errMalformed
	}
	return verdict[0] == verdictUse, nil
}

// sentence says an error of the handshake in terms of jobs.
func sentence(err error) error {
	if errors.Is(err, handshake.ErrUnknown) || errors.Is(err, handshake.ErrProof) {
		return errOtherJob
	}
	return err
}
