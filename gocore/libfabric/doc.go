// Package libfabric is a binding of libfabric (the Open Fabrics Interfaces),
// for reliable datagram endpoints (FI_EP_RDM): providers, domains, address
// vectors, completion queues, memory regions, and posting of messages, RDMA
// reads and writes, and atomics of 8 bytes.
//
// The library is opened when it is first asked for, so that neither building nor
// importing needs it. It exports only a handful of functions; all others are
// calls through tables of the objects, declared in abi.h from the documented ABI
// (version 1.3 to 1.8 of its symbols, libfabric 1.14 to 2.x). New versions append
// to structures, and what they append is not looked at: structures are made by
// the library (fi_dupinfo), or are larger here than any version knows, zeroed.
//
// Everything that is posted or polled goes through one C call a batch. Contexts,
// entries and what else holds C pointers is C memory.
//
// What opening does to the process: see Open.
//
// It may import only the standard library.
package libfabric
