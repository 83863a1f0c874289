package mpi

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/dtype"
)

// typeTable maps handles to datatypes. A handle is index | generation<<32, as in table; predefined types have generation 0.
//
// # Protocol
//
// Each index has a word outside Go's heap, which the extension reads and writes, too: it commits datatypes, and it frees
// and makes those again that programs make again and again, without entering Go (pybind/shim/hot_datatype.c). A word is
//
//	generation<<2 | wordCommitted | wordLive
//
// and says which handle of its index names a datatype, if any: that of its generation, if the word is live. A word has one of three
// owners, and who changes a live word does so by compare-and-swap, so that of two who free a datatype one succeeds:
//
//   - live: whoever has the handle may commit it, or free it, which makes it not live;
//   - not live, freed by the extension: the datatype stays in the table, and the extension may make the word live with the next
//     generation, not committed, or give it to the core (drop);
//   - not live, freed by the core or given to it: the index is in free, and only add uses it again.
//
// The extension does all this with the GIL held; calls of other threads that look up handles need no GIL.
type typeTable struct {
	mu    sync.RWMutex
	items []typeEntry
	free  []int32
	base  int // first index that add may use
	words []uint64
}

type typeEntry struct {
	obj  *dtype.Type
	word *uint64
}

const (
	wordLive uint64 = 1 << iota
	wordCommitted
)

// generationMask has the bits of a generation, so that no handle is negative.
const generationMask = 0x3fffffff

// wordsAtOnce is for how many indices memory is mapped at a time. It stays, since the extension may look at any word.
const wordsAtOnce = 64 << 10 / 8

// entry returns the entry of index i, which is made if there is none, under mu.
func (t *typeTable) entry(i int) *typeEntry {
	for len(t.items) <= i {
		if len(t.words) == 0 {
			mem, err := unix.Mmap(-1, 0, wordsAtOnce*8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			if err != nil { // as when Go finds no memory for an object
				panic("mpi: map memory of datatypes: " + err.Error())
			}
			t.words = unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), wordsAtOnce)
		}
		t.items = append(t.items, typeEntry{word: &t.words[0]})
		t.words = t.words[1:]
	}
	return &t.items[i]
}

// set puts a predefined type at a fixed handle.
func (t *typeTable) set(i int, obj *dtype.Type) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entry(i)
	e.obj = obj
	atomic.StoreUint64(e.word, wordLive|wordCommitted)
	t.base = max(t.base, i+1)
}

// add returns a handle of a type that is not predefined.
func (t *typeTable) add(obj *dtype.Type, committed bool) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.items)
	if n := len(t.free); n > 0 {
		i = int(t.free[n-1])
		t.free = t.free[:n-1]
	}
	e := t.entry(i)
	e.obj = obj
	generation := (*e.word>>2 + 1) & generationMask
	word := generation<<2 | wordLive
	if committed {
		word |= wordCommitted
	}
	atomic.StoreUint64(e.word, word)
	return int64(i) | int64(generation)<<32
}

// lookup returns the entry of a handle and what its word has, under mu; nil if the handle names no type, or is stale.
func (t *typeTable) lookup(h int64) (*typeEntry, uint64) {
	i := int(h & 0xffffffff)
	if i >= len(t.items) || h < 0 {
		return nil, 0
	}
	e := &t.items[i]
	word := atomic.LoadUint64(e.word)
	if word&wordLive == 0 || int64(word>>2) != h>>32 {
		return nil, 0
	}
	return e, word
}

// get returns the type of a handle, and whether it is committed; nil if the handle names none or is stale.
func (t *typeTable) get(h int64) (obj *dtype.Type, committed bool) {
	if obj = dtype.ByID(int(h)); obj != nil {
		return obj, true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, word := t.lookup(h)
	if e == nil {
		return nil, false
	}
	return e.obj, word&wordCommitted != 0
}

// word returns the word of a handle; nil if the handle names no type or is stale.
func (t *typeTable) word(h int64) *uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, _ := t.lookup(h)
	if e == nil {
		return nil
	}
	return e.word
}

// commit commits the type of a handle, if it names one.
func (t *typeTable) commit(h int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for {
		e, word := t.lookup(h)
		if e == nil || atomic.CompareAndSwapUint64(e.word, word, word|wordCommitted) {
			return
		}
	}
}

// take frees the type of a handle, which is not predefined, and reports whether it has done so.
func (t *typeTable) take(h int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		e, word := t.lookup(h)
		if e == nil || int(h&0xffffffff) < t.base {
			return false
		}
		if atomic.CompareAndSwapUint64(e.word, word, word&^(wordLive|wordCommitted)) {
			t.release(h)
			return true
		}
	}
}

// drop takes back the index of a handle that the extension has freed and does not use again.
func (t *typeTable) drop(h int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.release(h)
}

func (t *typeTable) release(h int64) {
	i := h & 0xffffffff
	t.items[i].obj = nil
	t.free = append(t.free, int32(i))
}
