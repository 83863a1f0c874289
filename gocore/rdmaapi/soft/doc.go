// Package soft carries RDMA operations out in software, with the semantics of
// reliably connected queue pairs (RC): one-sided, in order, each request answered
// with the status that a device would give. There are two of it: tcp, over TCP
// sockets, and shm, over Unix sockets, where long data is copied by the kernel
// between the two processes (process_vm_readv, process_vm_writev) by the target's
// agent, after it has checked key, bounds and access.
//
// # Who does what
//
// A Context listens on a socket; its agent accepts. A connection of two queue
// pairs is one socket, a link, with two goroutines on either side: the reader,
// which serves what the peer asks (the responder) and takes the answers to what
// was asked here (the requester), and the writer. Whoever posts writes to the
// socket himself as far as it takes something (link.pump), and leaves the rest to
// the writer. So the program of a passive target is not involved, nor is its
// thread.
//
// # Connecting
//
// Info holds addresses, the number of the queue pair and a secret made for it. Of
// two queue pairs the one with the smaller secret dials, in a goroutine of its
// own; Connect does not wait. On the socket:
//
//	agent  → dialer  challenge: magic, version, nonce
//	dialer → agent   hello: both numbers, its nonce, a probe, two proofs
//	agent  → dialer  welcome: proof, what it can reach of the dialer's memory, a probe
//	dialer → agent   ready: proof, what it can reach
//
// Proofs are HMAC-SHA256 over nonces, numbers and all else that was said, one
// with the secret of either queue pair, so only who has been given both infos
// gets in. The agent checks the one with its own secret at once, the other when
// its program has called Connect; until then the link is parked with the queue
// pair, one at most. A probe is the address of a number in memory, and the
// number: who can read it there can copy.
//
// Requests posted before the link is up wait for it, Connection.Timeout at most.
//
// # Frames
//
// See frame.go. A request has a sequence number (PSN). Requests longer than
// segment bytes are sent in pieces with the same number, so that answers get
// between them. The responder expects numbers in order. It answers
//
//	ack      everything up to this number is done; also what is sent when it has
//	         nothing more to do, for all so far
//	data     a piece of what a read asked for; the last one is its ack
//	fetched  what an atomic fetched; an ack, too
//	nak      this request failed, with a status; all before are done. Both queue
//	         pairs are in the error state from then on
//	rnr      no receive is posted for this request; it and all after it have been
//	         thrown away, and have to be repeated from this number
//	receive  one is posted now: no need to wait for the timer
//
// A piece by address (shm) has no data with it but says where that is in the
// requester's memory.
//
// # Ends
//
// If the socket breaks, the first outstanding request completes with
// RETRY_EXC_ERR, all others and all receives with WR_FLUSH_ERR. Who closes his
// queue pair lets what it still owes as answers go out first, for a while.
//
// # Memory
//
// Each access to registered memory is made with the region's lock held for
// reading (region.use), in calls that do not block, and each one that moves data
// in for a link also with link.moving, where it sees that the link is dead: when
// Close of a region or queue pair has returned, or a flush has been reported,
// nothing is written any more. Where a peer may write here by itself (a read by
// address), the region is pinned until it has answered or has closed its socket,
// which it does only between two copies. A peer that does neither (it is stopped)
// makes Region.Close return ErrBusy in the end.
//
// Locks are taken in this order: link.wmu, qp.mu, then one of link.moving,
// cq.mu, region.mu.
//
// It may import fabric, rdmaapi/backend, rdmaapi/sockets and sys.
package soft
