// Package verbs is the transport over RDMA devices: InfiniBand, RoCE, and any other
// that libibverbs drives with reliable connections. Put and Get are RDMA writes and
// reads between the memory of two programs, FetchAdd and CompareSwap are the device's
// atomics, and short messages are sends into a shared receive queue. One-sided
// operations need nothing of the peer's program.
//
// # Connections
//
// Each side of a pair of ranks has one queue pair for it, made when its program
// first asks for the endpoint or when the peer's mail comes. A mail contains all that
// its sender knows, so one that overwrites another loses nothing, and one that
// comes twice or late changes nothing:
//
//	init    my queue pair has this number and address; I don't know yours, or
//	        have not connected to it yet
//	ready   and it is connected to yours, number n: you may send
//	closed  it is gone, and why
//
// A side that has its queue pair and knows the peer's connects it (RTR, RTS), and
// then mails ready. It sends once it has itself connected and has received ready from
// the peer with its own number in it: a queue pair that sends sooner would use up
// its retries. So both sides may begin at once, or either first, and each pair
// of numbers is used once. Mail with another number than the one first seen is
// ignored, because a process is a rank for its whole life. The endpoint of a rank to
// itself has two queue pairs, which are connected at once.
//
// An endpoint is used until it fails, and not after that:
//
//	failed  a request has completed with an error, or the peer has mailed closed.
//	        The queue pair is in the error state. What was under way is flushed and
//	        Completed with an error, at the latest when the queue pair is destroyed
//	        half a second later
//	broken  all that is Completed, and Broken was called. Operations are refused with
//	        the first error
//
// A side that fails mails closed. A side that closes mails it after its data has
// arrived, or after 2 seconds. A peer that is killed is noticed by a rank that has
// something under way to it, when the device has had no answer for about a second.
//
// # Flow control
//
// All peers send into one shared receive queue of a fixed number of buffers. When
// none is left the receiver's device answers RNR, and the sender's tries again
// without end (rnr_retry 7): nothing is lost, no memory grows, and no credits travel.
// It can't deadlock: Poll takes messages and gives their buffers back even if its
// process can't send, and a sender whose queue is full gets ErrAgain and does not
// wait. A process that never polls holds up its senders, with their later puts in the
// same queue. The progress engine polls when the program does not. The device of a
// process that has ended does not answer RNR.
//
// # Completions
//
// A send queue has a fixed number of requests, and its requests end in order, so
// the completion of one shows that all before it have ended. Signalled are: every
// 32nd request, and the last of an operation when no signalled one is under way.
// When Poll finds operations behind the last signalled request, and either
// nothing signalled under way or nothing new since it last looked, it posts a
// follower: a signalled write of 0 bytes. One place in the queue is kept for it.
// So 64 puts cost at most one extra request, and a thread that sleeps on the
// completion channel is woken as long as anything is not complete.
//
// A put is complete when the peer's device has acknowledged it. Local memory in a
// registered region is used in place. A write of few bytes is inline. Other small
// pieces pass through registered buffers of the transport. Longer memory is registered
// for the operation and deregistered when it ends. Nothing is cached beyond that: the
// layer above registers memory that it can watch.
//
// # Threads
//
// One lock guards endpoints, buffers and regions; it is not held while the sink
// is called. Only Poll, Arm and Close, which exclude each other, touch the
// completion queue.
//
// It may import device, fabric, ibverbs and sys. Built without cgo, New fails.
package verbs
