package p2p

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/choice"
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

// Buf is a buffer outside Go's heap: Count items of a type at an address.
type Buf struct {
	Addr  unsafe.Pointer
	Count int
	Type  *dtype.Type
}

// Bytes returns the length of the data.
func (b Buf) Bytes() int { return b.Count * b.Type.Size() }

// dense reports whether the data is contiguous from Addr.
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

// Request is a send or receive in progress. The caller owns it; a thread that waits
// for it reads Done.
type Request struct {
	done    atomic.Uint32          // pending, completed or awaited
	watcher atomic.Pointer[func()] // see Watch

	recv   bool
	q      *queue
	src    int // receive: comm rank or AnySource; send: comm rank of the receiver
	tag    int
	world  atomic.Int32 // world rank of the peer, -1 as long as any source matches
	gen    uint32
	buf    Buf
	token  uint64
	flat   []byte         // packed data of a send, or of a rendezvous receive before unpacking
	room   []byte         // memory for flat of a short send, which the request keeps for the next one
	got    int            // bytes received in pieces
	failed error          // why a piece could not be stored
	total  int            // bytes to receive by rendezvous
	timing *choice.Choice // measures a long message that both protocols can transfer; nil: none
	start  int64          // when that transfer began

	given   bool           // substitute: the caller has given the send up
	region  fabric.Region  // of the data of a long send, for the receiver to read
	reading atomic.Uint32  // whether a network writes to the buffer: see reading
	placing unsafe.Pointer // where the transport is storing a piece, in the buffer

	charged *credit // for a message that is sent whole, and how much; see charge
	cost    int64

	status Status
	number uint32        // of the received message, in recordings
	label  Label         // of the received message
	whole  bool          // see RecvWhole
	kept   *message      // what RecvWhole has not received
	head   fabric.Header // of the message it sends; here so that a send allocates nothing

	posted     bool     // it is in the queue's list
	order      uint64   // there: when it was posted
	next, prev *Request // there
}

// Done reports whether the request has completed.
func (r *Request) Done() bool { return r.done.Load() == completed }

// Status returns the outcome, which is valid once Done.
func (r *Request) Status() *Status { return &r.status }

// IsRecv reports whether the request is a receive.
func (r *Request) IsRecv() bool { return r.recv }

// Peer returns the world rank of the peer, -1 if any source matches.
func (r *Request) Peer() int { return int(r.world.Load()) }

// Number returns the number of the received message in recordings; 0 if its sender
// did not record it.
func (r *Request) Number() uint32 { return r.number }

// Tag returns the tag that the request was started with.
func (r *Request) Tag() int { return r.tag }

// Values of Request.done.
const (
	pending uint32 = iota
	completed
	awaited // pending, and watcher is to be called
)

// complete completes the request. Its owner may use it again at once, so nothing of it is touched afterwards.
func (r *Request) complete() {
	if r.done.CompareAndSwap(pending, completed) {
		return
	}
	f := r.watcher.Load()
	r.done.Store(completed)
	if f != nil {
		(*f)()
	}
}

// Watch has f called, once, by the thread that completes the request, or at once if it is complete. f must not wait. Of several
// calls for one request before it is complete, only the last one is sure to have an effect.
func (r *Request) Watch(f func()) {
	r.watcher.Store(&f)
	if !r.done.CompareAndSwap(pending, awaited) && r.Done() {
		f()
	}
}

// Sent implements engine.Sender.
func (r *Request) Sent(err error) {
	if err == nil {
		r.complete()
	} else {
		r.refund()
		r.fail(r.refusal(err))
	}
}

// refusal returns the error of a request whose operation failed with err.
func (r *Request) refusal(err error) *errs.Error {
	var e *errs.Error
	if errors.As(err, &e) {
		return e
	}
	what := "send to"
	if r.recv {
		what = "receive from"
	}
	return errs.New(errs.Buffer, "%s %s: %v", what, r.q.peer(r.src, r.tag), err)
}

// fail completes the request with an error.
func (r *Request) fail(e *errs.Error) {
	r.status.Err = e
	r.complete()
}
