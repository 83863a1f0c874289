// Package backend is the contract between the objects of gormapy.rdma (package
// rdma) and what carries their operations out: software over sockets or shared
// memory (package soft), libibverbs, libfabric.
//
// The words are those of verbs. What package rdma does for all back ends, they
// need not: it hands them valid objects only, all of one Context, local memory
// within its region, queues with room in them, and it closes queue pairs before
// what they use. What only the two ends of a connection can check (keys, remote
// bounds and access, receives that are missing or too short) is theirs, and the
// answer is a Completion with the Status that verbs gives.
//
// It may import only the standard library.
package backend
