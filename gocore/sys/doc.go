// Package sys wraps Linux calls that golang.org/x/sys does not have, or has in a
// form that suits neither shared memory nor a caller that was entered from C:
// sealed memfds, mappings, shared futexes, copies between address spaces, process
// states, pidfds, signals to groups, and the scheduler's slice. It also turns faults
// on the program's memory into errors (Touch). Most packages of the core use it.
//
// It may import only the standard library.
package sys
