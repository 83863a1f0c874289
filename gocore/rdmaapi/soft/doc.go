// Package soft is the software back ends of gormapy.rdma. They carry RDMA operations
// out with the semantics of reliably connected queue pairs (RC): one-sided, in
// order, each request answered with the status that a device would give. There are
// two: tcp, over TCP sockets, and shm, over Unix sockets. In shm the kernel copies
// long data between the two processes (process_vm_readv, process_vm_writev), called
// by the target's reader after it has checked key, bounds and access.
//
// # Goroutines
//
// A Context listens on a socket and accepts peers (context.accept, the agent). A
// connection of two queue pairs is one socket, a link, with two goroutines on
// either side: the reader, which serves the peer's requests (the responder) and
// takes the answers to requests of this side (the requester), and the writer. A
// thread that posts writes to the socket itself as far as the socket takes data
// (link.pump), and leaves the rest to the writer. So neither the program of a
// passive target nor its thread is involved.
//
// # Connecting
//
// Info holds addresses, the number of the queue pair and a secret made for it. Of
// two queue pairs the one with the smaller secret dials, in a goroutine of its
// own; Connect does not wait. The handshake is that of package handshake, with these
// bodies; the tag is that of the agent's secret, by which the agent finds the queue pair:
//
//	dialer → agent  introduction: the dialer's number, a probe, a binding
//	agent → dialer  welcome: whether it can copy the dialer's memory, a probe
//	dialer → agent  ready: whether it can copy the agent's memory
//
// The introduction is proved with the agent's secret, which the agent checks at once. The
// binding (handshake.Exchange.Bind) proves number and probe with the dialer's secret;
// the agent checks it when its program has called Connect. Until then the connection is
// parked with the queue pair, at most one. The later messages are proved with both
// secrets, so only a peer that was given both infos is accepted. A probe is the address
// of a number in the sender's memory, and the number: a peer that can read it there can
// copy.
//
// Requests posted before the link is up wait for it, at most Connection.Timeout.
//
// # Frames
//
// See frame.go. A request has a sequence number (PSN). Requests longer than
// segment bytes are sent in pieces with the same number, so that answers can be
// sent between them. The responder expects numbers in order. It answers
//
//	ack      all requests up to this number are done; sent once for several, when
//	         the reader would wait for the peer
//	data     a piece of the data of a read; the last one is the read's ack
//	fetched  the value that an atomic fetched; also its ack
//	nak      this request failed, with a status; all before it are done. Both queue
//	         pairs are in the error state from then on
//	rnr      no receive is posted for this request; it and all after it have been
//	         discarded, and have to be repeated from this number
//	receive  a receive is posted now: the requester need not wait for the timer
//
// A piece by address (shm) carries no data but the address of the data in the
// requester's memory.
//
// # Ends
//
// If the socket breaks, the first outstanding request completes with
// RETRY_EXC_ERR, all others and all receives with WR_FLUSH_ERR. A queue pair that is
// closed still sends the answers that it owes, for at most lingerTime.
//
// # Memory
//
// Each access to registered memory is made with the region's lock held for
// reading (region.use), in calls that do not block. An access that moves data in
// for a link is made with link.moving held, too, after a check that the link is
// not dead. So when Close of a region or queue pair has returned, or a flush has
// been reported, nothing is written any more. Where a peer may write to this
// process by itself (a read by address), the region is pinned until the peer has
// answered or has closed its socket, which it does only between two copies. If the
// peer does neither, because it is stopped, Region.Close returns ErrBusy after
// drainTime.
//
// Locks are taken in this order: link.wmu, qp.mu, then one of link.moving,
// cq.mu, region.mu, context.mu.
//
// It may import fabric, handshake, rdmaapi/backend, rdmaapi/sockets and sys.
package soft
