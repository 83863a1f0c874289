package fabric

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"
)

// Errors of endpoints.
var (
	// ErrAgain: there is no room now. The caller queues the operation and polls.
	ErrAgain = errors.New("transport has no room now")
	// ErrUnsupported: see Caps.
	ErrUnsupported = errors.New("transport does not support this operation")
	// ErrPeerGone: the peer's process no longer exists.
	ErrPeerGone = errors.New("peer process is gone")
	// ErrDisconnected: the peer has disconnected in order, see Disconnecter.
	ErrDisconnected = errors.New("peer has disconnected")
)

// OpError is the failure of an operation that a transport had accepted, or of
// its connection.
type OpError struct {
	Op     string // put, get, fetch-add, compare-and-swap, send, connect
	Peer   int    // world rank
	Status string // the transport's name of the error, such as IBV_WC_RETRY_EXC_ERR
	Detail string // the queue pair or address, and the likely cause
	Cause  error  // for errors.Is, if Status is the text of an error that callers look for
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Cause }

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
	Len   uint64 // length of the whole message, of which this packet may carry a part
	A, B  uint64
}

// HeaderBytes is the size of Header on the wire.
const HeaderBytes = int(unsafe.Sizeof(Header{}))

// Kind selects the handler of a short message.
type Kind uint8

// The kinds of short messages. Each belongs to one package.
const (
	KindNone        Kind = iota // for transports' own use
	KindEager                   // p2p: a whole message
	KindRTS                     // p2p: ready to send; the receiver pulls the data or asks for it
	KindCTS                     // p2p: request for the data, in packets
	KindData                    // p2p: a piece of a message
	KindFin                     // p2p: the receiver has matched (Ssend) or has the data
	KindCredit                  // p2p: the receiver has received messages that were sent whole
	KindPut                     // rma: data to write to the receiver's window
	KindGet                     // rma: request for data of the receiver's window
	KindGetData                 // rma: the answer to a get or a fetching accumulate
	KindAcc                     // rma: operands to accumulate
	KindCAS                     // rma: compare and swap
	KindAck                     // rma: the operation is done at the target
	KindLock                    // rma: request to lock or unlock the receiver's part of the window
	KindLocked                  // rma: the lock is granted
	KindCounters                // rma: the sender has posted, or completed
	KindNotify                  // rma: a notification
	KindFilePointer             // mpiio: request to move the shared file pointer, or the answer
	KindCall                    // coll: the sender asks which collective the receiver has called, or answers
	KindFault                   // mpi: revocation of a communicator, or a message of an agreement
	Kinds
)

// Caps are the capabilities of a transport. Sizes are in bytes.
type Caps struct {
	MaxShort int  // largest payload of Send
	Piece    int  // the best size of the pieces of longer data for Send, at most MaxShort
	MaxEager int  // longest message of a program that is best sent whole, at most MaxShort; 0: package p2p decides
	Ahead    int  // of a longer message whose data is sent, how much is best sent with its announcement, at most MaxShort
	MaxRuns  int  // largest number of runs of one PutRuns or GetRuns
	OneSided bool // Put and Get work, without any help of the peer's program
	Keys     bool // one-sided operations need the key of a region that the peer registered
	Atomics  bool // FetchAdd and CompareSwap work, and are atomic to each other for all ranks
	Mappable bool // peers on this host can map the same segment
	// Synchronous: Put, Get, PutRuns and GetRuns have completed when they return, and
	// never return ErrAgain.
	Synchronous bool
	Manual      bool // operations of peers on this process advance only while it polls
	Announces   bool // FD (see Sleeper) becomes readable when there is room again after ErrAgain
	Ordered     bool // Sends to one peer arrive in the order of the calls
}

// RemoteKey names registered memory of a peer: its address there and a key.
type RemoteKey struct {
	Addr uint64
	Key  uint64
}

// Run is a contiguous piece of a peer's memory: N bytes at the peer's address Addr.
type Run struct {
	Addr uint64
	N    int
}

// Region is registered memory.
type Region interface {
	Key() RemoteKey
	Close() error
}

// Directory lets the transports of a job's ranks find each other. It carries
// what ranks must know of each other before they can communicate.
type Directory interface {
	Rank() int
	Size() int
	// Hosts is the number of hosts that the ranks are on. If it is 1 they reach each other
	// by the loopback interface.
	Hosts() int
	// OnNode is the number of the rank among those of its node, which share the node's
	// devices.
	OnNode() int
	// Address waits, until end, until this node has found by which of its addresses it and
	// other nodes reach each other. It returns no valid address if that is not known then.
	Address(end time.Time) netip.Addr
	// Secret is known to the ranks of this job and to no other process.
	Secret() []byte
	// Publish makes card, at most CardBytes long, known to all ranks. It is
	// called once, when the transport is made.
	Publish(card []byte) error
	// Card returns the card that rank has published, nil if there is none yet.
	Card(rank int) []byte
	// Mail leaves msg, at most MailBytes long, for rank to, in place of any
	// earlier message that is unread, and wakes that rank's engine to poll.
	Mail(to int, msg []byte) error
	// Mailed takes the unread message from rank from; nil: there is none.
	Mailed(from int) []byte
	// Mails counts the messages that all ranks have left for this one. While
	// it does not change there is nothing new.
	Mails() uint32
}

// The largest sizes that a Directory carries.
const (
	CardBytes = 480
	MailBytes = 232
)

// Unpublisher is a Region of a transport that finds the region of local memory
// by the memory's address.
type Unpublisher interface {
	// Unpublish ends the region's use for local memory, since its addresses may
	// soon belong to other memory. Peers may access it until it is closed.
	Unpublish()
}

// Transport is one means of communication with peers.
type Transport interface {
	Name() string
	Caps() Caps
	// Connect makes the endpoint to peer, a world rank. It does not wait: until
	// the connection is made, in Poll, the endpoint's operations return ErrAgain.
	// With Caps.Keys a rank can connect to itself, too.
	Connect(peer int) (Endpoint, error)
	// Register makes n bytes at p accessible to peers until the region is closed.
	// The region is also used for operations whose local memory lies in it.
	Register(p unsafe.Pointer, n int) (Region, error)
	// Poll hands messages and completions that have arrived to sink and returns
	// their number. One thread at a time may call it. Handlers may start
	// operations on endpoints but must not poll.
	Poll(sink Sink) int
	// Close ends all connections and frees all resources. No thread may poll
	// during the call or after it.
	Close() error
}

// ReadOnlyRegisterer is a transport that can register memory for peers to read
// but not to change.
type ReadOnlyRegisterer interface {
	// RegisterReadOnly is Register for memory that is only sent.
	RegisterReadOnly(p unsafe.Pointer, n int) (Region, error)
}

// RegisterReadOnly registers n bytes at p with t for peers to read. If t is no
// ReadOnlyRegisterer it calls Register.
func RegisterReadOnly(t Transport, p unsafe.Pointer, n int) (Region, error) {
	if l, ok := t.(ReadOnlyRegisterer); ok {
		return l.RegisterReadOnly(p, n)
	}
	return t.Register(p, n)
}

// Explainer is a transport that can say why it lacks Caps.OneSided, or why, in
// spite of Caps.OneSided, the kernel does not let a peer's memory be copied.
type Explainer interface {
	// Refusal returns the reason; it is empty if one-sided operations on peer work.
	Refusal(peer int) string
}

// Describer is a transport that can describe its connection to a peer, such as
// by the devices and addresses used.
type Describer interface {
	Describe(peer int) string
}

// Drainer is a transport that can say whether messages of a peer whose process has ended
// are still to be delivered.
type Drainer interface {
	// Drained reports whether nothing more will arrive from peer, and everything that
	// has arrived has been delivered. Any thread may call it.
	Drained(peer int) bool
}

// Disconnecter is a transport over connections that loses, when it is closed, what has been
// sent and has not arrived, unless the rank disconnects first.
type Disconnecter interface {
	Drainer
	// Disconnect tells all connected peers that this rank sends nothing more. It does not
	// wait. When a peer that has been told so closes the connection, this is no loss: Broken
	// is called with ErrDisconnected.
	Disconnect()
	// Disconnected reports, after Disconnect, whether peer has received everything that was
	// sent to it, or never will.
	Disconnected(peer int) bool
	// Cut ends the connection to peer, from which nothing may arrive any more. Broken is not
	// called. No thread may poll during the call.
	Cut(peer int)
}

// Sleeper is a transport with a file descriptor that signals work for Poll.
// Another transport whose peers ring no doorbell is polled now and then.
type Sleeper interface {
	// FD returns the descriptor, the same for the life of the transport. It
	// becomes readable when something arrives after Arm, and stays readable
	// until Poll has handled it.
	FD() int
	// Arm makes FD signal what arrives from now on. It is called while no thread
	// polls. The caller polls once more after it, before it waits for FD.
	Arm() error
}

// Redirector is a transport that calls Sink.Place.
type Redirector interface {
	// Redirect discards the rest of a payload that was being written to mem,
	// which Place returned. Deliver is still called for that message, without a
	// payload. Redirect is called while no thread polls.
	Redirect(mem unsafe.Pointer)
	// Divert makes all of a payload that was being written to mem go to memory of the
	// transport, with which Deliver is called then. It reports false if there is no such
	// payload, or the part that has arrived can't be read there any more. Divert is called while no thread polls.
	Divert(mem unsafe.Pointer) bool
}

// Endpoint is a connection to one peer. It is safe for concurrent use.
//
// An operation that returns done false and no error has been accepted. Poll
// calls Sink.Completed for it exactly once, with its cookie; its local memory is
// in use until then. It is complete when its effect is visible at the peer.
// Operations are not ordered to each other nor to Sends. ErrAgain: nothing was
// done; the caller tries again after a Poll.
//
// Cookies need not be unique.
type Endpoint interface {
	// Send copies a short message; it returns ErrAgain when there is no room. The
	// payload is the program's memory, which may fault: then Send panics, has sent
	// nothing, and the endpoint is unchanged.
	Send(h *Header, payload []byte) error
	// Put writes n bytes to remote memory. If local memory faults while an
	// operation accesses it during the call, the operation panics as Send does. If
	// it faults later, the operation is Completed with the fault.
	Put(local unsafe.Pointer, remote RemoteKey, n int, cookie uint64) (done bool, err error)
	// Get reads n bytes of remote memory.
	Get(local unsafe.Pointer, remote RemoteKey, n int, cookie uint64) (done bool, err error)
	// PutRuns writes the bytes at local to runs of remote memory, one run after
	// the other, at most Caps.MaxRuns of them. All runs lie in the memory of key.
	// The endpoint may change the slice of runs. Completed is called once for all.
	PutRuns(local unsafe.Pointer, key uint64, runs []Run, cookie uint64) (done bool, err error)
	// GetRuns reads runs of remote memory, likewise.
	GetRuns(local unsafe.Pointer, key uint64, runs []Run, cookie uint64) (done bool, err error)
	// FetchAdd adds to 8 aligned bytes of remote memory, a little-endian integer,
	// and writes their previous value to old.
	FetchAdd(old unsafe.Pointer, remote RemoteKey, add uint64, cookie uint64) (done bool, err error)
	// CompareSwap replaces 8 aligned bytes of remote memory by swap if they equal
	// compare, and writes their previous value to old.
	CompareSwap(old unsafe.Pointer, remote RemoteKey, compare, swap uint64, cookie uint64) (done bool, err error)
}

// Gatherer is an Endpoint that can send several short messages at once.
type Gatherer interface {
	// Gather is Send, but the message may be held back until the next Send or Push to this
	// peer, or until the end of the next Poll, also of the one that is under way.
	Gather(h *Header, payload []byte) error
	// Push sends what is held back.
	Push()
}

// Sink takes what a transport delivers while it is polled.
type Sink interface {
	// Deliver handles a short message from world rank src. The payload is valid
	// only during the call.
	Deliver(src int, h *Header, payload []byte)
	// Place returns the memory for the payload of n bytes of a message that has
	// begun to arrive; Deliver is called with that memory once the payload is
	// there. nil: the transport uses memory of its own. Only transports that copy
	// from a socket call Place, for long payloads. It is a handler, see Transport.Poll.
	Place(src int, h *Header, n int) unsafe.Pointer
	// Completed reports that the operation with this cookie is done, or has failed.
	Completed(cookie uint64, err error)
	// Broken reports that the connection to peer is lost, with all that was sent on
	// it and has not arrived. Operations under way have been Completed before. If err is
	// ErrDisconnected, nothing that the peer has sent is lost.
	Broken(peer int, err error)
}
