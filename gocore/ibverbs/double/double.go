//go:build cgo

// Package double is a software double of libibverbs for tests: two devices whose
// reliable connections join queue pairs of this process, with keys, ranges,
// rights, queue sizes and statuses as the verbs have them, and with faults that
// tests ask for. It shows how code handles errors that real devices do not produce on
// demand. Whether code works at all is tested on devices.
//
// Only tests import it; it may import any layer. It uses cgo.
package double

// #cgo CFLAGS: -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Wno-unused-parameter
// #cgo LDFLAGS: -lpthread
// #include "double.h"
import "C"

import (
	"sync"
	"unsafe"

	"gormapy/gocore/ibverbs"
)

// Library returns the double. There is one in a process, because a library is never closed.
var Library = sync.OnceValues(func() (*ibverbs.Library, error) {
	return ibverbs.OpenSymbols(unsafe.Pointer(C.double_find))
})

// Arguments of Count, see double.h.
const (
	Doorbells = C.DOUBLE_DOORBELLS
	Writes    = C.DOUBLE_WRITES
	Reads     = C.DOUBLE_READS
	Sends     = C.DOUBLE_SENDS
	Atomics   = C.DOUBLE_ATOMICS
	Signaled  = C.DOUBLE_SIGNALED
	Empty     = C.DOUBLE_EMPTY
	Polls     = C.DOUBLE_POLLS
	Regions   = C.DOUBLE_REGIONS
	QPs       = C.DOUBLE_QPS
	Objects   = C.DOUBLE_OBJECTS
)

// The faults, see double.h.
const (
	NoDevices    = C.DOUBLE_NO_DEVICES
	NoAtomicKeys = C.DOUBLE_NO_ATOMIC_KEYS
	NoRegions    = C.DOUBLE_NO_REGIONS
	PostErrno    = C.DOUBLE_POST_ERRNO
	PostAfter    = C.DOUBLE_POST_AFTER
	WCStatus     = C.DOUBLE_WC_STATUS
	WCAfter      = C.DOUBLE_WC_AFTER
	Hold         = C.DOUBLE_HOLD
	Lazy         = C.DOUBLE_LAZY
	Down         = C.DOUBLE_DOWN
	MaxInline    = C.DOUBLE_MAX_INLINE
	MaxMsg       = C.DOUBLE_MAX_MSG
	NoAtomics    = C.DOUBLE_NO_ATOMICS
	ODP          = C.DOUBLE_ODP
	NoFlush      = C.DOUBLE_NO_FLUSH
)

// Count returns how many of something there have been since Reset; of Regions, QPs and
// Objects, how many there are now.
func Count(what int) int { return int(C.double_count(C.int(what))) }

// Reset clears counts and faults.
func Reset() { C.double_reset() }

// Fault makes a fault happen from now on; 0 ends it.
func Fault(which, value int) { C.double_fault(C.int(which), C.int(value)) }

// Kill makes a queue pair stop answering its peer.
func Kill(qp uint32) { C.double_kill(C.uint32_t(qp)) }
