package sys

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// Fault is the error of a failed access to memory of the program. Addr is 0 if it is
// not known. Bytes is not 0 if there was no access, since so much data lies nowhere.
type Fault struct {
	Addr  uintptr
	Bytes uint64
}

func (f *Fault) Error() string {
	if f.Bytes != 0 {
		return fmt.Sprintf("a copy of the data needs %d bytes, and the system has %d: is the count right?", f.Bytes, SystemMemory())
	}
	if f.Addr == 0 { // the processor does not report the address
		return "memory can't be read or written: its address is none that a process has"
	}
	return fmt.Sprintf("the memory at %#x can't be read or written: it was unmapped or protected, or the file that it maps has become shorter", f.Addr)
}

// AsFault returns the fault that caused a recovered panic, nil if the panic has another
// cause. Go panics on a fault only if debug.SetPanicOnFault, a setting of each
// goroutine, is on. A fault of another goroutine, which has been caught, may be panicked again.
func AsFault(panicked any) *Fault {
	if again, ok := panicked.(*Fault); ok {
		return again
	}
	if err, ok := panicked.(runtime.Error); ok {
		if at, ok := err.(interface{ Addr() uintptr }); ok {
			return &Fault{Addr: at.Addr()}
		}
		if strings.Contains(err.Error(), "invalid memory address") {
			return &Fault{} // close to 0, or at an address that the processor refuses
		}
	}
	return nil
}

// CatchFault is deferred. It makes a fault the error of the function that defers it;
// other panics continue. It is needed around every access to the program's memory that
// may be made outside of the call which was given that memory, for example by another
// thread that polls.
func CatchFault(err *error) {
	p := recover()
	if p == nil {
		return
	}
	f := AsFault(p)
	if f == nil {
		panic(p)
	}
	if Caught != nil {
		Caught(f)
	}
	*err = f
}

// Caught, if not nil, is called with every fault that CatchFault has caught. It is for
// simulations, in which no access may fault.
var Caught func(f *Fault)

// Touch runs f, which accesses memory of the program, and returns the *Fault that
// ended it, nil if none did.
func Touch(f func()) (err error) {
	defer CatchFault(&err)
	f()
	return nil
}

// IsFault reports whether err is, or wraps, a *Fault.
func IsFault(err error) bool {
	var fault *Fault
	return errors.As(err, &fault)
}
