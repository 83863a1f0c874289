//go:build interleave && model

package cachemodel

import (
	"math/bits"
	"unsafe"

	"gormapy/gocore/job"
)

const lineBytes = 64

// line is the state of a cache line: which ranks have it in their caches, and whether one of them may write it.
type line struct {
	owner   int // the rank that may write it without a transfer, -1: none
	holders [job.MaxRanks / 64]uint64
	written Cost // when the last write has ended
	free    Cost // when the last transfer has ended
}

func (l *line) holds(r int) bool { return l.holders[r/64]>>(r%64)&1 != 0 }

// lines are the cache lines of the shared memory, by number.
type lines map[uintptr]*line

func (m lines) of(p uintptr) *line {
	l := m[p/lineBytes]
	if l == nil {
		l = &line{owner: -1}
		m[p/lineBytes] = l
	}
	return l
}

// access has rank r load from the line, or write to it. It reports whether that is a hit. more means that it goes along with an
// access to the line before it, so that only its bytes take time.
func (w *World) access(r *rank, l *line, write, more bool) (hit bool) {
	if l.owner == r.number || !write && l.holds(r.number) {
		return true
	}
	busy := l.free
	if w.machine.Parallel && !write {
		busy = l.written
	}
	begin := later(r.clock, busy)
	end := begin
	if more {
		end.Bytes += lineBytes
		end.Time += lineBytes * w.machine.Byte
	} else {
		r.traffic.Transfers++
		end.Transfers++
		end.Time += w.machine.Transfer
	}
	if write {
		w.invalidate(r, l, begin)
		l.owner, l.written = r.number, end
	} else {
		l.owner = -1
	}
	l.holders[r.number/64] |= 1 << (r.number % 64)
	r.clock, l.free = end, later(l.free, end)
	return false
}

// invalidate takes the line from all other ranks. Those that were stopped until it changes continue.
func (w *World) invalidate(r *rank, l *line, at Cost) {
	for i := range l.holders {
		for set := l.holders[i]; set != 0; set &= set - 1 {
			n := i*64 + bits.TrailingZeros64(set)
			if n == r.number {
				continue
			}
			r.traffic.Invalidations++
			if o := w.ranks[n]; o.stopped && o.looked[l] {
				o.stopped = false
				o.clock = later(o.clock, at)
				w.ready(o)
			}
		}
	}
	l.holders = [job.MaxRanks / 64]uint64{}
}

// span calls f for the lines of n bytes at p.
func (w *World) span(p unsafe.Pointer, n int, f func(l *line)) {
	for at := uintptr(p) &^ (lineBytes - 1); at < uintptr(p)+uintptr(n); at += lineBytes {
		f(w.lines.of(at))
	}
}
