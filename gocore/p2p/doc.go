// Package p2p is point-to-point communication: matching, the eager and the
// rendezvous protocol, requests and probes. coll, rma and mpi send messages by it.
//
// # Protocols
//
// A message of at most the eager limit travels whole (Eager), unless the receiver has too
// many of this sender that it has not received (credit.go). A longer one is
// announced (RTS, with the address or the key of dense data where the receiver
// can read it, or its share of the sender's arena). The receiver that has matched it reads the data with a one-sided
// Get, or copies it from where it maps the sender's arena, and notifies the sender (Fin). Where the transport has no Get, or it is
// slower, the receiver asks for the data (CTS), and the sender sends it in pieces
// (Data; stream.go). Over a socket the beginning of the data comes with the announcement, and
// payloads go straight into the buffers of receives (incoming.go). A synchronous send of a short message is an Eager with FlagSync,
// answered by Fin when matched. A sender that can't read its memory (package sys,
// Fault) sends nothing of a short message, and ends a long one by a Data with
// FlagFailed.
//
// Both sides name their requests by tokens, never by pointers. The token of a
// request that was cancelled or belongs to an older generation finds no request,
// and the message is dropped.
//
// While a recording is on, Header.Aux of an Eager or RTS of the program is the number
// of the send in it (package trace). Internal messages have a Label there. A Call is no
// message in this sense: it matches no receive, and goes to the channel's Listener.
//
// # Matching
//
// Each context (half of a communicator: one for point-to-point, one for
// collectives) has a queue of posted receives and one of unexpected messages,
// under one mutex. A message is matched with the first posted receive that
// accepts it, a receive with the first unexpected message that it accepts (posted.go, arrived.go). Since
// transports keep order, so does matching. Messages carry the generation of the
// job: older ones are dropped on arrival, newer ones (the sender has passed the
// collective reset before this rank) are kept until this rank passes it too.
//
// It may import check/events, choice, dtype, engine, errs, fabric, job, sys and trace.
package p2p
