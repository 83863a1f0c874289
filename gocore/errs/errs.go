// Package errs has the error type that reaches users: an MPI error class and a text
// that names what was requested, what is available and what to do.
//
// It may import only the standard library.
package errs

import "fmt"

// Error is an MPI error.
type Error struct {
	Class  Class
	Detail string
}

// Error implements error: the class's name, then the detail.
func (e *Error) Error() string { return e.Class.String() + ": " + e.Detail }

// New returns an error of class c.
func New(c Class, format string, args ...any) *Error {
	return &Error{Class: c, Detail: fmt.Sprintf(format, args...)}
}
