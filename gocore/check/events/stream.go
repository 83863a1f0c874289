package events

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

// EnvStream is the environment variable in which the launcher passes the path of its stream to a rank.
const EnvStream = "GORMAPY_JOB_CHECK"

const (
	magic   = 0x6b636568636d6767 // ggmcheck
	version = 1
	// DataAt is the offset of the events in a stream.
	DataAt = 4096

	// Capacity is how many bytes of events a stream has room for.
	Capacity = 16 << 20

	// HeadBytes are those of an event before its words: what it is, its time, its thread and site.
	HeadBytes = 24
)

// Head is the beginning of a stream; its layout is that of check_head in check.h.
type Head struct {
	Magic    uint64
	Version  uint32
	_        uint32
	Capacity uint64
	_        [5]uint64

	Written uint64
	Lock    uint32
	_       uint32
	_       [6]uint64

	Read uint64
	_    [7]uint64
}

// Stream is one rank's stream.
type Stream struct {
	head *Head
	data []byte
	seg  *sys.Segment
	at   uint64 // how far the reader has got
}

// New makes a stream.
func New() (*Stream, error) {
	seg, err := sys.NewSegment("check", DataAt+Capacity)
	if err != nil {
		return nil, err
	}
	s := over(seg)
	s.head.Magic, s.head.Version, s.head.Capacity = magic, version, Capacity
	return s, nil
}

// Open maps the stream that a launcher has made for this process.
func Open(path string) (*Stream, error) {
	seg, err := sys.OpenSegmentPath(path)
	if err != nil {
		return nil, err
	}
	if len(seg.Mem) != DataAt+Capacity {
		seg.Close()
		return nil, fmt.Errorf("%s is no stream of events: it has %d bytes, a stream has %d", path, len(seg.Mem), DataAt+Capacity)
	}
	s := over(seg)
	if s.head.Magic != magic || s.head.Version != version || s.head.Capacity != Capacity {
		seg.Close()
		return nil, fmt.Errorf("%s is no stream of events by this version of gormapy", path)
	}
	seg.CloseFD()
	return s, nil
}

func over(seg *sys.Segment) *Stream {
	return &Stream{head: (*Head)(unsafe.Pointer(&seg.Mem[0])), data: seg.Mem[DataAt:], seg: seg}
}

// Path returns the path of the stream for a child of this process.
func (s *Stream) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.seg.FD) }

// Address returns the address of the stream for the shim.
func (s *Stream) Address() unsafe.Pointer { return unsafe.Pointer(s.head) }

// Close unmaps the stream. Nobody may write to it any more.
func (s *Stream) Close() { _ = s.seg.Close() }

// Now reads the clock of the events, in nanoseconds.
func Now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// active is the stream of this process, nil if it is not checked.
var active atomic.Pointer[Stream]

// On returns the stream to which this process writes, nil if it is not checked.
func On() *Stream { return active.Load() }

// Start begins to write to s.
func Start(s *Stream) { active.Store(s) }

// Write appends an event of the calling thread.
func (s *Stream) Write(kind Kind, words ...int64) {
	me := uint32(unix.Gettid())
	for spins := 0; !atomic.CompareAndSwapUint32(&s.head.Lock, 0, me); spins++ {
		if spins > 64 {
			runtime.Gosched()
		}
	}
	defer atomic.StoreUint32(&s.head.Lock, 0)
	n := uint64(HeadBytes + 8*len(words))
	now := Now()
	at := s.head.Written
	for at+n-atomic.LoadUint64(&s.head.Read) > Capacity {
		time.Sleep(50 * time.Microsecond)
	}
	s.put(at, uint64(kind)|uint64(len(words))<<16)
	s.put(at+8, uint64(now))
	s.put(at+16, uint64(me))
	for i, w := range words {
		s.put(at+HeadBytes+8*uint64(i), uint64(w))
	}
	atomic.StoreUint64(&s.head.Written, at+n)
}

// put stores a word. All events have whole words, so that none goes round the end of the ring.
func (s *Stream) put(at, word uint64) {
	binary.NativeEndian.PutUint64(s.data[at%Capacity:], word)
}

func (s *Stream) word(at uint64) uint64 { return binary.NativeEndian.Uint64(s.data[at%Capacity:]) }

// Event is one event as it is read.
type Event struct {
	Kind   Kind
	Time   int64
	Thread uint32 // the kernel's number
	Site   uint32 // the number of a DefSite, 0: none
	Words  []int64
	Text   string
}

// Next reads the next event. If there is none, it returns nil and the time after which later events are; 0 if it is not
// known, because one is being written.
func (s *Stream) Next() (*Event, int64) {
	now := Now()
	free := atomic.LoadUint32(&s.head.Lock) == 0
	if atomic.LoadUint64(&s.head.Written) == s.at {
		if !free {
			now = 0
		}
		return nil, now
	}
	what := s.word(s.at)
	e := &Event{Kind: Kind(what & 0xffff), Time: int64(s.word(s.at + 8))}
	by := s.word(s.at + 16)
	e.Thread, e.Site = uint32(by), uint32(by>>32)
	at := s.at + HeadBytes
	e.Words = make([]int64, what>>16&0xffff)
	for i := range e.Words {
		e.Words[i] = int64(s.word(at))
		at += 8
	}
	if n := what >> 32; n > 0 {
		text := make([]byte, (n+7)/8*8)
		for i := 0; i < len(text); i += 8 {
			binary.NativeEndian.PutUint64(text[i:], s.word(at))
			at += 8
		}
		e.Text = string(text[:n])
	}
	s.at = at
	atomic.StoreUint64(&s.head.Read, at)
	return e, 0
}
