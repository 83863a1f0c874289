// Package sys wraps the Linux calls that golang.org/x/sys does not offer or
// offers in a form that suits neither shared memory nor a caller that was
// entered from C: sealed memfds, shared futexes, copies between address
// spaces, whether processes live, pidfds and the scheduler's slice.
//
// It may import only the standard library.
package sys
