// Package shm reaches peers on the same host: short messages through rings in
// the job's shared memory, one-sided copies through the kernel
// (process_vm_readv and process_vm_writev).
//
// # The ring protocol
//
// One ring carries the messages of one sender to one receiver. Its memory:
//
//	line 0       head: bytes consumed so far (written by the receiver)
//	line 1       (unused; keeps the lines apart)
//	from byte 128: records, each on a 64-byte boundary
//
// A record is a commit word, a length, the header and the payload, so that a
// message of 8 bytes is one cache line and a receiver that polls looks at just
// the line that will arrive. The commit word is 0 (empty), recordData or
// recordSkip (go on at the start of the ring), and the number of lines the
// record takes. The sender
//
//  1. makes sure that there is room: written + lines + 1 <= head + capacity, with
//     a copy of head that it refreshes when it seems full;
//  2. writes everything but the commit word, and sets the word behind the record
//     to 0: that is where the receiver looks next;
//  3. stores the commit word.
//
// The receiver
//
//  1. loads the commit word at its position; 0: nothing there;
//  2. hands over header and payload;
//  3. stores head.
//
// The receiver writes nothing but head, so that what it has read need not travel
// back. Only the sender writes records, between head and one line beyond what it
// has written; head is the hand-over. Where the receiver looks there is always 0
// or a record: memory is zero at first, and who publishes a record has set the
// word behind it before (and, for recordSkip, the first word of the ring). So
// neither can see a word of the other's half-done work. When the sender dies between 2 and 3 the
// record was never there; when the receiver dies nobody reads, and the sender
// learns of its death as anybody does. Several threads of a process share a
// sender under a mutex and a receiver under the engine's poll lock.
//
// It may import fabric, job and sys.
package shm
