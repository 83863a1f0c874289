// Package transfer is the engine of gormapy.rdma.Engine: many reads and writes
// between registered memory here and at other engines, under way at a time, while
// nobody's program takes part. It works on any back end (package backend).
//
// # Objects
//
// An Engine has a device, a protection domain, regions, and a socket on which
// other engines call (control.go). Whoever wants to transfer has a remote for the
// other engine, made from its Card, and at the first transfer the remote makes a
// link: a connection to that socket and some queue pairs (lanes), which belong to
// the one who called. The one who was called has the other ends, a guest. Where
// two engines transfer to each other there are two links, one of each.
//
// # A transfer
//
// Transfer and its pieces wait in the queue of the link (link.queue, in the order
// of submission) until a lane has room. They are posted by whoever finds room:
// the caller, or the link's goroutine after completions. A batch of work requests
// of any number of transfers is one post; its last request is signalled, and some
// in between. A transfer that has no piece left, neither posted nor to be posted,
// has ended, and only then its Status says so: nothing touches its memory then.
//
// If it has a uid, the target is told: a notice is sent on each lane that carried
// a piece, after all have completed, and the target counts them: the uid has
// arrived when all have. So it depends on no order between writes, nor between
// lanes.
//
// # States of a link
//
//	calling  the socket is being connected, infos are exchanged; transfers wait
//	up       work requests are posted
//	broken   link.end says why; no more is posted. The link's goroutine closes
//	         the socket and the lanes, after which nothing of them moves, and then
//	         settles all transfers. If a work request has failed (a key that the
//	         target does not know breaks the lane), its transfer fails, and the
//	         others begin anew on the next link; else all fail
//
// Not every device tells whose fault it was: where a wrong key ends the connection,
// those that were under way with it may be the first to fail, as if the peer were
// gone. Then all begin anew, and one at a time (transfer.alone), so that the next
// one to fail is the one.
//
// The remote replaces a broken link when the next transfer comes.
//
// # Ends
//
// The socket stays open as long as the link or guest does. That it closes is how
// either side learns that the other one has ended, whatever the device knows; it
// may say goodbye, with a reason, before. A guest closes its lanes then, and a
// link breaks.
//
// # Locks
//
// Engine.mu, remote.mu, link.mu, then one of Region.mu, Status.mu, inbox.mu. A
// back end's calls are made under link.mu, closing queue pairs under none.
//
// It may import rdmaapi/backend and rdmaapi/sockets.
package transfer
