// Package ofi is the transport over libfabric: reliable datagram endpoints
// (FI_EP_RDM) with FI_MSG and FI_RMA, and FI_ATOMIC where the provider has it.
//
// # Requirements on providers
//
// It requires no more than the EFA provider has, and uses more where another provider
// has it. Restrictions limit any provider to the rules of EFA.
//
//	matter            required                       used where there is more
//	progress          manual: who waits polls        -
//	inject            none: buffers of the transport for short messages, no buffer is held
//	                  until completion
//	waiting           none                           FI_WAIT_FD: the transport is a Sleeper
//	atomics           none                           fetch-add and compare-swap of uint64
//	order of sends    none: messages are numbered    FI_ORDER_SAS: a gap is a loss
//	order of writes   none                           -
//	completion        FI_DELIVERY_COMPLETE, else 4   -
//	                  bytes of immediate data
//	addresses         any length up to 400 bytes     -
//	memory            FI_MR_LOCAL, VIRT_ADDR,        a mode that is not demanded is not followed
//	                  ALLOCATED, PROV_KEY, ENDPOINT
//
// # Messages
//
// A message is one frame: a prefix, the header, the payload. It is sent from a
// buffer of the transport and arrives in one of a ring of posted receives, which
// is posted again after delivery. The prefix has the sender's rank, the frame's number
// among those from this sender to this receiver, and a tag. Frames with a wrong tag are
// dropped: other programs may use the network, too. If a number is too high and the provider
// may reorder, the receiver keeps the frame until those before it have come. If the provider
// keeps the order, frames were lost (by a provider that reconnects on its own), and the
// connection is broken.
//
// # Tags
//
// On one host, a tag is a word that only the ranks of the job can know, another one for each
// pair of ranks and direction. What hosts send may be seen by others. So between hosts a tag is
// the GMAC (AES-128, 16 bytes) of the whole frame with its prefix, with a key for each pair and
// direction, see seal. Each tag that is made has a number of its own, which is the GMAC's nonce and goes with
// the frame: a frame that the provider refuses is made again with another tag, because another frame may take its
// place. A frame that is sent again by somebody else has a number that has come before. Frames are not encrypted.
//
// One-sided operations are the provider's. Nothing of the transport's is in their packets, so they are not
// authenticated: who sees a packet of one (its address and key), and can send others, can write to the
// memory that is registered. Whoever only sends has to guess a key, of 63 random bits where the provider
// leaves keys to its user. Nor is the immediate data of a put authenticated, where puts are acknowledged by frames (see
// Operations): who can send a write with rank and slot of his choice, of 32 bits in all, has the target acknowledge a put of that
// rank, by a frame with a good tag. If that put is under way, the rank takes it for complete before its data has
// arrived. Nothing but the time of a completion can be forged by that, and who sends many of them
// can have acknowledgements dropped, so that a put waits for ever.
//
// # Addresses
//
// An endpoint is bound to one address, and the card has that one. On one host it is of the loopback
// interface. Between hosts it is the one by which the agents of the nodes have reached each other
// (fabric.Directory.Address), if the provider has it: of the addresses of a host some may lead nowhere.
//
// # Operations
//
// Every request under way has a slot: a context for the provider, and the operation that
// the request is of. An operation is one request, or several if it has runs or is longer
// than the provider takes. It is accepted as soon as the first one is posted, and Poll
// posts the others. An endpoint has at most one such unfinished operation and takes no
// other meanwhile. Slots and buffers are bounded, also for each endpoint.
//
// A put is complete when its data is visible at the peer. Where the provider has
// no FI_DELIVERY_COMPLETE, a put is a write with immediate data, rank and slot
// of the origin: its arrival in the target's queue says that the data is there
// (no order of messages and writes would), and the target's Poll acknowledges it by a frame.
//
// A slot is free or posted. A posted one waits for its local completion, and for the
// acknowledgement if puts are acknowledged by frames. The two come in either order. Slots
// are taken by the thread that posts and freed by Poll, under the transport's lock.
//
// # The end of a peer
//
// A post or completion that fails because of the connection breaks the endpoint. Nothing
// is posted to it any more. Requests under way have one second to complete or fail by
// themselves, because until then the provider may write to local memory. Then they are
// Completed, and then Broken is called. A transport that closes sends a goodbye, in the
// order of messages, to the peers that it has communicated with. A provider of datagrams
// may never report that a process has died (ofi_rxm connects again and again, EAGAIN each
// time); the engine learns it by other means. libfabric's own shm provider has spin locks
// in shared memory: a process that is killed while it holds one leaves its peers in a call
// that never returns, until the launcher ends them. It is for learning, and is used only
// if it is named (package device).
//
// # Locks
//
// The provider is asked for FI_THREAD_SAFE. One lock guards slots, buffers, endpoints and
// posting. The thread that polls reads the completion queue without it, and owns the
// receiving state (numbers, early messages). Sinks are called without the lock.
//
// # Memory that faults
//
// Local memory is probed before an operation begins, so that memory which can't be
// accessed is an error of the operation. Memory of a window that can't be accessed any
// more (the file that it maps was truncated) faults where it is written: a device refuses
// the write, but the providers in software (tcp, shm, ofi_rxm over them) copy in C within
// the target's process, which then ends with SIGSEGV or SIGBUS.
//
// It may import device, fabric, libfabric, settings and sys.
package ofi
