// Package verbs is the back end of gormapy.rdma on RDMA devices, by libibverbs. It adds
// to package ibverbs the connection of two queue pairs (the info that is exchanged, the
// timers), and a wait for completions that can be ended.
//
// A completion queue is made deeper than asked for. When a queue pair fails, requests
// that are not signalled complete, too, and an overrun would break all queue pairs of the
// queue.
//
// It may import device, ibverbs and rdmaapi/backend.
package verbs
