package soft

import (
	"sync"
	"time"

	"gormapy/gocore/rdmaapi/backend"
)

// cq is a completion queue. It has no limit: package rdmaapi reserves room for
// completions, and errors of unsignalled requests must not be lost.
type cq struct {
	mu      sync.Mutex
	items   []backend.Completion
	head    int
	news    chan struct{} // while waiting: closed at the next completion or Wake
	waiting bool
}

func (q *cq) push(c backend.Completion) {
	q.mu.Lock()
	q.items = append(q.items, c)
	q.ring()
	q.mu.Unlock()
}

// ring wakes all threads in Wait. The caller holds mu.
func (q *cq) ring() {
	if q.waiting {
		close(q.news)
		q.news, q.waiting = nil, false
	}
}

// Poll implements backend.CQ.
func (q *cq) Poll(out []backend.Completion) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := copy(out, q.items[q.head:])
	q.head += n
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 1024 && q.head > len(q.items)/2 {
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	return n, nil
}

// Wait implements backend.CQ.
func (q *cq) Wait(d time.Duration) error {
	q.mu.Lock()
	if q.head < len(q.items) {
		q.mu.Unlock()
		return nil
	}
	if !q.waiting {
		q.news, q.waiting = make(chan struct{}), true
	}
	news := q.news
	q.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-news:
	case <-timer.C:
	}
	return nil
}

// Wake implements backend.CQ.
func (q *cq) Wake() {
	q.mu.Lock()
	q.ring()
	q.mu.Unlock()
}

// Close implements backend.CQ.
func (q *cq) Close() error {
	q.Wake()
	return nil
}
