// Package cachemodel runs the collectives of package coll on up to hundreds of ranks in one process and counts what
// they cost: transfers of cache lines, bytes, system calls. From these and from what one transfer and one byte
// cost on a machine it predicts times. It exists only in builds with the tags "interleave" and "model".
//
// # How
//
// Each rank is a coroutine that runs the real code. Package atom tells the model of each access to a shared word, and
// of the data that collectives move. Each rank has a cache of its own that never evicts (MESI, by lines of 64 bytes):
//
//   - to load from a line that another rank wrote since the last load is a transfer;
//   - to store to a line, or to update it, is a transfer if this rank did not write it last, and invalidates the copies
//     of all others. One transfer takes as long for many copies as for one;
//   - other accesses are hits and take no time. So a rank that polls costs nothing until the line that it looks at is
//     written: it is stopped until then.
//
// # Time
//
// Each rank has a clock, and the rank whose clock is earliest continues. A transfer begins when the rank and the line are
// free, and both are busy until it ends: a rank transfers one line at a time, and a line serves the ranks one after the
// other. These are the two assumptions. In truth a processor overlaps some loads, and copies of a line that several caches
// have can be served by several of them. So what the model predicts is an upper bound for many readers of one line;
// with Machine.Parallel it takes all copies of a line to be served at once, which is the lower bound.
//
// With a clock goes what made it late: the number of transfers, bytes and system calls on the longest chain of
// dependent events, the critical path. Of several calls one after the other the path is that of all of them, divided by
// their number, as in the loops of gormapy.bench: a rank may begin the next call while others are in this one.
//
// Only tests import it; it may import any layer.
package cachemodel
