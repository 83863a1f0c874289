package p2p

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
)

// Wildcards and the null process, numbered as in gormapy.MPI.
const (
	AnySource = -1
	AnyTag    = -1
	ProcNull  = -2
)

// Buf is a buffer in foreign memory: count items of a type at an address.
type Buf struct {
	Addr  unsafe.Pointer
	Count int
	Type  *dtype.Type
}

// Bytes is the length of the data.
func (b Buf) Bytes() int { return b.Count * b.Type.Size() }

// dense tells that the data is one run of memory from Addr.
func (b Buf) dense() bool { return b.Type.Dense() }

// Status is the outcome of a receive.
type Status struct {
	Source    int // rank in the communicator
	Tag       int
	Bytes     int
	Cancelled bool
	Err       *errs.Error
}

// Mode is the kind of a send.
type Mode uint8

// The modes of sends. A ready send is a standard send; a buffered send copies.
const (
	Standard Mode = iota
	Synchronous
	Buffered
)

// Request is a send or receive in progress. Its user owns it; a goroutine or
// thread that waits for it reads Done.
type Request struct {
	done atomic.Uint32

	recv   bool
	q      *queue
	src    int // receive: comm rank or AnySource; send: comm rank of the receiver
	tag    int
	world  atomic.Int32 // world rank of the peer, -1 as long as it can be any
	gen    uint32
	buf    Buf
	token  uint64
	flat   []byte // packed data of a send, or what a rendezvous receive fills before unpacking
	got    int    // bytes that came in pieces
	failed error  // why a piece could not be put where it belongs
	total  int
	timing *timing // of a long message that comes by either way, since start
	start  int64

	streams bool           // a long send whose data goes in pieces when it is asked for
	region  fabric.Region  // of the data of a long send, for the receiver to read
	reading atomic.Uint32  // what a network does with the buffer: see reading
	placing unsafe.Pointer // where a piece is about to come, in the buffer

	status Status
	number uint32        // of the message that was received, in recordings
	head   fabric.Header // of what it sends; here so that a send allocates nothing

	next, prev *Request // posted queue
}

// Done reports whether the request has completed.
func (r *Request) Done() bool { return r.done.Load() != 0 }

// Status is valid once Done.
func (r *Request) Status() *Status { return &r.status }

// IsRecv tells a receive from a send.
func (r *Request) IsRecv() bool { return r.recv }

// Peer is the world rank waited for, -1 if any.
func (r *Request) Peer() int { return int(r.world.Load()) }

// Number is the number of the message that was received, for recordings; 0 if
// its sender did not record it.
func (r *Request) Number() uint32 { return r.number }

// Tag is the tag asked for.
func (r *Request) Tag() int { return r.tag }

func (r *Request) complete() { r.done.Store(1) }

// Sent implements engine.Sender.
func (r *Request) Sent(err error) {
	if err == nil {
		r.complete()
	} else {
		r.fail(r.refusal(err))
	}
}

// refusal is the error of a request whose operation could not be done.
func (r *Request) refusal(err error) *errs.Error {
	var e *errs.Error
	if errors.As(err, &e) {
		return e
	}
	what := "send to"
	if r.recv {
		what = "receive from"
	}
	return errs.New(errs.Buffer, "%s rank %d with tag %d: %v", what, r.src, r.tag, err)
}

// fail completes the request with an error.
func (r *Request) fail(e *errs.Error) {
	r.status.Err = e
	r.complete()
}
