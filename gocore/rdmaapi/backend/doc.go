// Package backend is the contract between the objects of gormapy.rdma (package rdmaapi)
// and the back ends that carry out their operations: software over sockets or shared
// memory (rdmaapi/soft), libibverbs (rdmaapi/verbs), libfabric (rdmaapi/ofi).
//
// Its terms are those of verbs. Package rdmaapi checks for all back ends: it passes them
// only valid objects of one Context, local memory within its region, and queues with room
// in them, and it closes queue pairs before the objects that they use. A back end checks
// what only the two ends of a connection can (keys, remote bounds and access, receives
// that are missing or too short), and reports it as a Completion with the Status that
// verbs gives.
//
// It may import only the standard library.
package backend
