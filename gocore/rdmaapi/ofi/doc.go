// Package ofi has gormapy.rdma by libfabric: a protection domain is a domain, a
// queue pair an endpoint for reliable datagrams (FI_EP_RDM) with a queue of its
// own, that talks to one peer.
//
// What queue pairs promise and libfabric does not, is made here:
//   - Completions are handed on in the order of posting, those that are not
//     signalled not at all (pair.settle).
//   - A message, read or atomic is posted when all writes before it are done, so
//     that it finds their data. Writes are not held back for each other: whether
//     overlapping ones are ordered is the provider's (not on EFA).
//   - A write with immediate data is a write, and then a message without data that
//     says so, in the 64 bits that go along with it; providers that carry fewer
//     (EFA: 32) have no immediate data here.
//   - After an error the endpoint is closed, and all else is flushed.
//
// A provider that has begun to take a peer's write goes on with it after the region
// is closed (tcp;ofi_rxm does), so Limits.Lingers has the program keep the memory.
//
// What is not made: a message longer than its receive is an error there only, and
// a message without a receive waits in the provider for ever. Peers need no
// Connect to be written to.
//
// One goroutine per domain drives the provider, for those that move nothing
// unless somebody polls: it sleeps on the queues' descriptors, but never long.
// domain.mu guards the pairs of a domain and all calls of libfabric for them.
//
// It may import device, libfabric and rdmaapi/backend.
package ofi
