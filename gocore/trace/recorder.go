package trace

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// active is the part into which this process records, nil if it does not.
var active atomic.Pointer[Part]

// state is what Own and GiveBack change.
var state struct {
	sync.Mutex
	// spare are parts of earlier recordings. They stay mapped: a thread that was in
	// the middle of a record when a recording stopped may still write to it.
	spare []*Part
}

// numbers counts messages over all recordings: a message of an earlier recording that
// is received in this one must not be taken for one of this one.
var numbers atomic.Uint32

// On returns the part into which this process records, nil if it does not.
func On() *Part { return active.Load() }

// Start begins to record into p.
func Start(p *Part, rank, size, pid int, names string) error {
	if err := p.setNames(names); err != nil {
		return err
	}
	h := p.Head
	h.Size, h.PID = int32(size), uint32(pid)
	h.Tick0, h.Nano0 = p.pair()
	ahead := min(maxAhead, max(minAhead, jobAhead/max(size, 1)))
	p.populate(0, minAhead)
	atomic.StoreInt32(&h.Rank, int32(rank))
	active.Store(p)
	go p.keepAhead(ahead)
	return nil
}

// How far ahead of the writers the pages of a part are populated, in bytes: a first
// touch takes microseconds, as long as all records on the page.
const (
	minAhead  = 256 << 10
	maxAhead  = 8 << 20
	jobAhead  = 256 << 20 // all ranks of a job, on one host
	lookEvery = 2 * time.Millisecond
)

// keepAhead populates pages ahead of the writers until the recording ends.
func (p *Part) keepAhead(ahead int) {
	made := minAhead
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for ; active.Load() == p && made < len(p.mem)-recordsAt; <-ticker.C {
		used := int(min(atomic.LoadUint64(&p.Head.Next), p.Head.Capacity)) * RecordBytes
		if want := used + ahead; made < want-ahead/2 || made == minAhead {
			from := max(made, used)
			p.populate(from, want-from)
			made = want
		}
	}
}

// populate populates the pages of n bytes of records at offset from.
func (p *Part) populate(from, n int) {
	end := min(len(p.mem), recordsAt+from+n)
	if begin := (recordsAt + from) &^ (os.Getpagesize() - 1); begin < end {
		_ = unix.Madvise(p.mem[begin:end], unix.MADV_POPULATE_WRITE)
	}
}

// Stop ends the recording and returns its part, nil if there was none.
func Stop() *Part {
	p := active.Swap(nil)
	if p != nil {
		p.Head.Tick1, p.Head.Nano1 = p.pair()
	}
	return p
}

// Own returns a part made by this process, with room for n records. It reuses one of
// an earlier recording if there are enough of them.
func Own(n int) (*Part, error) {
	state.Lock()
	defer state.Unlock()
	if len(state.spare) >= 2 {
		p := state.spare[0]
		state.spare = state.spare[1:]
		if p.Head.Capacity == uint64(n) {
			p.clear()
			return p, nil
		}
	}
	return NewPart(n)
}

// GiveBack keeps a part that Own has returned for a later recording.
func GiveBack(p *Part) {
	state.Lock()
	defer state.Unlock()
	state.spare = append(state.spare, p)
}

// clear resets the part to that of a new one, and frees its pages.
func (p *Part) clear() {
	if unix.Fallocate(p.seg.FD, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, recordsAt, int64(len(p.mem)-recordsAt)) != nil {
		clear(p.Records())
	}
	h := p.Head
	atomic.StoreUint64(&h.Next, 0)
	h.Rank, h.Threads, h.First, h.Tick1, h.Nano1 = -1, 0, 0, 0, 0
}

// Address returns the address of the part for the shim.
func (p *Part) Address() unsafe.Pointer { return unsafe.Pointer(p.Head) }

// RecordsAt is the offset of the records in a part.
const RecordsAt = recordsAt

// take returns n records for the caller to write, nil if there is no room.
func (p *Part) take(n uint64) []Record {
	end := atomic.AddUint64(&p.Head.Next, n)
	if end > uint64(len(p.records)) {
		return nil
	}
	return p.records[end-n : end]
}

// thread returns the number of the calling thread, if it records calls. It makes a
// system call only if several threads record calls.
func (p *Part) thread() uint32 {
	if atomic.LoadUint32(&p.Head.Threads) < 2 {
		return p.Head.First
	}
	return uint32(unix.Gettid())
}

// Now reads the clock.
func (p *Part) Now() uint64 {
	if p.Head.Clock == ClockTSC {
		return ticks()
	}
	return nanos()
}

// Waited records a wait for the world rank peer from begin to now.
func (p *Part) Waited(begin uint64, call uint32, peer, tag int) {
	if r := p.take(1); r != nil {
		r[0].Kind, r[0].Begin, r[0].End, r[0].Thread = KindWait, begin, p.Now(), p.thread()
		r[0].Peer, r[0].Tag, r[0].Object = int32(peer), int32(call), int64(tag)
		storeRelease(&r[0].State, StateDone)
	}
}

// Number returns a number for a message; 0 is none.
func Number() uint32 {
	number := numbers.Add(1)
	if number == 0 {
		number = numbers.Add(1)
	}
	return number
}

// Sent records that a message of n bytes to the world rank peer was sent, and
// returns its number.
func (p *Part) Sent(ctx uint32, peer, tag, n int) uint32 {
	number := Number()
	p.message(KindSent, number, ctx, peer, tag, n)
	return number
}

// Received records that the message with this number from the world rank peer
// was received.
func (p *Part) Received(number, ctx uint32, peer, tag, n int) {
	p.message(KindReceived, number, ctx, peer, tag, n)
}

func (p *Part) message(kind Kind, number, ctx uint32, peer, tag, n int) {
	if r := p.take(1); r != nil {
		r[0].Kind, r[0].Begin, r[0].Thread, r[0].Peer = kind, p.Now(), p.thread(), int32(peer)
		r[0].Object, r[0].Bytes, r[0].Disp, r[0].Tag = int64(ctx), int64(n), int64(number), int32(tag)
		storeRelease(&r[0].State, StateDone)
	}
}

// Define records what a handle stands for: a communicator or window, with an
// identity that is the same at all its ranks.
func (p *Part) Define(kind Kind, handle, identity int64, flavor, own int, world []int) {
	n := (len(world) + RanksInRecord - 1) / RanksInRecord
	r := p.take(uint64(1 + n))
	if r == nil {
		return
	}
	for i, rank := range world {
		more := &r[1+i/RanksInRecord]
		more.Kind = KindRanks
		more.Ranks()[i%RanksInRecord] = int32(rank)
	}
	for i := range n {
		storeRelease(&r[1+i].State, StateDone)
	}
	r[0].Kind, r[0].Object, r[0].Disp, r[0].Bytes = kind, handle, identity, int64(len(world))
	r[0].Tag, r[0].Peer = int32(flavor), int32(own)
	storeRelease(&r[0].State, StateDone)
}
