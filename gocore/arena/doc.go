// Package arena allocates the memory of a process that its peers on the same
// host can map: what MPI.Alloc_mem and gormapy.shared_empty give out, and what
// windows over such memory are accessed by, with loads and stores.
//
// A process has one arena, a memfd that is made on first use and lives as long
// as the process. It only grows (it is sealed against shrinking, so that no
// peer can turn the accesses of another into SIGBUS), and the kernel allocates
// its pages when they are touched. An allocation is a range of the file, first
// fit, with a mapping of its own: after Free it is no longer there, and neither
// are its pages, since a hole is punched where they were. The next user of the
// range finds zeros.
//
// Allocations of up to half a page are blocks of a slab, of which a process may
// have many more than mappings (vm.max_map_count). They are not unmapped when
// they are freed.
//
// A peer's arena is mapped as a whole from its start, and again, larger, when an
// allocation lies beyond what is mapped. Mappings of a peer stay for good: a
// pointer that Peer.At gave is valid as long as the process lives, and what it
// shows after the peer has freed that memory is of no meaning.
//
// A forked child shares the allocations that it inherits with its parent; it is
// no rank and has no arena: Alloc gives it private memory, and Free takes only
// its own mapping away. Peers' arenas are not inherited.
//
// Where there can be no memfd, or no more of it, Alloc gives private memory,
// which Find does not know.
//
// It may import sys.
package arena
