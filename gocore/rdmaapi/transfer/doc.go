// Package transfer is the engine of gormapy.rdma.Engine. It carries out many reads
// and writes at a time between registered memory of this engine and of others,
// without the programs' help. It works on any back end (package backend).
//
// # Objects
//
// An Engine has a device, a protection domain, regions, and a socket to which other
// engines connect (control.go). An engine that initiates transfers has a remote for
// the other engine, made from its Card. At the first transfer the remote makes a
// link: a connection to that socket and some queue pairs (lanes), all used for
// transfers of the initiating engine only. The other ends of them are an inbound
// connection of the other engine. Two engines that transfer to each other have two
// links, one of each.
//
// # A transfer
//
// Transfers wait in the queue of the link (link.queue, in the order of submission)
// until a lane has room for pieces of them. The thread that submits a transfer posts
// pieces, and so does the link's goroutine after completions. One post has work
// requests of any number of transfers; its last request is signalled, and some in
// between. A transfer has ended when no piece is posted or still to be posted. Only
// then its Status is final, and nothing accesses its memory any more.
//
// If a transfer has a uid, the target is notified: when all pieces have completed,
// a notice is sent on each lane that carried one. The target counts the notices;
// the uid has arrived when all have. So arrival does not depend on any order
// between writes or between lanes.
//
// # States of a link
//
//	connecting  the socket is being connected, infos are exchanged; transfers wait
//	up          work requests are posted
//	broken      link.end has the reason; nothing more is posted. The link's goroutine
//	            closes the socket and the lanes, after which they move no data, and
//	            then settles all transfers. If a work request has failed (a key that
//	            the target does not know breaks the lane), its transfer fails, and
//	            the others start again on the next link; otherwise all fail
//
// Not every device reports which request was at fault: where a wrong key ends the
// connection, another request in flight may be the first to fail, as if the peer
// were gone. Then all transfers start again, one at a time (transfer.alone), so that
// the next failure identifies the transfer at fault.
//
// The remote replaces a broken link at the next transfer.
//
// # Ends
//
// The socket stays open as long as the link or inbound connection does. When it
// closes, the other side learns that this one has ended, whatever the device
// reports. A goodbye message with the reason may precede. Then an inbound
// connection closes its lanes, and a link breaks. A link first waits, at most
// lateTime, for its outstanding work requests: the last thing that the other side
// did, such as taking a notice, may have been acknowledged on the lanes only after
// the end of the socket arrived. Requests that fail meanwhile because the lanes were
// closed fail for the reason that came by the socket, and do not start again.
//
// # Locks
//
// The order is Engine.mu, remote.mu, link.mu, then one of Region.mu, Status.mu,
// inbox.mu. A back end is called under link.mu; queue pairs are closed under no lock.
//
// It may import handshake, rdmaapi/backend and rdmaapi/sockets.
package transfer
