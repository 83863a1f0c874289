package mpi

import (
	"fmt"
	"runtime/debug"
	"sync"

	"gormapy/gocore/errs"
	"gormapy/gocore/log"
	"gormapy/gocore/sys"
)

// Code is what functions return to Python: 0, or class | slot<<8 of a text.
type Code = int

// Interrupted is returned by waiting calls so that the caller can handle signals and
// then continue to wait.
const Interrupted Code = -1

// texts holds the texts of the latest errors. Python turns a code into an exception
// at once, so a ring is enough.
var texts struct {
	sync.Mutex
	next int
	ring [1 << 12]string
}

// CodeOf returns the code of an error; 0 for nil.
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

// NewError returns the code of a class and a text, for errors that Python detects.
func NewError(class int, text string) Code {
	return CodeOf(errs.New(errs.Class(class&0xff), "%s", text))
}

// ErrorText returns the text of a code; for a bare class, the standard's.
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

// Contain ends a call of the program; every function that C calls defers it. A panic becomes
// an error code, so that it does not end the interpreter. What the call has left queued, the
// progress engine sends, since the program may compute next.
func Contain(c *Code) {
	if p := recover(); p != nil {
		*c = Panicked(p)
	}
	if state.Load() == stateReady {
		proc.eng.HandOver()
	}
}

// containNegated is Contain for results that are codes when they are negative.
func containNegated(result *int64) {
	if p := recover(); p != nil {
		*result = -int64(Panicked(p))
	}
}

// Panicked returns the code for a recovered panic p. A fault on memory is the
// program's, which gave the memory to the call, unless it is close to address 0: Go's
// own memory does not fault.
func Panicked(p any) Code {
	if fault := sys.AsFault(p); fault != nil && fault.Addr >= smallestAddress {
		log.Debugf("mpi", "%v\n%s", fault, debug.Stack())
		return Faulted(fault.Addr)
	}
	return CodeOf(errs.New(errs.Intern, "internal error: %v\n%s", p, debug.Stack()))
}

// smallestAddress is above the addresses of fields in structs at nil.
const smallestAddress = 64 << 10

// Faulted returns the code for a fault on the program's memory.
func Faulted(addr uintptr) Code {
	return CodeOf(errs.New(errs.Buffer, "%v", &sys.Fault{Addr: addr}))
}

func classError(c errs.Class, format string, args ...any) Code {
	return CodeOf(errs.New(c, "%s", fmt.Sprintf(format, args...)))
}
