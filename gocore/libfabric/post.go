//go:build cgo

package libfabric

/*
#include <stdlib.h>
#include "glue.h"
*/
import "C"

import "unsafe"

// Kind is the operation of a request.
type Kind uint32

// Kinds of requests.
const (
	Send        = Kind(C.GM_FI_SEND)
	Recv        = Kind(C.GM_FI_RECV)
	Write       = Kind(C.GM_FI_WRITE)
	Read        = Kind(C.GM_FI_READ)
	FetchAdd    = Kind(C.GM_FI_FETCH_ADD)
	CompareSwap = Kind(C.GM_FI_COMPARE_SWAP)
)

// Flags of requests.
const (
	Completed        = uint64(C.FI_COMPLETION)        // report completion
	Inject           = uint64(C.FI_INJECT)            // local memory may be reused at once
	More             = uint64(C.FI_MORE)              // the next request follows right away
	RemoteData       = uint64(C.FI_REMOTE_CQ_DATA)    // Data appears in the peer's queue
	DeliveryComplete = uint64(C.FI_DELIVERY_COMPLETE) // complete when visible at the peer
	TransmitComplete = uint64(C.FI_TRANSMIT_COMPLETE) // complete when it can't be lost any more
)

// Request is a request to post. Its layout is that of gm_fi_request.
type Request struct {
	Kind        Kind
	_           uint32
	Flags       uint64
	Local       uintptr // data; of an atomic, where the former value goes
	Len         uint64
	Desc        uintptr // of Local, see MR.Desc
	Addr        Addr    // the peer; of a Recv, AddrUnspec
	Remote      uint64
	Key         uint64
	Data        uint64  // with RemoteData
	Operand     uintptr // of an atomic: 8 bytes to add or swap in, in use until completion
	Compare     uintptr // of a CompareSwap: 8 bytes to compare with
	OperandDesc uintptr // of both
	Context     uintptr // see Contexts
}

// Request must have the size that the C code reads.
var _ [unsafe.Sizeof(Request{})]byte = [unsafe.Sizeof(C.struct_gm_fi_request{})]byte{}

// Post posts requests in their order, in one C call. It returns how many were posted, and
// the error for the next one: EAGAIN (an Errno) if there is no room.
func (e *Endpoint) Post(requests []Request) (int, error) {
	if len(requests) == 0 {
		return 0, nil
	}
	var why C.int
	n := C.gm_fi_post(e.c, (*C.struct_gm_fi_request)(unsafe.Pointer(&requests[0])), C.int(len(requests)), &why)
	if why != 0 {
		return int(n), Errno(why)
	}
	return int(n), nil
}

// contextBytes is the size of fi_context2, which a provider may use while the operation is
// under way.
const contextBytes = 64

// Contexts is an array of contexts for operations, in C memory. A context must
// not be used by two operations at once.
type Contexts struct {
	base unsafe.Pointer
	n    int
}

// NewContexts makes n contexts.
func NewContexts(n int) *Contexts {
	return &Contexts{base: C.calloc(C.size_t(n), contextBytes), n: n}
}

// At returns context i, for Request.Context.
func (c *Contexts) At(i int) uintptr { return uintptr(c.base) + uintptr(i)*contextBytes }

// Index returns the index of a context, -1 if it is none of these.
func (c *Contexts) Index(context uintptr) int {
	if context < uintptr(c.base) || context >= uintptr(c.base)+uintptr(c.n)*contextBytes {
		return -1
	}
	return int(context-uintptr(c.base)) / contextBytes
}

// Free frees them. No operation may be under way.
func (c *Contexts) Free() {
	C.free(c.base)
	c.base, c.n = nil, 0
}
