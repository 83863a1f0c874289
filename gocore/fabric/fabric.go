package fabric

import (
	"errors"
	"fmt"
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

// OpError is the failure of an operation that a transport had accepted, or of
// the connection that it was on.
type OpError struct {
	Op     string // put, get, fetch-add, compare-and-swap, send, connect
	Peer   int    // world rank
	Status string // the transport's word for it, such as IBV_WC_RETRY_EXC_ERR
	Detail string // which queue pair or address, what it may mean
}

func (e *OpError) Error() string {
	s := fmt.Sprintf("%s to rank %d failed: %s", e.Op, e.Peer, e.Status)
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

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
	KindNone     Kind = iota
	KindEager         // p2p: a whole message
	KindRTS           // p2p: ready to send, the receiver pulls or asks for the data
	KindCTS           // p2p: send me the data in packets
	KindData          // p2p: a piece of a message
	KindFin           // p2p: the receiver matched (Ssend) or has the data
	KindPut           // rma: write this into your window
	KindGet           // rma: send me that of your window
	KindGetData       // rma: what a get or fetching accumulate asked for
	KindAcc           // rma: accumulate this
	KindCAS           // rma: compare and swap
	KindAck           // rma: done at the target
	KindLock          // rma: lock or unlock your part for me
	KindLocked        // rma: the lock is yours
	KindCounters      // rma: I have posted, or completed
	Kinds
)

// Caps says what a transport can do, in bytes and yes or no.
type Caps struct {
	MaxShort int  // largest payload of Send
	Piece    int  // what longer data is best cut into for Send, at most MaxShort
	MaxRuns  int  // most runs of one PutRuns or GetRuns
	OneSided bool // Put and Get work, without any help of the peer's program
	Keys     bool // they need the key of a region that the peer registered
	Atomics  bool // FetchAdd and CompareSwap, atomic to each other for all who use them
	Mappable bool // peers on this host can map the same segment
	// Synchronous: Put, Get, PutRuns and GetRuns have completed when they return, and
	// never return ErrAgain.
	Synchronous bool
	Manual      bool // what others do here moves only while this process polls
	Ordered     bool // Sends to one peer arrive in the order they were posted
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

// Directory is how the transports of a job's ranks find each other: what
// launcher and ranks know of each other before they can communicate.
type Directory interface {
	Rank() int
	Size() int
	// Secret is known to the ranks of this job and to nobody else.
	Secret() []byte
	// Publish makes card, at most CardBytes, known to all ranks. It is called
	// once, when the transport is made.
	Publish(card []byte) error
	// Card is what rank has published, nil as long as it has not.
	Card(rank int) []byte
	// Mail leaves msg, at most MailBytes, for rank to, in place of any earlier
	// one, and has to's engine poll.
	Mail(to int, msg []byte) error
	// Mailed returns what rank from has left since it was last asked for, nil if
	// nothing. Mails counts what all ranks have left here: unless it has changed
	// there is nothing new.
	Mailed(from int) []byte
	Mails() uint32
}

// Sizes of what a Directory carries.
const (
	CardBytes = 480
	MailBytes = 232
)

// Unpublisher is a Region of a transport that finds local memory by its address.
type Unpublisher interface {
	// Unpublish ends the region's use for local memory, which may be other memory soon.
	// Peers may access it until it is closed.
	Unpublish()
}

// Transport is one way of reaching peers.
type Transport interface {
	Name() string
	Caps() Caps
	// Connect makes the endpoint to peer, a world rank. It does not wait: an
	// endpoint that is not connected yet answers ErrAgain and goes on in Poll.
	// With Caps.Keys there is one to the own rank, too.
	Connect(peer int) (Endpoint, error)
	// Register makes n bytes at p accessible to peers until the region is closed.
	// From then on it is also used for local memory that lies in there.
	Register(p unsafe.Pointer, n int) (Region, error)
	// Poll hands what has arrived to sink and returns how much that was. One
	// thread at a time. Handlers may post to endpoints but must not poll.
	Poll(sink Sink) int
	// Close ends all connections and frees everything. Nobody polls any more.
	Close() error
}

// ReadOnlyRegisterer is a transport that can register memory which peers may read, and not change.
type ReadOnlyRegisterer interface {
	// RegisterReadOnly is Register for memory that is only sent.
	RegisterReadOnly(p unsafe.Pointer, n int) (Region, error)
}

// RegisterReadOnly registers n bytes at p with t for peers to read; where the transport
// makes no difference, they are registered as by Register.
func RegisterReadOnly(t Transport, p unsafe.Pointer, n int) (Region, error) {
	if l, ok := t.(ReadOnlyRegisterer); ok {
		return l.RegisterReadOnly(p, n)
	}
	return t.Register(p, n)
}

// Explainer is a transport that can say why it lacks Caps.OneSided, or why the
// kernel will not let a peer's memory be copied although it has it.
type Explainer interface {
	// Refusal is empty if one-sided operations on peer work.
	Refusal(peer int) string
}

// Describer is a transport that has more to say about itself and a peer, such as
// the devices and addresses used.
type Describer interface {
	Describe(peer int) string
}

// Sleeper is a transport that tells by a file descriptor that there is work for
// Poll. Others whose peers do not ring are polled now and then.
type Sleeper interface {
	// FD becomes readable, and stays so until Poll has dealt with it, when
	// something comes after Arm. It is the same for the life of the transport.
	FD() int
	// Arm has FD tell of what comes from now on. It is called while nobody polls,
	// and Poll once more after it before anybody waits for FD.
	Arm() error
}

// Redirector is a transport that calls Sink.Place.
type Redirector interface {
	// Redirect has what still belongs into mem, as Place returned it, go
	// nowhere. Deliver is called for that message all the same, without a payload.
	// It is called while nobody polls.
	Redirect(mem unsafe.Pointer)
}

// Endpoint is a connection to one peer. It is safe for concurrent use.
//
// Where an operation returns done false and no error it has been accepted, and
// Sink.Completed is called for it exactly once, with its cookie, provided that
// somebody polls; local memory is in use until then. It is complete when its
// effect is visible at the peer. Operations are not ordered to each other nor to
// Sends. ErrAgain: nothing was done, try again after a Poll.
//
// Cookies need not be unique.
type Endpoint interface {
	// Send copies a short message; ErrAgain when there is no room. The payload is
	// the program's memory, which may fault: then Send panics, has sent nothing, and
	// the endpoint is as it was.
	Send(h *Header, payload []byte) error
	// Put writes n bytes to remote memory. What is said of the payload of Send is true
	// of local memory that an operation reads or writes at once. Where it faults later,
	// the operation is Completed with the fault.
	Put(local unsafe.Pointer, remote RemoteKey, n int, cookie uint64) (done bool, err error)
	// Get reads n bytes of remote memory.
	Get(local unsafe.Pointer, remote RemoteKey, n int, cookie uint64) (done bool, err error)
	// PutRuns writes what lies at local, one run after the other, to runs of
	// remote memory, at most Caps.MaxRuns of them. key is that of the memory they
	// are in. The endpoint may change the runs. Completed is called once for all.
	PutRuns(local unsafe.Pointer, key uint64, runs []Run, cookie uint64) (done bool, err error)
	// GetRuns reads runs of remote memory, likewise.
	GetRuns(local unsafe.Pointer, key uint64, runs []Run, cookie uint64) (done bool, err error)
	// FetchAdd adds to 8 aligned bytes of remote memory, a little-endian integer,
	// and writes what was there before to old.
	FetchAdd(old unsafe.Pointer, remote RemoteKey, add uint64, cookie uint64) (done bool, err error)
	// CompareSwap replaces 8 aligned bytes of remote memory that equal compare by
	// swap, and writes what was there before to old.
	CompareSwap(old unsafe.Pointer, remote RemoteKey, compare, swap uint64, cookie uint64) (done bool, err error)
}

// Sink takes what a transport delivers while it is polled.
type Sink interface {
	// Deliver is given a short message from world rank src. The payload is
	// valid only during the call.
	Deliver(src int, h *Header, payload []byte)
	// Place asks where the payload of n bytes of a message that is about to come
	// belongs; Deliver is called with that memory once it has. nil: in memory of
	// the transport. Only transports that copy from a socket ask, for long ones.
	Place(src int, h *Header, n int) unsafe.Pointer
	// Completed tells that the operation with this cookie is done, or has failed.
	Completed(cookie uint64, err error)
	// Broken tells that the connection to peer is lost, with all that was sent on
	// it and has not arrived. Operations under way have been Completed before.
	Broken(peer int, err error)
}
