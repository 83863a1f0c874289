// Package ibverbs is a binding of libibverbs for reliable connections: devices,
// protection domains, memory regions, completion queues and channels, shared
// receive queues and queue pairs, in the vocabulary of verbs. The library is
// opened when it is first asked for, so that nothing of RDMA is needed to build
// or to load this program; without it, or without a driver or a device, there is
// one error that says which of them is missing.
//
// A batch of work requests, and a batch of completions, is one call into C each,
// which allocates nothing. Every object is safe for concurrent use, and a closed
// one answers with EBADF. What an object was made from must be
// closed after it: the library answers EBUSY otherwise, and nothing happens.
//
// abi.h declares what is used of the library's binary interface, calls.c makes
// the calls. Memory that the device reads or writes must not be Go's.
//
// It may import only the standard library. Built without cgo, it has no library
// to offer.
package ibverbs
