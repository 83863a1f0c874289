package mpi

import (
	"fmt"
	"runtime/debug"
	"sync"

	"gormapy/gocore/errs"
	"gormapy/gocore/log"
	"gormapy/gocore/sys"
)

// Code is what calls from Python get: 0, or class | slot<<8 of a text.
type Code = int

// Interrupted is returned by waiting calls so that the caller can look at
// signals and then wait on.
const Interrupted Code = -1

// texts holds the sentences of the latest errors. A code is turned into an
// exception at once, so a ring is enough.
var texts struct {
	sync.Mutex
	next int
	ring [1 << 12]string
}

// CodeOf makes a code of an error; nil is 0.
func CodeOf(e *errs.Error) Code {
	if e == nil {
		return 0
	}
	texts.Lock()
	defer texts.Unlock()
	texts.next = texts.next%(len(texts.ring)-1) + 1
	texts.ring[texts.next] = e.Error()
	return int(e.Class) | texts.next<<8
}

// codeOfErr is CodeOf for any error.
func codeOfErr(err error) Code {
	if err == nil {
		return 0
	}
	if e, ok := err.(*errs.Error); ok {
		return CodeOf(e)
	}
	return CodeOf(errs.New(errs.Other, "%v", err))
}

// NewError makes a code of a class and a text, for errors that Python finds.
func NewError(class int, text string) Code {
	return CodeOf(errs.New(errs.Class(class&0xff), "%s", text))
}

// ErrorText is the sentence for a code; the standard's for a bare class.
func ErrorText(c Code) string {
	class, slot := errs.Class(c&0xff), c>>8
	if slot > 0 && slot < len(texts.ring) {
		texts.Lock()
		defer texts.Unlock()
		if s := texts.ring[slot]; s != "" {
			return s
		}
	}
	return class.Text()
}

// Contain turns a panic into an error code: deferred by everything that is
// called from C, so that no panic ends the interpreter.
func Contain(c *Code) {
	if p := recover(); p != nil {
		*c = Panicked(p)
	}
}

// containNegated is Contain for results that are codes when they are negative.
func containNegated(result *int64) {
	if p := recover(); p != nil {
		*result = -int64(Panicked(p))
	}
}

// Panicked is the code for what a panic has been recovered with. A fault, but for one
// close to address 0, is of memory that the program gave to the call, since Go's own
// does not fault.
func Panicked(p any) Code {
	if fault := sys.AsFault(p); fault != nil && fault.Addr >= smallestAddress {
		log.Debugf("mpi", "%v\n%s", fault, debug.Stack())
		return Faulted(fault.Addr)
	}
	return CodeOf(errs.New(errs.Intern, "internal error: %v\n%s", p, debug.Stack()))
}

// smallestAddress is above what nil pointers to structs lead to.
const smallestAddress = 64 << 10

// Faulted is the code for a fault on the program's memory.
func Faulted(addr uintptr) Code {
	return CodeOf(errs.New(errs.Buffer, "%v", &sys.Fault{Addr: addr}))
}

func classError(c errs.Class, format string, args ...any) Code {
	return CodeOf(errs.New(c, "%s", fmt.Sprintf(format, args...)))
}
