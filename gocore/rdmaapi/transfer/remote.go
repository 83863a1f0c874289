package transfer

import (
	"sync"
	"unsafe"

	"gormapy/gocore/rdmaapi/backend"
)

// remote is another engine that was registered for transfers.
type remote struct {
	engine *Engine
	card   Card

	mu      sync.Mutex
	link    *link
	removed *failure
}

// failure is the reason why a transfer or link ended.
type failure struct {
	code Code
	text string
}

// submit submits a transfer to the link; it makes a new link if there is none or the
// last one is broken.
func (r *remote) submit(t *transfer) {
	r.mu.Lock()
	for r.removed == nil {
		if r.link == nil {
			r.link = newLink(r)
		}
		l := r.link
		r.mu.Unlock()
		if l.submit(t) {
			return
		}
		r.mu.Lock()
		if r.link == l {
			r.link = nil
		}
	}
	f := *r.removed
	r.mu.Unlock()
	t.settle(f)
}

// remove fails all transfers, present and future.
func (r *remote) remove(code Code, text string) {
	r.mu.Lock()
	r.removed = &failure{code, text}
	l := r.link
	r.mu.Unlock()
	if l != nil {
		l.fail(code, text)
	}
}

func (r *remote) usable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.removed == nil
}

// Memory is the descriptor of registered memory of another engine.
type Memory struct {
	Addr, RKey uint64
	N          int64
	Access     backend.Access
}

// Session pairs local memory with memory of another engine. It is safe for
// concurrent use.
type Session struct {
	local  *Region
	remote *remote
	memory Memory
}

// Session makes a session. id is the other engine's, because a later engine may have
// the same name.
func (e *Engine) Session(region uint64, name string, id [idBytes]byte, m Memory) (*Session, error) {
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	local := e.Region(region)
	if local == nil {
		return nil, errno("ENOENT", "the local memory %d is not registered: it is deregistered, or another engine's", region)
	}
	r := e.remote(name)
	if r == nil {
		return nil, errno("ENOENT", "engine %q, whose memory this is, is not registered: call register_remote() with its descriptor", name)
	}
	if r.card.ID != id {
		return nil, errno("ENOENT", "the memory is of another engine %q than the one that is registered, an earlier one maybe", name)
	}
	if m.N <= 0 || m.Addr+uint64(m.N) < m.Addr {
		return nil, errno("EINVAL", "the descriptor of remote memory has %d bytes at %#x", m.N, m.Addr)
	}
	return &Session{local, r, m}, nil
}

// Alive reports whether both sides are still registered, so that transfers can be
// tried.
func (s *Session) Alive() bool { return s.local.open() && s.remote.usable() }

// Entry is a part of a transfer, as Python writes it.
type Entry struct {
	Local, Remote int64 // offsets
	N             int64
}

// transfer is a transfer that was submitted.
type transfer struct {
	Status
	session *Session
	local   *Region
	op      backend.Op
	entries []Entry
	one     [1]Entry
	uid     int64 // -1: none
	size    int64 // of a piece, at most
	pieces  int64

	// Used by the link, under its mu.
	entry     int      // the next piece's
	offset    int64    // the next piece's, in the entry
	left      int      // pieces that are posted and have not completed
	used      uint64   // bit set of the lanes that carried a piece
	withheld  *failure // not nil: no further piece is posted, for this reason
	notifying bool     // all pieces have completed; left counts notices
	serial    uint64   // of the notices
	tries     int
	alone     bool // no other transfer may be in flight with it
}

// Transfer begins a transfer: a read (op OpRead) or a write (OpWrite) of all entries.
// A uid of -1 is none. Errors are in the Status.
func (s *Session) Transfer(op backend.Op, entries []Entry, uid int64) *Status {
	t := &transfer{session: s, local: s.local, op: op, uid: uid, size: s.local.engine.piece}
	t.code = Init
	t.entries = append(t.one[:0], entries...)
	if f := t.check(); f != nil {
		return Failure(f.code, "%s", f.text)
	}
	if !s.local.take() {
		return Failure(NotFound, "the local memory is not registered any more")
	}
	s.remote.submit(t)
	return &t.Status
}

func failed(code Code, format string, args ...any) *failure {
	_, text := Failure(code, format, args...).Get()
	return &failure{code, text}
}

// check refuses invalid arguments, and merges adjacent entries.
func (t *transfer) check() *failure {
	s := t.session
	need, word := backend.RemoteWrite, "written"
	if t.op == backend.OpRead {
		need, word = backend.RemoteRead, "read"
		if s.local.region.Access()&backend.LocalWrite == 0 {
			return failed(InvalidArgs, "the local memory is read-only: nothing can be read into it")
		}
	}
	if s.memory.Access&need == 0 {
		return failed(InvalidArgs, "the remote memory can't be %s: it was registered without that", word)
	}
	if len(t.entries) == 0 {
		return failed(InvalidArgs, "a batch without entries")
	}
	total := int64(0)
	kept := t.entries[:1]
	for i, e := range t.entries {
		if e.N < 0 || e.Local < 0 || e.Local > s.local.n || e.N > s.local.n-e.Local {
			return failed(InvalidArgs, "%d bytes at offset %d are outside of the local memory of %d bytes%s", e.N, e.Local, s.local.n, t.nth(i))
		}
		if e.Remote < 0 || e.Remote > s.memory.N || e.N > s.memory.N-e.Remote {
			return failed(InvalidArgs, "%d bytes at offset %d are outside of the remote memory of %d bytes%s", e.N, e.Remote, s.memory.N, t.nth(i))
		}
		total += e.N
		if i == 0 {
			continue
		}
		if last := &kept[len(kept)-1]; last.Local+last.N == e.Local && last.Remote+last.N == e.Remote {
			last.N += e.N
		} else {
			kept = append(kept, e)
		}
	}
	t.entries = kept
	c := &s.local.engine.config
	if c.Chunk > 0 {
		t.size = min(t.size, max(c.Chunk, (total+c.MaxChunks-1)/c.MaxChunks))
	}
	for _, e := range t.entries {
		t.pieces += max(1, (e.N+t.size-1)/t.size)
	}
	return nil
}

func (t *transfer) nth(i int) string {
	if len(t.entries) == 1 {
		return ""
	}
	return failed(0, " (entry %d)", i).text
}

// spent reports whether no further piece is to be posted.
func (t *transfer) spent() bool { return t.withheld != nil || t.entry == len(t.entries) }

// next makes the work request of the next piece.
func (t *transfer) next(w *backend.SendWR) {
	e := &t.entries[t.entry]
	n := min(e.N-t.offset, t.size)
	*w = backend.SendWR{
		Op: t.op, Region: t.local.region, Local: unsafe.Add(t.local.base, e.Local+t.offset), N: int(n),
		Raddr: t.session.memory.Addr + uint64(e.Remote+t.offset), RKey: t.session.memory.RKey,
	}
	if t.offset += n; t.offset == e.N {
		t.entry++
		t.offset = 0
	}
}

// rewind makes a transfer start again, with no piece posted.
func (t *transfer) rewind() {
	t.entry, t.offset, t.left, t.used, t.notifying = 0, 0, 0, 0, false
	t.tries++
}

// settle ends a transfer: it releases the memory, then sets the Status.
func (t *transfer) settle(f failure) {
	t.local.give()
	t.Status.settle(f.code, f.text)
}
