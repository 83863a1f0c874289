// Package shm is the transport to peers on the same host: short messages go
// through rings in the job's shared memory, one-sided copies through the kernel
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
// message of 8 bytes is one cache line and a receiver that polls reads only the
// line that will arrive. The commit word is 0 (empty), or else recordData or
// recordSkip (continue at the start of the ring) with the number of lines that
// the record takes. The sender
//
//  1. makes sure that there is room: written + lines + 1 <= head + capacity, with
//     a copy of head that it refreshes when the ring seems full;
//  2. sets the commit word behind the record to 0, since the receiver reads that one
//     next, and writes everything but the commit word;
//  3. stores the commit word, at once after the data: a receiver that polls takes the
//     line away in between otherwise, and it moves between the caches three times.
//
// The receiver
//
//  1. loads the commit word at its position; 0: there is no message;
//  2. delivers header and payload;
//  3. stores head.
//
// The receiver writes nothing but head, so that lines that it has read need not
// travel back. Only the sender writes records, and only in lines that head has
// released, up to one line beyond what it has written. At the receiver's position
// there is always 0 or a record: memory is zero at first, and before the sender
// publishes a record it has set the word behind it (and, for recordSkip, the
// first word of the ring). So neither side can see unfinished work of the other.
// When the sender dies between 2 and 3 the record was never there. When the
// receiver dies the sender learns of it as all ranks do, from the engine. Several
// threads of a process share a sender under a mutex and a receiver under the
// engine's poll lock.
//
// It may import fabric, job, log, settings, sys and sys/atom.
package shm
