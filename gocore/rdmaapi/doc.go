// Package rdmaapi has the objects of gormapy.rdma: contexts, protection domains,
// memory regions, completion queues, queue pairs. Python names them by handles; a
// handle of an object that is closed, or of another kind, is an error. What they
// do is the back ends'.
//
// Here, for all back ends: the checks of what is asked for before anything
// happens, the room in queues, closing in any order, and what a work request was
// when its completion comes. A call has either done nothing and says why
// (Error), or it was carried out; what goes wrong later is a completion.
//
// # Room
//
// A send queue has room for as many work requests as were asked for. As in verbs,
// one that is not signalled takes its place until a later one has been polled.
// In a completion queue, each signalled request and each receive has a place
// reserved from the moment that it is posted until its completion is polled, so
// that the queue is never overrun.
//
// # Closing
//
// Objects form a graph: a region and a queue pair belong to a protection domain, a
// queue pair to its completion queues, all to a context (object.go). Closing one
// closes all that depends on it, first, whoever still holds a handle of it.
//
// Locks are taken in this order: queue.polling, pair.mu, queue.mu; graph.mu is
// never held when another one is taken.
//
// The transfer engine (engine.go, status.go) is handles of package rdmaapi/transfer's
// objects; a transfer's status has a number of its own kind, because there are many.
//
// It may import fabric, rdmaapi/backend, rdmaapi/ofi, rdmaapi/sockets,
// rdmaapi/soft, rdmaapi/transfer, rdmaapi/verbs and sys.
package rdmaapi
