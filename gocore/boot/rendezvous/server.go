package rendezvous

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"gormapy/gocore/boot/store"
)

// member is a rank at rank 0's side.
type member struct {
	rank   int
	card   card
	from   string // its address
	link   *link  // nil: it has not joined
	values map[string][]byte
	stored int

	fencing   bool // waits for fenced
	asking    bool // waits for the table of nodes
	finalized bool
	lost      bool
}

// server is the store in rank 0. One mutex guards everything; nothing waits under it.
type server struct {
	size    int
	timeout time.Duration
	door    *door

	mu      sync.Mutex
	members []*member
	joined  int
	inside  int // ranks in the fence
	asking  int // ranks that wait for the table
	timer   *time.Timer
	period  int    // counts what the timer is set for
	failed  string // why all fences fail; empty if they don't
	aborted bool
}

func newServer(size int, timeout time.Duration) *server {
	s := &server{size: size, timeout: timeout, members: make([]*member, size)}
	for r := range s.members {
		s.members[r] = &member{rank: r, values: map[string][]byte{}}
	}
	return s
}

// join makes a connection that of a rank, and returns a sentence if it can't be.
func (s *server) join(conn net.Conn, c card) (l *link, refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.size != s.size:
		return nil, fmt.Sprintf("rank 0 is of a job of %d ranks, and rank %d says that there are %d", s.size, c.rank, c.size)
	case c.rank < 0 || c.rank >= s.size:
		return nil, fmt.Sprintf("there is no rank %d in a job of %d", c.rank, s.size)
	}
	m := s.members[c.rank]
	if m.link != nil && (m.card.instance != c.instance || m.lost || m.finalized) {
		return nil, fmt.Sprintf("rank %d has been taken by another process (%s): each must have a rank of its own, and can join once", c.rank, m.from)
	}
	if m.link == nil {
		s.joined++
	} else {
		m.link.close()
	}
	var before func()
	if c.rank == 0 {
		before = s.flush
	}
	m.card, m.from, m.link = c, conn.RemoteAddr().String(), newLink(conn, before)
	return m.link, ""
}

// leave undoes a join of which the rank has not heard. It may come again.
func (s *server) leave(rank int, l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.close()
	if m := s.members[rank]; m.link == l {
		m.link = nil
		s.joined--
	}
}

// entered ends listening when the last rank knows that it has joined.
func (s *server) entered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joined == s.size && s.door != nil {
		s.door.close()
	}
	s.answerNodes()
}

// serve handles the frames of a rank until its connection ends.
func (s *server) serve(rank int, l *link) {
	m := s.members[rank]
	for {
		f, err := readFrame(l.conn)
		if err == nil {
			err = s.handle(m, l, f)
		}
		if err != nil {
			l.close()
			s.ended(m, l, err)
			return
		}
	}
}

func (s *server) handle(m *member, l *link, f frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.link != l || m.finalized {
		return fmt.Errorf("a frame after the end")
	}
	switch f.op {
	case opPut:
		return s.put(m, f)
	case opFence:
		return s.fence(m)
	case opGet:
		rank, key, err := f.get()
		if err != nil || rank >= s.size {
			return fmt.Errorf("a get for rank %d: %w", rank, err)
		}
		if value, ok := s.members[rank].values[key]; ok {
			m.link.send(frame{opValue, value})
		} else {
			m.link.send(frame{opMissing, nil})
		}
	case opNodes:
		if !m.asking {
			m.asking = true
			s.asking++
			s.arm()
		}
		s.answerNodes()
	case opAbort:
		code, err := f.abort()
		if err != nil {
			return err
		}
		s.abort(m.rank, code)
	case opFinalize:
		m.finalized = true
		m.link.end()
		s.checkWaiting()
		if !slices.ContainsFunc(s.members, func(m *member) bool { return !m.finalized && !m.lost }) && s.door != nil {
			s.door.close()
		}
	default:
		return fmt.Errorf("a frame of the unknown kind %d", f.op)
	}
	return nil
}

func (s *server) put(m *member, f frame) error {
	key, value, err := f.put()
	if err != nil {
		return err
	}
	if m.stored += len(key) + len(value); m.stored > maxStored {
		return fmt.Errorf("it has put more than %d bytes", maxStored)
	}
	m.values[key] = value
	return nil
}

// ended handles the end of a connection.
func (s *server) ended(m *member, l *link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.link != l || m.finalized || m.lost {
		return
	}
	if m.fencing {
		m.fencing = false
		s.inside--
	}
	if m.asking {
		m.asking = false
		s.asking--
	}
	s.disarm()
	m.lost = true
	if s.aborted { // that is why
		return
	}
	why := fmt.Sprintf("rank %d (%s) has ended, or lost its connection, without finalizing (%v)", m.rank, m.from, err)
	if s.failed == "" {
		s.failed = why
	}
	s.tell(store.Event{Kind: store.RankLost, Rank: m.rank, Why: why})
	s.checkWaiting()
}

// abort passes an abort to all, once.
func (s *server) abort(rank, code int) {
	if s.aborted {
		return
	}
	s.aborted = true
	why := fmt.Sprintf("rank %d has aborted the job with code %d", rank, code)
	s.tell(store.Event{Kind: store.Aborted, Rank: rank, Code: code, Why: why})
	s.fail(why)
}

func (s *server) tell(e store.Event) { s.broadcast(eventFrame(e)) }

func (s *server) broadcast(f frame) {
	for _, m := range s.members {
		if m.link != nil && !m.lost && !m.finalized {
			m.link.send(f)
		}
	}
}

// finish tells the others that rank 0 is done.
func (s *server) finish() {
	s.mu.Lock()
	s.broadcast(frame{opOver, nil})
	s.mu.Unlock()
	s.flush()
}

// flush gives the kernel a second at most to take what was said to the others, before rank
// 0 ends its process for the same reason.
func (s *server) flush() {
	end := time.Now().Add(farewell)
	for _, m := range s.members[1:] {
		s.mu.Lock()
		l := m.link
		s.mu.Unlock()
		if l != nil {
			l.flush(end)
		}
	}
}
