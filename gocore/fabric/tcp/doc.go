// Package tcp reaches peers over TCP: short messages only, in the order in which
// they were sent. One-sided operations are emulated above, by messages that the
// peer's progress engine serves.
//
// It starts no thread and does not use Go's network poller, whose goroutines
// cost a wake-up for each message: sockets are non-blocking, and Poll reads them
// from the caller's thread.
//
// # Pairs and connections
//
// There is at most one connection between two ranks, made when the first of
// them calls Connect, and used both ways. A pair is, at each of its two ends,
//
//	idle     nobody has asked for it
//	seeking  Connect was called: the next attempt is due at some time, at once or
//	         when the peer's card should be there, or after an attempt failed
//	trying   an own attempt, from connect(2) to the verdict, is under way
//	open     the connection is authenticated and in use
//	broken   it was lost, or can't be made; for good
//
// Whoever accepts a connection decides, when the initiator has proved who it is,
// whether it is the pair's ("use") or not ("yield"):
//
//	pair here        use, unless
//	idle, seeking
//	trying           this is the lower rank: its own attempt stays
//	open, broken     never
//
// If it uses the connection it gives up an attempt of its own. An initiator that
// is told to yield is seeking again, and tries later if the other's attempt has
// not come by then. So, when both try at once, the lower rank's attempt is used:
// the lower rank answers yield, the higher rank takes what it accepts. It can't
// happen that each uses another connection: the lower rank uses an accepted one
// only when no attempt of its own is under way, and makes none while one is open;
// so one that is under way at the higher rank's listener is the only one which
// the lower rank will use, whatever else comes. Nothing but the handshake is sent
// before the verdict, so nothing is lost or overtaken by the choice.
//
// An attempt that ends before the verdict (the peer has dropped it in favour of
// others, see below) is repeated with growing pauses, for giveUp in all. If the
// connection is refused no process listens there any more: broken. A peer that
// accepts nothing because it computes is waited for as long as it lives.
//
// # Handshake
//
// Messages of fixed length; I initiates, A accepts:
//
//	I: hello      magic, job, rank of I, rank of A, nonce of I
//	A: challenge  magic, nonce of A
//	I: response   HMAC(secret, "initiator", hello, challenge)
//	A: verdict    use or yield, HMAC(secret, "acceptor", hello, challenge, verdict)
//
// HMAC is that with SHA-256; secret is the job's, job a hash of it. So each side
// shows that it knows the secret and neither sends it; a recorded response fits
// no other nonces, and what one role says the other can't. A says nothing that
// depends on the secret before I has shown that it knows it. What follows is
// neither encrypted nor authenticated.
//
// Accepted connections that have not proved anything yet are strangers. Each has
// pendingTime, there are at most maxPending, and if there are more the oldest
// of those that have not even sent a hello of this job goes. They are read when
// there is something to read, a message at most each time, and never waited for.
//
// # Frames
//
//	u32 length of the payload | u32 frameMagic | fabric.Header | payload | 0 to 7 zeros
//
// all little-endian, each frame a multiple of 8 bytes, so that payloads lie
// aligned in the receive buffer. A receiver reads into that buffer; of a payload
// longer than placeMin, what is not in there yet goes straight to where
// Sink.Place wants it, over several polls if need be. Lengths are checked
// before anything is made of them; whatever is wrong breaks the pair.
//
// # Sending
//
// A frame goes out at once, in one system call, if nothing is queued. What the
// socket does not take is copied to the pair's queue, which Poll sends when there
// is room (EPOLLOUT is asked for as long as the queue is not empty). While there
// is a queue short frames join it up to queueMax, long ones find no room. A
// frame is sent or queued as a whole or not at all.
//
// # Ends
//
// A peer that closes or dies ends its side of the connection (FIN or RST). What
// came before is delivered, then Broken is called, once. What was sent and not
// read by then is lost: what is in the queue and in the kernel's buffers. Close
// sends what is queued as long as the peer takes it, for at most closeTime,
// reads and drops what has come, so that the kernel sends FIN and not RST, and
// then closes.
//
// # Who may touch what
//
// Transport.mu guards attempts, deadlines and the state of all pairs; pair.mu the
// queue and whatever sends. A state is changed under both, in this order, and
// only by the poller, but for Connect (idle to seeking) and for Close, when nobody
// polls. So the poller reads a pair's socket without a lock, and nobody closes a
// descriptor that another thread sends to. Sink is called without locks.
//
// # What Poll costs
//
// A message that finds the socket with room is one system call, and one or two
// take it out: Poll reads the pairs that were active lately (maxHot) without asking
// epoll, which it asks at each epollEvery-th poll, and at each one when there is no
// such pair, when something waits for room, and from Arm until something has come.
// A read that is not filled is not followed by another.
//
// It may import fabric and sys.
package tcp
