// Package ofi is the back end of gormapy.rdma over libfabric. A protection domain is a
// domain. A queue pair is an endpoint for reliable datagrams (FI_EP_RDM) with a queue of
// its own, which communicates with one peer.
//
// It emulates what queue pairs promise and libfabric does not:
//   - Completions are delivered in the order of posting, and unsignalled ones only if
//     they failed (pair.deliver).
//   - A message, read or atomic is posted when all writes before it are done, so
//     that it finds their data. Writes do not wait for each other: the provider
//     decides whether overlapping ones are ordered (on EFA they are not).
//   - A write with immediate data is a write, and then a message without data that
//     announces it, in 64 bits of libfabric's immediate data. Providers that carry
//     fewer (EFA: 32) have no immediate data here.
//   - After an error the endpoint is closed, and all other requests are flushed.
//
// A provider that has begun to receive a peer's write may continue after the region
// is closed (tcp;ofi_rxm does). So Limits.Lingers makes the program keep the memory.
//
// It does not emulate the following: a message longer than its receive is an error
// only at the receiver, a message without a receive waits in the provider for ever, and
// a peer can be written to before its Connect.
//
// One goroutine per domain drives the provider, because some providers make no progress
// unless they are polled. It sleeps on the queues' descriptors, for at most 20 ms while
// there are queue pairs. domain.mu guards the pairs of a domain and all calls of libfabric
// for them.
//
// It may import device, libfabric and rdmaapi/backend.
package ofi
