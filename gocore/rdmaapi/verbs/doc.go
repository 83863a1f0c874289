// Package verbs is the back end of gormapy.rdma on RDMA devices, by libibverbs. It adds
// to package ibverbs the connection of two queue pairs (the info that is exchanged, the
// timers), and a wait for completions that can be ended.
//
// When a queue pair fails, its unsignalled requests complete as well. So a completion queue
// is made deeper than asked for: an overrun would break all its queue pairs.
//
// It may import device, ibverbs and rdmaapi/backend.
package verbs
