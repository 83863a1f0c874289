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
//  1. makes sure that there is room: written + lines <= head + capacity, with
//     a copy of head that it refreshes when it seems full;
//  2. writes everything but the commit word;
//  3. stores the commit word.
//
// The receiver
//
//  1. loads the commit word at its position; 0: nothing there;
//  2. hands over header and payload;
//  3. clears the first word of every line of the record, commit word last of
//     all, since each may be the commit word of a later record;
//  4. stores head.
//
// Only the sender writes lines between head and written, only the receiver
// those it has not released; head is the hand-over. So neither can see a word
// of the other's half-done work. When the sender dies between 2 and 3 the
// record was never there; when the receiver dies nobody reads, and the sender
// learns of its death as anybody does. Several threads of a process share a
// sender under a mutex and a receiver under the engine's poll lock.
//
// It may import fabric, job and sys.
package shm
