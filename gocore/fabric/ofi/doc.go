// Package ofi reaches peers through libfabric: reliable datagram endpoints
// (FI_EP_RDM) with FI_MSG and FI_RMA, and FI_ATOMIC where the provider has it.
//
// # What is relied upon
//
// It is written for the rules of the EFA provider, which has least, and uses what
// others have more of. Restrictions switches those rules on for any provider.
//
//	matter            relied upon                    used where there is more
//	progress          manual: whoever waits polls    -
//	inject            none: buffers of the transport for short messages, no buffer is held
//	                  until completion
//	waiting           none                           FI_WAIT_FD: the transport is a Sleeper
//	atomics           none                           fetch-add and compare-swap of uint64
//	order of sends    none: messages are numbered    FI_ORDER_SAS: a gap is a loss
//	order of writes   none                           -
//	completion        FI_DELIVERY_COMPLETE, else 4   -
//	                  bytes of immediate data
//	addresses         any length up to 400 bytes     -
//	memory            FI_MR_LOCAL, VIRT_ADDR,        what is not demanded is not done
//	                  ALLOCATED, PROV_KEY, ENDPOINT
//
// # Messages
//
// A message is one frame: a prefix, the header, the payload. It is sent from a
// buffer of the transport and arrives in one of a ring of posted receives, which
// is posted again after delivery. The prefix has the sender's rank, the number of
// the message on its way from sender to receiver, and a token that only ranks of
// the job can know. Frames that don't fit are dropped: the network may
// be anybody's. A receiver that sees a number too high keeps the frame until the
// ones before have come, if the provider may reorder; else messages were lost (a
// provider that reconnects on its own), and the connection is broken.
//
// # Operations
//
// Everything under way has a slot: a context for the provider and who waits for
// it. An operation is one request, or several where it has runs or is longer than
// the provider takes; it is accepted as soon as the first one is posted, and Poll
// posts the others. An endpoint has at most one such unfinished operation and
// takes no other meanwhile. Slots and buffers are bounded, for each endpoint too.
//
// A put is complete when its data is visible at the peer. Where the provider has
// no FI_DELIVERY_COMPLETE, a put is a write with immediate data, rank and slot
// of the origin: its arrival in the target's queue says that the data is there
// (no order of messages and writes would), and the target's Poll acknowledges it by a frame.
//
// States of a slot: free; posted (waits for local completion); with own
// acknowledgements also acknowledged before completed and the other way round,
// until both have come. Slots are taken by the poster and freed by Poll, under the
// transport's lock.
//
// # The end of a peer
//
// A post or completion that fails for the connection's sake breaks the endpoint:
// nothing is posted to it any more, what is under way gets a grace of one second
// to complete or fail by itself, since until then the provider may write to
// local memory; then Completed, then Broken. A transport that closes says goodbye
// to the peers that it has talked to, in the order of messages. Of a process that
// dies a provider of datagrams may never tell (ofi_rxm connects again and again,
// EAGAIN each time); that it is dead the engine learns otherwise. libfabric's own
// shm provider has spin locks in shared memory: who is killed while holding one
// leaves its peers in a call that never returns, until the launcher ends them. It
// is for learning, and used only where it is named (package device).
//
// # Locks
//
// The provider is asked for FI_THREAD_SAFE. One lock covers slots, buffers,
// endpoints and posting; reading the completion queue is not under it, and the
// receiving state (numbers, stashes) belongs to whoever polls. Sinks are called
// without it.
//
// # Memory that faults
//
// Local memory is probed before an operation begins, so that memory which can't be
// accessed is an error of the operation. Memory of a window that can't be accessed any
// more (the file that it maps was truncated) is met by whoever writes it: a device
// refuses the write, but the providers in software (tcp, shm, ofi_rxm over them) copy in
// C within the target's process, which then ends with SIGSEGV or SIGBUS.
//
// It may import device, fabric, libfabric and sys.
package ofi
