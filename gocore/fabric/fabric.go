package fabric

import (
	"errors"
	"unsafe"
)

// Errors of endpoints.
var (
	// ErrAgain: no room now; the caller queues the operation and polls.
	ErrAgain = errors.New("transport has no room now")
	// ErrUnsupported: see Caps.
	ErrUnsupported = errors.New("transport does not support this operation")
	// ErrPeerGone: the peer's process does not exist any more.
	ErrPeerGone = errors.New("peer process is gone")
)

// Header precedes every short message. Its meaning beyond Kind belongs to the
// layer that sends it; its layout is the wire format (little-endian, 48 bytes).
type Header struct {
	Kind  Kind
	Flags uint8
	_     uint16
	Gen   uint32 // generation of the job, see the collective reset
	Ctx   uint32 // context of a communicator or id of a window
	Src   int32  // sender's rank in that communicator
	Tag   int32
	Aux   uint32
	Len   uint64 // length of the whole message, whatever of it is in this packet
	A, B  uint64
}

// HeaderBytes is the size of Header on the wire.
const HeaderBytes = int(unsafe.Sizeof(Header{}))

// Kind tells which handler takes a short message.
type Kind uint8

// The kinds of short messages. Each belongs to one package.
const (
	KindNone    Kind = iota
	KindEager        // p2p: a whole message
	KindRTS          // p2p: ready to send, the receiver pulls or asks for the data
	KindCTS          // p2p: send me the data in packets
	KindData         // p2p: a piece of a message
	KindFin          // p2p: the receiver matched (Ssend) or has the data
	KindPut          // rma: write this into your window
	KindGet          // rma: send me that of your window
	KindGetData      // rma: what a get or fetching accumulate asked for
	KindAcc          // rma: accumulate this
	KindCAS          // rma: compare and swap
	KindAck          // rma: done at the target
	Kinds
)

// Caps says what a transport can do, in bytes and yes or no.
type Caps struct {
	MaxShort int  // largest payload of Send
	MaxRuns  int  // most runs of one PutRuns or GetRuns
	OneSided bool // Put and Get work on memory that the peer registered
	Direct   bool // peers on this host can map the same segment
	Manual   bool // nothing moves unless somebody polls
	Ordered  bool // Sends to one peer arrive in the order they were posted
}

// RemoteKey names registered memory of a peer: its address there and a key.
type RemoteKey struct {
	Addr uint64
	Key  uint64
}

// Run is a piece of a peer's memory: N bytes at Addr there.
type Run struct {
	Addr uint64
	N    int
}

// Region is registered memory.
type Region interface {
	Key() RemoteKey
	Close() error
}

// Transport is one way of reaching peers.
type Transport interface {
	Name() string
	Caps() Caps
	// Connect makes the endpoint to peer, a world rank.
	Connect(peer int) (Endpoint, error)
	// Register makes n bytes at p accessible to peers until the region is closed.
	Register(p unsafe.Pointer, n int) (Region, error)
	// Poll hands what has arrived to sink and returns how much that was. One
	// thread at a time. Handlers may post to endpoints but must not poll.
	Poll(sink Sink) int
	Close() error
}

// Explainer is a transport that can say why it lacks Caps.OneSided, or why the
// kernel will not let a peer's memory be copied although it has it.
type Explainer interface {
	// Refusal is empty if one-sided operations on peer work.
	Refusal(peer int) string
}

// Endpoint is a connection to one peer. It is safe for concurrent use.
type Endpoint interface {
	// Send copies a short message; ErrAgain when there is no room.
	Send(h *Header, payload []byte) error
	// Put writes n bytes to remote memory. Done is false when the completion
	// will come through Sink.Completed with cookie.
	Put(local unsafe.Pointer, remote RemoteKey, n int, cookie uint64) (done bool, err error)
	// Get reads n bytes of remote memory, likewise.
	Get(local unsafe.Pointer, remote RemoteKey, n int, cookie uint64) (done bool, err error)
	// PutRuns writes what lies at local, one run after the other, to runs of
	// remote memory, at most Caps.MaxRuns of them. key is that of the memory they
	// are in. The endpoint may change the runs.
	PutRuns(local unsafe.Pointer, key uint64, runs []Run, cookie uint64) (done bool, err error)
	// GetRuns reads runs of remote memory, likewise.
	GetRuns(local unsafe.Pointer, key uint64, runs []Run, cookie uint64) (done bool, err error)
}

// Sink takes what a transport delivers while it is polled.
type Sink interface {
	// Deliver is given a short message from world rank src. The payload is
	// valid only during the call.
	Deliver(src int, h *Header, payload []byte)
	// Completed tells that the Put or Get with this cookie is done.
	Completed(cookie uint64, err error)
}
