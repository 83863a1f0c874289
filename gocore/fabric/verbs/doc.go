// Package verbs reaches peers through RDMA devices: InfiniBand, RoCE, and
// whatever else libibverbs drives with reliable connections. Put and Get are
// RDMA writes and reads straight between the memory of two programs, FetchAdd
// and CompareSwap the device's atomics, short messages are sends into a shared
// receive queue. Nothing of a peer's program is needed for the one-sided ones.
//
// # Connections
//
// Each side of a pair of ranks has one queue pair for it, made when its program
// first asks for the endpoint or when the peer's mail comes. A mail says all that
// its sender knows, so one that overwrites another loses nothing, and one that
// comes twice or late changes nothing:
//
//	init    my queue pair has this number and address; I don't know yours, or
//	        have not connected to it yet
//	ready   and it is connected to yours, number n: you may send
//	closed  it is gone, and why
//
// A side that has its queue pair and knows the peer's connects it (RTR, RTS), and
// then mails ready. It sends once it has itself connected and has had ready from
// the peer with its own number in it: a queue pair that sends sooner would use up
// its retries. So both may begin at once, or either, in any order, and each pair
// of numbers is used once. Mail with another number than the one first seen is
// ignored: a process is a rank for its whole life. The endpoint of a rank to
// itself has two queue pairs, joined at once.
//
// An endpoint is used from there until it fails, and never again after that:
//
//	failed  a request has completed with an error, or the peer has mailed closed.
//	        The queue pair is in the error state, what was under way comes back
//	        flushed and is Completed with an error, at the latest when the queue
//	        pair is destroyed half a second later
//	broken  all that is Completed; Broken was called; operations are refused with
//	        the error that was the first
//
// A side that fails mails closed; one that closes does so after what it has sent
// has arrived, or 2 seconds. A peer that is killed is noticed by whoever has
// something under way to it, when the device has had no answer for about a second.
//
// # Flow control
//
// All peers send into one shared receive queue of a fixed number of buffers. When
// none is left the receiver's device says so (RNR), and the sender's tries again,
// for ever (rnr_retry 7): nothing is lost, no memory grows, and no credits travel.
// It can't deadlock: who polls takes messages and gives their buffers back whether
// or not it can send itself, and a sender whose queue is full gets ErrAgain, it
// does not wait. A process that never polls holds up those who send to it, also
// their puts that come after in the same queue; the progress engine polls when the
// program does not. A process that is gone does not say RNR any more.
//
// # Completions
//
// A send queue has a fixed number of requests, and its requests end in order, so
// the completion of one says that all before it have ended. Signalled are: every
// 32nd request, and the last of an operation when no signalled one is under way.
// When Poll finds operations behind the last signalled request, and either
// nothing signalled under way or nothing new since it looked before, it has a
// write of nothing follow them, signalled. One place in the queue is kept for it.
// So 64 puts cost one extra request at most, and whoever sleeps on the
// completion channel is woken as long as anything is not complete.
//
// A put is complete when the peer's device has acknowledged it. Local memory that
// lies in a registered region is used in place; a write of few bytes is inline;
// other small pieces pass through registered buffers of the transport; what is
// longer is registered for the operation and deregistered when it ends. Nothing
// is cached beyond that: the layer above registers what it can watch.
//
// # Threads
//
// One lock guards endpoints, buffers and regions; it is not held while the sink
// is called. Only Poll, Arm and Close, which exclude each other, touch the
// completion queue.
//
// It may import device, fabric, ibverbs and sys. Built without cgo, New fails.
package verbs
