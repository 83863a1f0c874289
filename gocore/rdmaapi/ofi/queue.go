//go:build cgo

package ofi

import (
	"sync"
	"time"

	"gormapy/gocore/rdmaapi/backend"
)

// queue is a completion queue. The domains of its pairs fill it.
type queue struct {
	mu      sync.Mutex
	items   []backend.Completion
	news    chan struct{} // closed when a completion comes; nil while nothing waits
	domains map[*domain]int
}

func (q *queue) push(c backend.Completion) {
	q.mu.Lock()
	q.items = append(q.items, c)
	q.ring()
	q.mu.Unlock()
}

// ring wakes the waiters. The caller holds mu.
func (q *queue) ring() {
	if q.news != nil {
		close(q.news)
		q.news = nil
	}
}

// use counts the pairs of a domain that complete here.
func (q *queue) use(d *domain, by int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.domains == nil {
		q.domains = map[*domain]int{}
	}
	if q.domains[d] += by; q.domains[d] <= 0 {
		delete(q.domains, d)
	}
}

// Poll is described with backend.CQ. If there is no completion, it drives the provider.
func (q *queue) Poll(out []backend.Completion) (int, error) {
	if n := q.take(out); n > 0 {
		return n, nil
	}
	q.mu.Lock()
	domains := make([]*domain, 0, len(q.domains))
	for d := range q.domains {
		domains = append(domains, d)
	}
	q.mu.Unlock()
	for _, d := range domains {
		if d.mu.TryLock() { // else another goroutine drives it
			d.progress()
			d.mu.Unlock()
		}
	}
	return q.take(out), nil
}

func (q *queue) take(out []backend.Completion) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := copy(out, q.items)
	if q.items = q.items[n:]; len(q.items) == 0 {
		q.items = nil
	}
	return n
}

// Wait is described with backend.CQ.
func (q *queue) Wait(d time.Duration) error {
	q.mu.Lock()
	if len(q.items) > 0 {
		q.mu.Unlock()
		return nil
	}
	if q.news == nil {
		q.news = make(chan struct{})
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

// Wake is described with backend.CQ.
func (q *queue) Wake() {
	q.mu.Lock()
	q.ring()
	q.mu.Unlock()
}

// Close is described with backend.CQ.
func (q *queue) Close() error {
	q.Wake()
	return nil
}
