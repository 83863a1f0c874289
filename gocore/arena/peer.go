package arena

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// smallestView is the smallest size of a mapping of a peer's arena. Collectives of ordinary memory map the arenas of
// all ranks, and need no more of them; address space may be limited.
const smallestView = 8 << 20

// Peer is this process's view of the arena of another process on this host. It
// keeps one descriptor. The engine and every Python object that shows memory of it hold it, and the last one unmaps it. It is
// safe for concurrent use.
type Peer struct {
	fd    int
	view  atomic.Pointer[view]
	mu    sync.Mutex // held while a larger view is made
	views []view     // all that have been made
	refs  atomic.Int32
}

// view is a mapping of a peer's arena from its start. The last Release unmaps it.
type view struct {
	base   unsafe.Pointer
	mapped uint64
	usable uint64 // how much of it the file is known to have
}

// OpenPeer opens the arena that process pid has as descriptor fd. It works for
// processes of the same user in the same PID namespace, also for the own process.
func OpenPeer(pid, fd int) (*Peer, error) {
	got, _, err := sys.OpenSealed(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
	if err != nil {
		return nil, err
	}
	p := &Peer{fd: got}
	p.refs.Store(1)
	return p, nil
}

// Retain adds a holder. Its caller holds the Peer already, or excludes that the last holder releases it.
func (p *Peer) Retain() { p.refs.Add(1) }

// At returns the address in this process of the n bytes at offset off of the peer's
// arena. The pointer is valid until the last holder calls Release.
func (p *Peer) At(off, n uint64) (unsafe.Pointer, error) {
	if v := p.view.Load(); v != nil && off <= v.usable && n <= v.usable-off {
		return unsafe.Add(v.base, off), nil
	}
	return p.larger(off, n)
}

// larger makes a view that has the n bytes at off, and returns their address.
func (p *Peer) larger(off, n uint64) (unsafe.Pointer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var st unix.Stat_t
	if err := unix.Fstat(p.fd, &st); err != nil {
		return nil, fmt.Errorf("stat a peer's arena: %w", err)
	}
	size := uint64(st.Size)
	if off > size || n > size-off { // an access beyond the end of the file is a SIGBUS
		return nil, fmt.Errorf("map %d bytes at offset %d of a peer's arena: it has %d bytes", n, off, size)
	}
	v := view{}
	if old := p.view.Load(); old != nil {
		v = *old
	}
	if need := off + n; v.base == nil || need > v.mapped {
		var err error
		if v, err = p.mapped(max(need, 1)); err != nil {
			return nil, fmt.Errorf("map %d bytes of a peer's arena: %w", need, err)
		}
		p.views = append(p.views, v)
	}
	v.usable = min(size, v.mapped)
	p.view.Store(&v)
	return unsafe.Add(v.base, off), nil
}

// Release removes a holder. The last one unmaps the peer's arena: then nothing may use its addresses any more.
func (p *Peer) Release() {
	if p.refs.Add(-1) != 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.views {
		_ = unix.MunmapPtr(v.base, uintptr(v.mapped))
	}
	p.views = nil
	p.view.Store(nil)
	unix.Close(p.fd)
}

// mapped maps the peer's arena up to need, and beyond if it can, since the arena may
// grow.
func (p *Peer) mapped(need uint64) (view, error) {
	v := view{mapped: max(uint64(1)<<bits.Len64(need-1), smallestView)}
	base, err := unix.MmapPtr(p.fd, 0, nil, uintptr(v.mapped), readWrite, unix.MAP_SHARED)
	if err != nil { // address space may be limited
		v.mapped = pageUp(need)
		if base, err = unix.MmapPtr(p.fd, 0, nil, uintptr(v.mapped), readWrite, unix.MAP_SHARED); err != nil {
			return v, err
		}
	}
	v.base = base
	// A forked child is no rank and must not write to it by accident.
	return v, unix.Madvise(unsafe.Slice((*byte)(base), v.mapped), unix.MADV_DONTFORK)
}
