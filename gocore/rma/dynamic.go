package rma

import (
	"slices"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/sys/atom"
)

// attachTable publishes the memory that a rank of a dynamic window has attached. The
// others on its node check displacements by it before anything moves. What ranks of other
// nodes ask for is checked at the target, and an error is reported as those of messages.
//
// # Protocol
//
// Only the owner writes, one Attach or Detach at a time (Win.attachMu). It makes version
// odd, changes entries and count, and makes version even again. A reader's copy of the
// entries is valid if version was the same even number before and after, and for as
// long as version keeps that value. If the owner dies in between, version stays odd: a
// reader that finds the owner gone returns an error.
//
// Entries are sorted by address and do not overlap.
type attachTable struct {
	*attachWords
	entries []attachment // the whole table
}

type attachWords struct {
	version uint32
	count   uint32
	_       [56]byte
}

// attachment is memory of the owner: its address and size there, and its share of the
// owner's arena, see engine.Share.
type attachment struct {
	addr, bytes, share uint64
}

// tableBytes is the size of a table, of some 65,000 pieces of memory. Pages are
// allocated when they are used.
const tableBytes = 1536 << 10

func newAttachTable(mem []byte) *attachTable {
	words := (*attachWords)(unsafe.Pointer(&mem[0]))
	room := (len(mem) - int(unsafe.Sizeof(*words))) / int(unsafe.Sizeof(attachment{}))
	return &attachTable{words, unsafe.Slice((*attachment)(unsafe.Pointer(&mem[unsafe.Sizeof(*words)])), room)}
}

// change replaces the entries by what f makes of a copy of them.
func (t *attachTable) change(f func(list []attachment) []attachment) {
	version := atom.Load32(&t.version)
	list := f(slices.Clone(t.entries[:t.count]))
	// With a store the entries could be seen before it. This exchange comes before or
	// after a reader's exchange of the same word, and so do the entries.
	atom.Swap32(&t.version, version+1)
	copy(t.entries, list)
	atom.Store32(&t.count, uint32(len(list)))
	atom.Store32(&t.version, version+2)
}

// attachments is a valid copy of a table.
type attachments struct {
	version uint32
	list    []attachment
}

// read returns a copy of the table, or nil if the owner is changing it.
func (t *attachTable) read() *attachments {
	version := atom.Load32(&t.version)
	if version&1 != 0 {
		return nil
	}
	n := min(int(atom.Load32(&t.count)), len(t.entries))
	a := &attachments{version, slices.Clone(t.entries[:n])}
	// A load could be made before those of the entries.
	if !atom.CAS32(&t.version, version, version) {
		return nil
	}
	return a
}

// find returns the attachment that n bytes at addr lie in, nil if they are not all
// attached. Neighbours without a gap count as one.
func (a *attachments) find(addr, n uint64) *attachment {
	if a == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(a.list, addr, func(x attachment, addr uint64) int {
		switch {
		case x.addr < addr:
			return -1
		case x.addr > addr:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	first := i
	for end := addr + n; ; i++ {
		x := &a.list[i]
		if end <= x.addr+x.bytes {
			break
		}
		if i+1 == len(a.list) || addr > x.addr+x.bytes || a.list[i+1].addr != x.addr+x.bytes {
			return nil
		}
	}
	if first == i {
		return &a.list[i]
	}
	return &attachment{addr: addr, bytes: n}
}

// attached returns what rank has attached, or nil if the rank has ended in the middle of
// a change.
func (w *Win) attached(rank int) *attachments {
	t := w.tables[rank]
	seen := w.seen[rank].Load()
	if seen != nil && atom.Load32(&t.version) == seen.version {
		return seen
	}
	for {
		if now := t.read(); now != nil {
			w.seen[rank].Store(now)
			return now
		}
		if rank != w.Rank && w.rma.eng.Gone(w.World[rank]) {
			return nil
		}
		atom.Yield()
	}
}

// locateAttached resolves an address in memory that the target has attached.
func (w *Win) locateAttached(p *location, addr, lo, hi int) *errs.Error {
	if w.tables[p.rank] == nil {
		p.off = addr
		return nil
	}
	list := w.attached(p.rank)
	if list == nil {
		return errs.New(errs.ProcFailed, "the memory that rank %d attached can't be known: %s", p.rank, w.rma.eng.HowGone(w.World[p.rank]))
	}
	start := addr + lo
	in := (*attachment)(nil)
	if start >= 0 {
		in = list.find(uint64(start), uint64(hi-lo))
	}
	if in == nil {
		return errs.New(errs.RMARange, "%d bytes at address %#x of rank %d were asked for, which are not all attached to %s (%d pieces are): Attach there, and give MPI.Get_address of it as the displacement",
			hi-lo, start, p.rank, w.name(), len(list.list))
	}
	p.off = addr
	switch {
	case p.rank == w.Rank:
		p.direct, p.addr = true, fabric.Pointer(uint64(addr))
	case in.share != 0:
		if at := w.rma.eng.Map(w.World[p.rank], in.share+uint64(start)-in.addr, uint64(hi-lo)); at != nil {
			p.direct, p.addr = true, unsafe.Add(at, -lo)
		}
	}
	return nil
}

// Attach makes memory of this process part of a dynamic window.
func (w *Win) Attach(addr unsafe.Pointer, n int) *errs.Error {
	if w.Flavor != FlavorDynamic {
		return errs.New(errs.RMAFlavor, "Attach: the window was made by %v; memory is attached to windows of Win.Create_dynamic", w.Flavor)
	}
	w.attachMu.Lock()
	defer w.attachMu.Unlock()
	t := w.tables[w.Rank]
	at := uint64(uintptr(addr))
	if int(t.count) == len(t.entries) {
		return errs.New(errs.RMAAttach, "Attach: this process has attached %d pieces of memory to the window, which is as many as there can be", t.count)
	}
	for _, is := range t.entries[:t.count] {
		if at == is.addr || at < is.addr+is.bytes && is.addr < at+uint64(n) {
			return errs.New(errs.RMAAttach, "Attach: %d bytes at %#x overlap %d bytes at %#x, which are attached already", n, at, is.bytes, is.addr)
		}
	}
	x := attachment{addr: at, bytes: uint64(n), share: w.rma.eng.Share(addr, n)}
	t.change(func(list []attachment) []attachment {
		i := 0
		for i < len(list) && list[i].addr < at {
			i++
		}
		return slices.Insert(list, i, x)
	})
	return nil
}

// Detach ends what Attach began with memory at addr.
func (w *Win) Detach(addr uintptr) *errs.Error {
	if w.Flavor != FlavorDynamic {
		return errs.New(errs.RMAFlavor, "Detach: the window was made by %v; memory is attached to windows of Win.Create_dynamic", w.Flavor)
	}
	w.attachMu.Lock()
	defer w.attachMu.Unlock()
	t := w.tables[w.Rank]
	i := slices.IndexFunc(t.entries[:t.count], func(x attachment) bool { return x.addr == uint64(addr) })
	if i < 0 {
		return errs.New(errs.RMAAttach, "Detach: no memory at %#x is attached to the window; %d attached regions begin at other addresses", addr, t.count)
	}
	t.change(func(list []attachment) []attachment { return slices.Delete(list, i, i+1) })
	return nil
}
