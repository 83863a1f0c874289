// Package libfabric is a binding of libfabric (the Open Fabrics Interfaces),
// for reliable datagram endpoints (FI_EP_RDM): providers, domains, address
// vectors, completion queues, memory regions, and posting of messages, RDMA
// reads and writes, and atomics of 8 bytes.
//
// The library is opened when it is first used, so that neither building nor
// importing needs it. It exports only a few functions; all others are
// calls through tables of the objects, declared in abi.h from the documented ABI
// (version 1.3 to 1.8 of its symbols, libfabric 1.14 to 2.x). New versions append
// fields to structures, which this package ignores: the library makes the structures
// (fi_dupinfo), or they are zeroed and larger than in any version.
//
// A batch of requests or of completions is one call into C. Contexts, entries and all
// else that holds C pointers is C memory.
//
// Open says what opening the library changes in the process.
//
// It may import only the standard library.
package libfabric
