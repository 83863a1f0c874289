// Package tcp is the transport over TCP. It carries short messages only, in the
// order in which they were sent. One-sided operations are emulated above, by
// messages that the peer's progress engine serves.
//
// It starts no thread and does not use Go's network poller, whose goroutines
// cost a wake-up for each message: sockets are non-blocking, and Poll reads them
// on the caller's thread.
//
// # Pairs and connections
//
// There is one connection between two ranks, made when the first of
// them calls Connect, and used both ways. There may be more, see Lanes; what is said here holds for each.
// At each of the two ends a pair is
//
//	idle     Connect was not called and no connection was accepted
//	seeking  Connect was called and the next attempt is due at some time: at once,
//	         when the peer's card should be there, or after a failed attempt
//	trying   an own attempt, from connect(2) to the verdict, is under way
//	open     the connection is authenticated and in use
//	broken   the connection was lost, or can't be made; final
//
// When the initiator of an accepted connection has proved its identity, the
// acceptor decides whether the connection becomes the pair's ("use") or not
// ("yield"). This depends on the acceptor's state of the pair:
//
//	idle, seeking    use
//	trying           use if the acceptor is the higher rank, else yield: the
//	                 lower rank's own attempt stays
//	open, broken     the connection is closed without a verdict
//
// If the acceptor uses the connection it gives up an attempt of its own. An
// initiator that is told to yield is seeking again, and tries later if the
// peer's attempt has not arrived by then. So, when both try at once, the lower
// rank's attempt is used: the lower rank answers yield, the higher rank uses the
// connection that it accepts. The two can't use different connections: the lower
// rank uses an accepted one only while no attempt of its own is under way, and
// makes no attempt while a connection is open. So while an attempt of the lower
// rank is under way, it is the only connection that the lower rank will use.
// Nothing but the handshake is sent before the verdict, so the choice neither
// loses nor reorders messages.
//
// An attempt that ends before the verdict (the peer has evicted it, see below)
// is repeated with growing pauses, for giveUp in all. If the connection is
// refused no process listens there any more: the pair is broken. A peer that
// accepts nothing because it computes is waited for as long as it lives.
//
// A card may have several addresses, of which some lead nowhere, or to another host. They make
// a round of attempts, which begin staggerTime after one another, or as soon as one has failed; what is said
// above of an attempt is meant of the round. The acceptor uses only one of its connections,
// and the initiator closes the others. An attempt that is not answered within answerTime has
// failed, unless the initiator has proved its identity: then the acceptor may be using it.
//
// # Handshake
//
// It is that of package handshake, with the job's secret and these bodies:
//
//	I: ranks    rank of I, rank of A, guard of I, number of the lane
//	A: verdict  use, yield or guard; guard of A
//
// The challenge proves that the acceptor knows the secret. So an acceptor says nothing else before the
// initiator has proved that, too, and the initiator tells nobody else which rank it is. Both compare their
// guards. A peer that answers
// and is none (another job's, another program) breaks the pair at once, and so does one with
// another guard.
//
// An accepted connection is pending until its initiator has proved its identity.
// It has pendingTime for that. There are at most maxPending; when another one
// arrives, the oldest that has not even sent a hello with this job's tag is evicted. A
// pending connection is read only when epoll reports it, never beyond the end of
// the message that is due, and never waited for.
//
// # Frames
//
//	u32 length of the payload | u8 frameMagic | u24 number | fabric.Header | payload | 0 to 7 zeros
//
// all little-endian, each frame a multiple of 8 bytes, so that payloads lie
// aligned in the receive buffer. A receiver reads into that buffer. Of a payload
// longer than placeMin, the part that is not in the buffer yet is read directly
// into the memory that Sink.Place returned, over several polls if need be.
// Lengths are checked before they are used; an invalid frame breaks the pair. Numbers count the frames from
// one rank to another, modulo 2^24; a frame with another number than the one that is due is invalid, unless there are
// several lanes.
//
// # Lanes
//
// A network may limit each connection: by a cap, or by a window that is short for the distance. Two ranks may therefore
// have up to MaxConnections of them. Lane 0 is the one that Connect makes. The others are made as it
// is, each with an attempt, a handshake and a verdict of its own, by either rank, while lane 0 is open at both. They have the address that
// lane 0 has found, or another one of the peer's. An attempt that fails is repeated as those for lane 0 are; a lane that can't be made
// is not used, and nothing else happens.
//
// Frames with payloads of laneMin and more take the next lane that has room, in turn; all others take lane 0. The receiver delivers
// frames in the order of their numbers. A lane whose first frame is not due is early: it is not read until that frame is due,
// and its bytes wait in the kernel's buffers. Numbers grow along each lane, and a
// number is taken only by a frame that is sent or queued at that moment. So the frame that is due is always the first of
// its lane that has not been delivered, and no lane waits for another in a circle. A frame that is due
// keeps the others waiting until all of it has arrived. Each lane takes no more than maxUnsent that it has not sent, so that it
// gets as many frames as it carries.
//
// The number of lanes is given, or the meter of the sender finds it. It counts what the peer acknowledges while
// no lane in use has room for a long frame, in samples of at least sampleTime and sampleBytes:
//
//	starting   one lane, whose window still grows: a first sample does not count
//	measuring  one lane; after a sample more are asked for
//	opening    until they are open, for at most openTime; if there are none then: settled, with one
//	warming    all are used; a sample in which windows grow does not count
//	comparing  after a sample: settled, with all if they carried gainMin times as much as one, else with one
//
// A time without room that is longer than pauseTime does not count: the peer may have been stopped.
//
// Control frames are sent on lane 0, behind all frames before them in number.
//
// A lane that ends, also one that no frame uses, ends the pair. If it ends in order (FIN, between two frames), as those of a process that has ended do, the
// others are read until they have ended, too, for at most endTime; this rank sends nothing more, and says so
// by FIN, so that a peer that is alive ends them. If it ends by an error, or if no lane is left on which the frame that is
// due can come, what has arrived and is due is delivered, and the pair breaks. After the peer's goodbye
// nothing is missing: other lanes than lane 0 may end, and the end of lane 0 is that of the pair.
//
// # Guards
//
// What follows the handshake is guarded in one of three ways, the same at all ranks of a job. By the
// settings, it is clear between ranks of one host, and authenticated between hosts.
//
//	clear          frames as above
//	authenticated  each frame is a record of package seal, of which all is readable
//	encrypted      likewise, and only the length, frameMagic and the number are readable
//
// A record is a frame with a tag of 16 bytes behind its zeros; the tag covers all of it. Control frames
// are records, too. The handshake is keyed, so each connection and each direction has keys of
// its own, and the nonce of a record is its place among those of the connection. Who is between two ranks
// can end their connection, or keep bytes back, which may change nothing but the length or, with several lanes, the number that the
// receiver waits for. Anything else breaks the pair when a record does not open, and nothing of that
// record is delivered; the error is seal.ErrForged. The end of a connection is a loss unless a goodbye has come, which is a
// record.
//
// Both ends work on memory of their own. The sender copies a payload before it makes the tag,
// because the program's memory may change in the meantime, as that of a window does by
// other ranks' Puts: the tag would be wrong, and a race of the program end the job. The receiver
// opens a record in the pair's buffer, or one that is longer than that in scratch memory, and copies
// a long payload from there to where Place says, for the same reason, and because nothing
// unknown is to be written there. Beside the making of a tag the copies cost little: the memory is in the cache.
//
// # Sending
//
// A frame is sent at once, in one system call, if nothing is queued. The part
// that the socket does not take is copied to the pair's queue, which Poll sends
// when there is room (EPOLLOUT is requested as long as the queue is not empty).
// While the queue is not empty short frames join it, up to queueMax, and long
// frames get ErrAgain. A frame is sent or queued as a whole or not at all.
//
// # Held back
//
// Gather adds a frame with less than laneMin bytes to the queue and leaves it there,
// although there may be room: the queue is held. It is pushed, in one system call if the socket
// takes it, with the next frame that is sent or with Push, when it has heldMax bytes, or at
// the end of the next Poll. So the answers that handlers give to what one Poll delivers
// travel together. A queue that is held is on lane 0; it is pushed before a long frame is
// sent on another lane, so that a number that was taken is never waited for.
//
// # Ends
//
// A peer that closes or dies ends its side of the connection (FIN or RST). All
// messages that arrived before are delivered, then Broken is called, once. What
// was sent and not read by then is lost: the contents of the queue and of the
// kernel's buffers. This can also happen to a peer that only closes: if it has not
// read what this side sent, its kernel sends RST and drops what is still to be sent.
//
// So a rank disconnects before it closes. It says goodbye, a control frame behind all
// that it has sent, and the peer's poll answers it. With the answer everything has been
// received. The peer that was told goodbye takes the end of the connection, FIN or RST, for
// ErrDisconnected. Both sides may say goodbye at the same time; each answers the other. An
// answer that does not come because the peer has closed meanwhile is not needed: the pair is
// broken, and the peer wants nothing any more.
//
// Close without a goodbye (the rank has failed) sends the queue as long as the peer takes it,
// for at most closeTime, reads and drops what has arrived, so that the kernel sends FIN
// and not RST, and then closes.
//
// # Locks
//
// Transport.mu guards attempts, deadlines and the state of all pairs; route.mu, which a peer's lanes share,
// guards the queue and everything that sends. A state is changed under both, in
// this order, and only by the poller, except in Connect (idle to seeking), Cut and
// Close, when no thread polls. So the poller reads a pair's socket without a
// lock, and no descriptor is closed while another thread sends to it. Sink is
// called without locks.
//
// # The cost of Poll
//
// A message to a socket with room takes one system call to send and one or two to
// receive. These calls do not wait, and are not announced to Go's scheduler. A connection within a host is not paced, see tune.
// Poll reads the pairs that were active lately (maxHot) without asking
// epoll. It asks epoll at each epollEvery-th poll, and at every poll when there is
// no such pair, when a frame or a sender waits for room, and from Arm until
// something has arrived. A read that does not fill its buffer is not followed by
// another.
//
// It may import fabric, handshake, seal, settings and sys.
package tcp
