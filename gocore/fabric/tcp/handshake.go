package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gormapy/gocore/handshake"
)

// The bodies of the handshake's messages, see the package comment.
const (
	ranksBytes   = 10
	verdictBytes = 2
)

// protocol is that of ranks that send in clear, keyed that of the others.
var (
	protocol = handshake.Protocol{Name: "tcp", Version: 3, Limits: []int{ranksBytes, verdictBytes}}
	keyed    = handshake.Protocol{Name: "tcp", Version: 3, Limits: []int{ranksBytes, verdictBytes}, Keyed: true}
)

// The verdicts.
const (
	verdictUse   = 1
	verdictYield = 2
	verdictGuard = 3 // the ranks guard differently what they send
)

var (
	errOtherJob  = errors.New("it does not know this job's secret")
	errMalformed = errors.New("its message is malformed")
)

// identity has the rank and the secret by which a rank proves itself in handshakes, and what it says
// of itself in them.
type identity struct {
	secret     []byte
	tag        handshake.Tag
	rank, size int
	guard      Guard
}

func newIdentity(secret []byte, rank, size int) *identity {
	return &identity{secret: secret, tag: protocol.Tag(secret), rank: rank, size: size}
}

// protocol returns the rank's handshake.
func (id *identity) protocol() *handshake.Protocol {
	if id.guard == Clear {
		return &protocol
	}
	return &keyed
}

// find returns the secret with a tag, if it is this job's.
func (id *identity) find(tag handshake.Tag) []byte {
	if tag != id.tag {
		return nil
	}
	return id.secret
}

// ranks returns what an initiator says: from which rank it calls, and which, its guard, and the
// lane that the connection is for.
func (id *identity) ranks(peer, lane int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(id.rank))
	return append(binary.LittleEndian.AppendUint32(b, uint32(peer)), byte(id.guard), byte(lane))
}

// caller returns the rank that has said ranks, the lane that it calls for, and its guard.
func (id *identity) caller(ranks []byte) (rank, lane int, g Guard, err error) {
	if len(ranks) != ranksBytes || Guard(ranks[8]) >= guards || ranks[9] >= MaxConnections {
		return -1, 0, 0, errMalformed
	}
	from, to := binary.LittleEndian.Uint32(ranks), binary.LittleEndian.Uint32(ranks[4:])
	if uint64(from) >= uint64(id.size) || from == uint32(id.rank) || to != uint32(id.rank) {
		return -1, 0, 0, fmt.Errorf("rank %d wants rank %d, this is rank %d of %d", from, to, id.rank, id.size)
	}
	return int(from), int(ranks[9]), Guard(ranks[8]), nil
}

// verdict returns what an acceptor says to an initiator with the same guard.
func (id *identity) verdict(use bool) []byte {
	if use {
		return []byte{verdictUse, byte(id.guard)}
	}
	return []byte{verdictYield, byte(id.guard)}
}

// decided returns what a verdict is, and the guard of the acceptor, which the initiator compares with its own.
func decided(verdict []byte) (what byte, g Guard, err error) {
	if len(verdict) != verdictBytes || verdict[0] < verdictUse || verdict[0] > verdictGuard || Guard(verdict[1]) >= guards {
		return 0, 0, errMalformed
	}
	return verdict[0], Guard(verdict[1]), nil
}

// sentence says an error of the handshake in terms of jobs.
func sentence(err error) error {
	if errors.Is(err, handshake.ErrUnknown) || errors.Is(err, handshake.ErrProof) {
		return errOtherJob
	}
	return err
}
