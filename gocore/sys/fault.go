package sys

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// Fault is the error of an access to memory of the program that can't be accessed. Addr
// is 0 where it is not known.
type Fault struct{ Addr uintptr }

func (f *Fault) Error() string {
	if f.Addr == 0 { // the processor does not say which it was
		return "memory can't be read or written: its address is none that a process has"
	}
	return fmt.Sprintf("the memory at %#x can't be read or written: it was unmapped or protected, or the file that it maps has become shorter", f.Addr)
}

// AsFault returns what a recovered panic says of a memory access, nil if it is
// another panic. Go panics for a fault only where debug.SetPanicOnFault is in
// force, which is a setting of each goroutine.
func AsFault(panicked any) *Fault {
	if err, ok := panicked.(runtime.Error); ok {
		if at, ok := err.(interface{ Addr() uintptr }); ok {
			return &Fault{at.Addr()}
		}
		if strings.Contains(err.Error(), "invalid memory address") {
			return &Fault{} // close to 0, or at an address that the processor refuses
		}
	}
	return nil
}

// CatchFault makes a fault the error of the function that defers it. Other panics
// go on. It belongs around every access to the program's memory that another than
// the call which was given that memory may make, such as a thread that polls.
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

// Caught, if not nil, is told of every fault that CatchFault has caught: for simulations,
// in which nothing is to fault.
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
