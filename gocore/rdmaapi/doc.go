// Package rdmaapi has the objects of gormapy.rdma: contexts, protection domains,
// memory regions, completion queues, queue pairs. Python names them by handles; a
// handle of a closed object, or of an object of another kind, is an error. The
// back ends (package rdmaapi/backend) carry the operations out.
//
// This package does for all back ends: it checks arguments before anything
// happens, accounts for the room in queues, closes objects in any order, and
// returns the data of a work request with its completion. A call either did
// nothing and returns the reason (Error), or it was carried out; a later failure
// is a completion.
//
// # Room
//
// A send queue has room for the number of work requests that it was created for.
// As in verbs, an unsignalled one takes its place until a later one has been
// polled. In a completion queue, each signalled request and each receive has a
// place reserved from the moment that it is posted until its completion is
// polled, so that the queue is never overrun.
//
// # Closing
//
// Objects form a graph: a region and a queue pair belong to a protection domain, a
// queue pair to its completion queues, all to a context (object.go). Closing an
// object first closes all objects that depend on it, even if there are handles of
// them.
//
// Locks are taken in this order: queue.polling, pair.mu, queue.mu; no other lock is
// taken while graph.mu is held.
//
// The functions of the transfer engine (engine.go, status.go) are on handles of
// package rdmaapi/transfer's objects. The status of a transfer has a number of
// another kind, because there are many of them.
//
// It may import fabric, rdmaapi/backend, rdmaapi/ofi, rdmaapi/sockets,
// rdmaapi/soft, rdmaapi/transfer, rdmaapi/verbs and sys.
package rdmaapi
