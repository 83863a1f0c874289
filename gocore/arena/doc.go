// Package arena allocates the memory of a process that its peers on the same
// host can map. MPI.Alloc_mem and gormapy.shared_empty return such memory, and ranks
// access windows over it by loads and stores.
//
// A process has one arena, a memfd that is made on first use and lives as long
// as the process. It only grows (it is sealed against shrinking, so that no
// peer can make accesses of another process end in SIGBUS), and the kernel allocates
// its pages when they are touched. An allocation is a range of the file, first
// fit, with a mapping of its own. Free unmaps it and punches a hole into the file,
// which frees its pages. The next user of the range finds zeros.
//
// Allocations of up to half a page are blocks of a slab, since a process may
// have many more of them than mappings (vm.max_map_count). Free does not unmap them.
//
// A peer's arena is mapped as a whole from its start, and again, larger, when an
// allocation lies beyond the mapping. Mappings of a peer are never unmapped: a
// pointer from Peer.At is valid as long as the process lives, but what it points to
// is undefined after the peer has freed that memory.
//
// A forked child shares the allocations that it inherits with its parent, but those of a pool. It is
// no rank and has no arena: Alloc returns private memory there, and Free only
// unmaps. Peers' arenas are not inherited.
//
// A pool (Pool) has arrays that come and go: NumPy's, with gormapy.shared_arrays. It takes chunks from the arena, and
// keeps freed memory. Its memory is copied for a forked child (snapshot.go).
//
// Where no memfd can be made or grown, Alloc returns private memory, which Find does
// not find.
//
// It may import sys.
package arena
