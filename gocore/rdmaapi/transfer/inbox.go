package transfer

import (
	"sync"
	"time"
)

// maxArrivals is how many arrivals are kept for one engine; older ones are dropped.
const maxArrivals = 1 << 16

// recent is how many transfers are remembered, so that a second arrival of one is
// ignored: a transfer starts again if a connection breaks after its notice arrived.
const recent = 1 << 12

// origin names a transfer among those of all engines.
type origin struct {
	engine [idBytes]byte
	serial uint64
}

// inbox has the transfers of one engine that have arrived and were not taken by
// Engine.Arrived.
type inbox struct {
	mu    sync.Mutex
	count map[uint64]int // by uid
	order []uint64       // uids in the order of arrival; some of them may have been taken
	total int
	news  chan struct{} // made by pop that waits; closed at the next arrival

	known map[origin]bool
	ring  [recent]origin
	next  int
}

func (b *inbox) arrived(uid uint64, from origin) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == nil {
		b.count, b.known = map[uint64]int{}, map[origin]bool{}
	}
	if b.known[from] {
		return
	}
	delete(b.known, b.ring[b.next])
	b.known[from], b.ring[b.next] = true, from
	b.next = (b.next + 1) % recent
	b.count[uid]++
	b.total++
	b.order = append(b.order, uid)
	for b.total > maxArrivals {
		b.take(b.order[0])
		b.order = b.order[1:]
	}
	if len(b.order) > 2*maxArrivals { // more than half were taken
		kept := b.order[:0:0]
		left := map[uint64]int{}
		for _, uid := range b.order {
			if left[uid] < b.count[uid] {
				left[uid]++
				kept = append(kept, uid)
			}
		}
		b.order = kept
	}
	if b.news != nil {
		close(b.news)
		b.news = nil
	}
}

func (b *inbox) take(uid uint64) bool {
	switch n := b.count[uid]; n {
	case 0:
		return false
	case 1:
		delete(b.count, uid)
	default:
		b.count[uid] = n - 1
	}
	b.total--
	return true
}

// pop takes the arrival of a uid. It waits at most d and reports whether there was
// one.
func (b *inbox) pop(uid uint64, d time.Duration) bool {
	var timer *time.Timer
	for {
		b.mu.Lock()
		if b.take(uid) {
			b.mu.Unlock()
			return true
		}
		if d <= 0 {
			b.mu.Unlock()
			return false
		}
		if b.news == nil {
			b.news = make(chan struct{})
		}
		news := b.news
		b.mu.Unlock()
		if timer == nil {
			timer = time.NewTimer(d)
			defer timer.Stop()
		}
		select {
		case <-news:
		case <-timer.C:
			d = 0
		}
	}
}
