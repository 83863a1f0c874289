// Package verbs has gormapy.rdma on RDMA devices, by libibverbs. It adds to
// package ibverbs what connects two queue pairs (the info that is exchanged, the
// timers) and a way to wait for completions that can be ended.
//
// A completion queue is made deeper than it was asked to be: what is not signalled
// completes, too, when a queue pair fails, and an overrun would break all of its
// queue pairs.
//
// It may import device, ibverbs and rdmaapi/backend.
package verbs
