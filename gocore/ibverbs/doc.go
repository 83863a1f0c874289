// Package ibverbs is a binding of libibverbs for reliable connections: devices,
// protection domains, memory regions, completion queues and channels, shared
// receive queues and queue pairs, in the terms of verbs. The library is opened when it is
// first used, so that building and loading this program need nothing of RDMA. If the
// library, a driver or a device is missing, the error says which.
//
// A batch of work requests or of completions is one call into C, which allocates nothing.
// Every object is safe for concurrent use, and a closed one returns EBADF. An object must
// be closed before those that it was made from: otherwise the library returns EBUSY, with
// no effect.
//
// abi.h declares what is used of the library's binary interface, calls.c makes
// the calls. Memory that the device reads or writes must not be Go's.
//
// It may import only the standard library. Built without cgo, Load fails.
package ibverbs
