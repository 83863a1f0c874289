package rendezvous

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"gormapy/gocore/boot/store"
	"gormapy/gocore/seal"
)

const (
	// grace is how much longer than rank 0 the others wait for it: it is rank 0 that
	// knows who is missing.
	grace = 15 * time.Second
	// farewell is the time that Abort and Finalize take at most.
	farewell = time.Second
)

// job is what a process knows of its job before it joins.
type job struct {
	name             string
	rank, size, node int
	where            place
	secret           []byte
	given            bool // whether the secret is made of one that the user has given
}

// Store is a rank's connection to the store in rank 0, and, in rank 0, that store.
type Store struct {
	job
	timeout time.Duration
	server  *server // of rank 0
	conn    net.Conn
	keys    store.Keys

	answers chan frame
	events  chan store.Event
	ended   chan struct{} // closed with the connection
	aborted chan struct{} // closed with the word that the job is aborted

	writing sync.Mutex
	mu      sync.Mutex
	lost    error  // why ended is closed
	cause   string // what has happened first
	leaving bool   // this rank has finalized
	over    bool   // rank 0 has
}

var (
	_ store.Watcher     = (*Store)(nil)
	_ store.SecretStore = (*Store)(nil)
)

// Secret implements store.SecretStore.
func (s *Store) Secret() []byte {
	if !s.given {
		return nil
	}
	return s.secret
}

// join joins. identity names the job, alike at all ranks.
func (j job) join(identity string) (*Store, error) {
	if j.size < 1 || j.rank < 0 || j.rank >= j.size {
		return nil, fmt.Errorf("this process is rank %d of %d, by %s: ranks are 0 to the size less one", j.rank, j.size, j.name)
	}
	limit, err := timeout()
	if err != nil {
		return nil, err
	}
	if len(j.secret) == 0 {
		j.secret = []byte(Secret.Value())
	}
	if j.size > 1 {
		if err := seal.Usable(); err != nil {
			return nil, fmt.Errorf("the ranks can't encrypt what they tell each other: %w", err)
		}
	}
	j.given = len(j.secret) > 0
	j.secret = derivedSecret(j.secret, identity) // jobs with one secret are told apart, too
	s := &Store{
		job: j, timeout: limit,
		answers: make(chan frame, 1), ended: make(chan struct{}), aborted: make(chan struct{}),
		events: make(chan store.Event, j.size+2), // each rank is lost once, one aborts, one end
	}
	me := card{rank: j.rank, size: j.size, node: j.node}
	rand.Read(me.instance[:]) //nolint:errcheck // it ends the program rather than fail
	if j.rank == 0 {
		err = s.host(me)
	} else {
		c := &caller{where: j.where, secret: j.secret, card: me, end: time.Now().Add(limit)}
		s.conn, err = c.call()
	}
	if err != nil {
		return nil, fmt.Errorf("join the job of %s as rank %d of %d: %w", j.name, j.rank, j.size, err)
	}
	go s.receive()
	return s, nil
}

// host makes this process the one that has the store.
func (s *Store) host(me card) error {
	s.server = newServer(s.size, s.timeout)
	if s.size > 1 {
		if _, err := openDoor(s.server, s.where, s.secret); err != nil {
			return err
		}
	}
	here, there := net.Pipe()
	s.conn = here
	l, _ := s.server.join(there, me)
	go s.server.serve(0, l)
	return nil
}

// receive takes what rank 0 says until the connection ends.
func (s *Store) receive() {
	var err error
	for err == nil {
		var f frame
		if f, err = readFrame(s.conn); err != nil {
			break
		}
		switch f.op {
		case opEvent:
			var e store.Event
			if e, err = f.event(); err == nil {
				s.happened(e)
			}
		case opOver:
			s.mu.Lock()
			s.over = true
			s.mu.Unlock()
		default:
			select {
			case s.answers <- f:
			default:
				err = errors.New("an answer to no question")
			}
		}
	}
	s.conn.Close()
	s.mu.Lock()
	if s.over {
		s.lost = errors.New("rank 0, which has the job's store, has finalized")
	} else {
		s.lost = fmt.Errorf("the connection to rank 0, which has the job's store, has ended (%w): rank 0 has probably ended", err)
	}
	if s.cause != "" {
		s.lost = fmt.Errorf("%s; since then, %w", s.cause, s.lost)
	}
	silent := s.over || s.leaving
	s.mu.Unlock()
	if !silent {
		s.happened(store.Event{Kind: store.Lost, Rank: 0, Why: s.lost.Error()})
	}
	close(s.ended)
	close(s.events)
}

func (s *Store) happened(e store.Event) {
	s.mu.Lock()
	if s.cause == "" {
		s.cause = e.Why
	}
	s.mu.Unlock()
	if e.Kind == store.Aborted {
		select {
		case <-s.aborted:
			return
		default:
			close(s.aborted)
		}
	}
	select {
	case s.events <- e:
	default: // rank 0 says more than there can be
	}
}

// Watch has f called for each event.
func (s *Store) Watch(f func(store.Event)) {
	go func() {
		for e := range s.events {
			f(e)
		}
	}()
}

// Name returns the name of what has started this rank.
func (s *Store) Name() string { return s.name }

// Rank returns this process's rank.
func (s *Store) Rank() int { return s.rank }

// Size returns the number of ranks of the job.
func (s *Store) Size() int { return s.size }

// Program returns 0: nobody tells.
func (s *Store) Program() int { return 0 }

// Nodes waits until all have joined and returns the nodes that they say they are on, nil
// if one does not know.
func (s *Store) Nodes() ([]int, error) {
	f, err := s.ask(frame{opNodes, nil}, opTable)
	if err != nil {
		return nil, fmt.Errorf("wait for all ranks: %w", err)
	}
	nodes, err := f.table(s.size)
	for _, n := range nodes {
		if n == unknownNode {
			return nil, err
		}
	}
	return nodes, err
}

// Put stores value under a key of this rank.
func (s *Store) Put(key string, value []byte) error {
	if len(value) > maxFrame/2 {
		return fmt.Errorf("put %s: a value of %d bytes: the limit is %d", key, len(value), maxFrame/2)
	}
	if err := s.keys.Add(key); err != nil {
		return err
	}
	if err := s.send(putFrame(key, value), time.Now().Add(s.timeout+grace)); err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}

// Fence waits until all ranks have called it.
func (s *Store) Fence() error {
	if _, err := s.ask(frame{opFence, nil}, opFenced); err != nil {
		return fmt.Errorf("wait for all ranks: %w", err)
	}
	return nil
}

// Get returns what a rank has put.
func (s *Store) Get(rank int, key string) ([]byte, error) {
	err := store.CheckKey(key)
	if err == nil {
		err = store.CheckRank(rank, s.size)
	}
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	f, err := s.ask(getFrame(rank, key), opValue)
	if err != nil {
		return nil, fmt.Errorf("get %s of rank %d: %w", key, rank, err)
	}
	return f.body, nil
}

// Abort passes the word on to all ranks; nobody else ends them.
func (s *Store) Abort(code int) {
	end := time.Now().Add(farewell)
	go func() { _ = s.send(abortFrame(code), end) }() // a Put may be writing
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	select {
	case <-s.aborted: // so rank 0 has heard it
	case <-s.ended:
	case <-timer.C:
	}
	if s.server != nil {
		s.server.flush()
	}
}

// Finalize reports that this rank is done, and waits shortly for rank 0 to hear it. Rank 0
// serves the others as long as its process lives.
func (s *Store) Finalize() {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	if s.server != nil {
		s.server.finish()
	}
	if s.send(frame{opFinalize, nil}, time.Now().Add(farewell)) == nil {
		timer := time.NewTimer(farewell)
		defer timer.Stop()
		select {
		case <-s.ended:
		case <-timer.C:
		}
	}
	s.conn.Close()
}

// send sends a frame. Several may at once.
func (s *Store) send(f frame, end time.Time) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.conn.SetWriteDeadline(end)
	if _, err := s.conn.Write(f.marshal()); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("rank 0, which has the job's store, does not read what this rank says (%w): is its process stopped?", err)
		}
		s.conn.Close()
		<-s.ended
		return s.reason()
	}
	return nil
}

// ask sends a frame and waits for its answer.
func (s *Store) ask(f frame, want op) (frame, error) {
	limit := s.timeout + grace
	if err := s.send(f, time.Now().Add(limit)); err != nil {
		return frame{}, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var a frame
	select {
	case a = <-s.answers:
	case <-s.ended:
		select {
		case a = <-s.answers: // it came before the end
		default:
			return frame{}, s.reason()
		}
	case <-timer.C:
		return frame{}, fmt.Errorf("rank 0, which has the job's store, has not answered within %v: is its process stopped?", limit)
	}
	switch a.op {
	case want:
		return a, nil
	case opFailed:
		return frame{}, errors.New(string(a.body))
	case opMissing:
		return frame{}, store.ErrNotFound
	}
	return frame{}, fmt.Errorf("rank 0 answers with a frame of the kind %d: all ranks must use the same gormapy", a.op)
}

func (s *Store) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}
