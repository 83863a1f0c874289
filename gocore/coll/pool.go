package coll

import (
	"math/bits"
	"sync"

	"gormapy/gocore/sys"
)

// spare keeps the temporary memory of completed operations, by size class: new
// memory costs a page fault every 4 KiB, which is most of a large reduction.
var pool memoryPool

type memoryPool struct {
	mu   sync.Mutex
	free [48][][]byte // by the binary logarithm of the size
}

// Temporary memory of keepFrom to keepTo bytes is kept, at most keepCount of a size
// class.
const (
	keepFrom  = 4 << 10
	keepTo    = 64 << 20
	keepCount = 8
)

func (s *memoryPool) take(n int) []byte {
	if n < keepFrom || n > keepTo {
		return sys.NewBytes(n)
	}
	class := bits.Len(uint(n - 1))
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.free[class]; len(l) > 0 {
		b := l[len(l)-1]
		s.free[class] = l[:len(l)-1]
		return b[:n]
	}
	return make([]byte, 1<<class)[:n]
}

// give returns to the pool the memory of an operation, which no peer reads any more.
func (s *memoryPool) give(all [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range all {
		if n := cap(b); n >= keepFrom && n <= keepTo {
			if class := bits.Len(uint(n - 1)); len(s.free[class]) < keepCount {
				s.free[class] = append(s.free[class], b)
			}
		}
	}
}
