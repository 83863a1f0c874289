package mpi

import (
	"runtime"
	"strings"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// The API for a Go program that is a rank. The names follow MPI's, results are Go
// errors (an *errs.Error, which has the class), and calls wait until they have
// completed.

// Wildcards of Recv, and the null process.
const (
	AnySource = p2p.AnySource
	AnyTag    = p2p.AnyTag
	ProcNull  = p2p.ProcNull
)

// Element is the type of an element that a Go program sends: one whose representation
// is the same on all ranks of a job.
type Element interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | complex64 | complex128
}

// Communicator is a group of ranks that communicate with each other. It is safe for
// concurrent use by multiple goroutines.
type Communicator struct{ handle int64 }

// World makes this process a rank, if it isn't one yet, and returns the
// communicator of all ranks of the job. Without a launcher that is this process
// alone. Call Leave before the program ends.
func World() (Communicator, error) {
	return Communicator{CommWorld}, toError(Init())
}

// Leave is Finalize with a Go error.
func Leave() error {
	code := Finalize(true)
	for code == Interrupted {
		code = Finalize(true)
	}
	return toError(code)
}

// Rank returns the rank of this process.
func (c Communicator) Rank() int { return CommRank(c.handle) }

// Size returns the number of ranks.
func (c Communicator) Size() int { return CommSize(c.handle) }

// Barrier waits until all ranks have called it.
func (c Communicator) Barrier() error {
	var pending int64
	return toError(waited(Barrier(c.handle, &pending), pending, nil))
}

// Send sends all of data to the rank dest.
func Send[T Element](c Communicator, data []T, dest, tag int) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	var pending int64
	addr, count, typ := describe(&pin, data)
	return toError(waited(Blocking(KindSend, c.handle, addr, count, typ, dest, tag, nil, &pending), pending, nil))
}

// Recv receives at most len(data) elements from the rank source. The status has the
// source and the number of bytes.
func Recv[T Element](c Communicator, data []T, source, tag int) (Status, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	var st Status
	var pending int64
	addr, count, typ := describe(&pin, data)
	code := Blocking(KindRecv, c.handle, addr, count, typ, source, tag, &st, &pending)
	return st, toError(waited(code, pending, &st))
}

// Exchange sends to one rank while it receives from another (MPI_Sendrecv), so that
// ranks that all call it don't deadlock.
func Exchange[T Element](c Communicator, out []T, dest int, in []T, source, tag int) (Status, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	var st Status
	var pending int64
	oaddr, ocount, otype := describe(&pin, out)
	iaddr, icount, itype := describe(&pin, in)
	code := Sendrecv(c.handle,
		[5]int64{oaddr, ocount, otype, int64(dest), int64(tag)},
		[5]int64{iaddr, icount, itype, int64(source), int64(tag)}, &st, &pending)
	return st, toError(waited(code, pending, &st))
}

// waited continues to wait for a request that was interrupted: Go's runtime handles
// the signals of a Go program.
func waited(code Code, pending int64, st *Status) Code {
	for code == Interrupted {
		code = Wait(pending, st)
	}
	return code
}

// describe returns the address, the number and the datatype of a slice's elements. It
// pins them: the core and other processes refer to them by their address alone, which
// the garbage collector doesn't see.
func describe[T Element](pin *runtime.Pinner, data []T) (addr, count, typ int64) {
	typ = elementType[T]()
	if len(data) == 0 {
		return 0, 0, typ
	}
	pin.Pin(&data[0])
	return int64(uintptr(unsafe.Pointer(&data[0]))), int64(len(data)), typ
}

func elementType[T Element]() int64 {
	name := ""
	switch any(*new(T)).(type) {
	case int8:
		name = "MPI_INT8_T"
	case int16:
		name = "MPI_INT16_T"
	case int32:
		name = "MPI_INT32_T"
	case int64:
		name = "MPI_INT64_T"
	case uint8:
		name = "MPI_UINT8_T"
	case uint16:
		name = "MPI_UINT16_T"
	case uint32:
		name = "MPI_UINT32_T"
	case uint64:
		name = "MPI_UINT64_T"
	case float32:
		name = "MPI_FLOAT"
	case float64:
		name = "MPI_DOUBLE"
	case complex64:
		name = "MPI_C_COMPLEX"
	case complex128:
		name = "MPI_C_DOUBLE_COMPLEX"
	}
	return int64(dtype.ByName(name).ID())
}

// toError returns the error of a code.
func toError(c Code) error {
	if c == 0 {
		return nil
	}
	class := errs.Class(c & 0xff)
	return &errs.Error{Class: class, Detail: strings.TrimPrefix(ErrorText(c), class.String()+": ")}
}
