package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/arena"
	"gormapy/gocore/sys/atom"
)

// Ranks of a node tell each other where their memory lies in their arenas, so that they can load and store there.
// The share of memory is its offset in its owner's arena, plus 1; 0 means that it is not in the arena. Whoever passes a
// share to another rank has published the arena's descriptor before, in its record.

// arenas are the arenas of other ranks, by world rank. One is opened when memory in it is first mapped.
type arenas struct {
	mu    sync.RWMutex
	peers map[int]*arena.Peer // nil: can't be opened
}

// transient reports whether what failed for want of descriptors or memory may succeed later.
func transient(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EINTR)
}

// Share returns the share of n bytes of this process's memory, for others to map.
func (e *Engine) Share(addr unsafe.Pointer, n int) uint64 {
	off, ok := arena.Find(addr, n)
	if !ok {
		return 0
	}
	if fd := uint32(arena.FD() + 1); atom.Load32(&e.me.Arena) != fd {
		atom.Store32(&e.me.Arena, fd)
	}
	return off + 1
}

// Map returns the address at which this process maps n bytes at a share of world rank r, or nil if they can't be
// mapped. The address is valid as long as the process lives, but what is there is undefined once r has freed the memory.
func (e *Engine) Map(r int, share, n uint64) unsafe.Pointer {
	if share == 0 || r == e.Rank || e.Remote(r) {
		return nil
	}
	p := e.arenaOf(r)
	if p == nil {
		return nil
	}
	at, err := p.At(share-1, n)
	if err != nil {
		return nil
	}
	return at
}

// OpenArena opens the arena of another process. Tests whose ranks are all in one process replace it.
var OpenArena = arena.OpenPeer

func (e *Engine) arenaOf(r int) *arena.Peer {
	a := &e.arenas
	a.mu.RLock()
	p, known := a.peers[r]
	a.mu.RUnlock()
	if known {
		return p
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if p, known = a.peers[r]; known {
		return p
	}
	peer := e.Job.Rank(r)
	fd := int(atom.Load32(&peer.Arena)) - 1
	if fd < 0 {
		return nil
	}
	p, err := OpenArena(peer.PID(), fd)
	if err != nil && transient(err) {
		return nil
	}
	if p != nil && atomic.LoadUint32(&peer.Ended) != 0 {
		p.Release() // the pid may be another process's by now
		p = nil
	}
	if a.peers == nil {
		a.peers = map[int]*arena.Peer{}
	}
	a.peers[r] = p
	return p
}

// forget closes the arena of a process of another job that nothing names any more.
func (a *arenas) forget(number int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.peers[number]; p != nil {
		p.Release()
	}
	delete(a.peers, number)
}

// RetainArena adds a holder to the arena of a process of another job, and returns it; nil if it has not been opened.
func (e *Engine) RetainArena(number int) *arena.Peer {
	e.arenas.mu.RLock()
	defer e.arenas.mu.RUnlock()
	p := e.arenas.peers[number]
	if p != nil {
		p.Retain()
	}
	return p
}
