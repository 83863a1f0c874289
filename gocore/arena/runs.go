package arena

import "math/bits"

// run is a piece of a chunk of a pool: whole pages, allocated or free.
type run struct {
	addr         uintptr
	bytes        uint64
	chunk        *chunk
	index        int  // in its bin
	older, newer *run // those that were put before and after it
}

func (r *run) end() uintptr { return r.addr + uintptr(r.bytes) }

// at returns the run's offset in the arena.
func (r *run) at() uint64 { return r.chunk.at + uint64(r.addr-r.chunk.addr) }

func (r *run) span() *span { return &span{addr: r.addr, bytes: r.bytes, at: r.at()} }

// cut shortens the run to bytes and returns the rest, nil if there is none.
func (r *run) cut(bytes uint64) *run {
	if r.bytes == bytes {
		return nil
	}
	rest := &run{addr: r.addr + uintptr(bytes), bytes: r.bytes - bytes, chunk: r.chunk}
	r.bytes = bytes
	return rest
}

const (
	// binCount is enough for runs of 2^46 bytes in pages of 4096: four bins for each power of two.
	binCount = 136
	// tried is how many runs of a bin take looks at. Runs in higher bins are certainly large enough.
	tried = 16
)

// binOf returns the bin of a free run: four for each power of two, by the size in pages rounded down.
func binOf(bytes uint64) int {
	pages := bytes / pageBytes
	k := bits.Len64(pages) - 1
	if k < 2 {
		return int(pages)
	}
	return 4*(k-1) + int(pages>>(k-2)&3)
}

// runs are the free runs of one kind. No two of a chunk are adjacent.
type runs struct {
	bins       [binCount][]*run
	filled     [(binCount + 63) / 64]uint64 // a bit for each bin that is not empty
	begin, end map[uintptr]*run             // by their first address, and by the one after their last
	bytes      uint64

	oldest, newest *run // by when they were put
}

func newRuns() runs { return runs{begin: map[uintptr]*run{}, end: map[uintptr]*run{}} }

// put adds a run, which it merges with its neighbours, and returns the result.
func (f *runs) put(r *run) *run {
	if o := f.end[r.addr]; o != nil && o.chunk == r.chunk {
		f.remove(o)
		r.addr, r.bytes = o.addr, o.bytes+r.bytes
	}
	if o := f.begin[r.end()]; o != nil && o.chunk == r.chunk {
		f.remove(o)
		r.bytes += o.bytes
	}
	b := binOf(r.bytes)
	r.index = len(f.bins[b])
	f.bins[b] = append(f.bins[b], r)
	f.filled[b/64] |= 1 << (b % 64)
	f.begin[r.addr], f.end[r.end()] = r, r
	f.bytes += r.bytes
	if r.older, r.newer = f.newest, nil; r.older != nil {
		r.older.newer = r
	} else {
		f.oldest = r
	}
	f.newest = r
	return r
}

func (f *runs) remove(r *run) {
	b := binOf(r.bytes)
	bin := f.bins[b]
	last := len(bin) - 1
	bin[r.index] = bin[last]
	bin[r.index].index = r.index
	bin[last] = nil
	if f.bins[b] = bin[:last]; last == 0 {
		f.filled[b/64] &^= 1 << (b % 64)
	}
	delete(f.begin, r.addr)
	delete(f.end, r.end())
	f.bytes -= r.bytes
	if r.older != nil {
		r.older.newer = r.newer
	} else {
		f.oldest = r.newer
	}
	if r.newer != nil {
		r.newer.older = r.older
	} else {
		f.newest = r.older
	}
	r.older, r.newer = nil, nil
}

// take removes a run of at least bytes, and returns it, cut to bytes; nil if there is none. The rest stays.
func (f *runs) take(bytes uint64) *run {
	r := f.find(bytes)
	if r == nil {
		return nil
	}
	f.remove(r)
	if rest := r.cut(bytes); rest != nil {
		f.put(rest)
	}
	return r
}

func (f *runs) find(bytes uint64) *run {
	b := binOf(bytes)
	bin := f.bins[b]
	for i := len(bin) - 1; i >= max(0, len(bin)-tried); i-- {
		if bin[i].bytes >= bytes {
			return bin[i]
		}
	}
	for b++; b < binCount; b = (b/64 + 1) * 64 {
		if word := f.filled[b/64] >> (b % 64); word != 0 {
			bin = f.bins[b+bits.TrailingZeros64(word)]
			return bin[len(bin)-1]
		}
	}
	return nil
}
