package trace

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/settings"
	"gormapy/gocore/sys"
)

// Kind is the kind of a record.
type Kind uint16

// The kinds of records, numbered as in trace.h.
const (
	KindNone     Kind = iota
	KindCall          // a call on no communicator or window
	KindCallComm      // a call on the communicator Object
	KindCallWin       // a call on the window Object
	KindWait          // a wait from Begin to End; Tag is a job.Call, Peer a world rank
	KindSent          // a message: Disp is its number, Object its context, Peer the receiver's world rank
	KindReceived      // the same; Peer is the sender's world rank
	KindComm          // the communicator with handle Object: Disp is the context, Bytes the size, Peer the own rank; KindRanks follow
	KindWin           // the same for a window; Tag is its flavor
	KindRanks         // world ranks of the communicator or window in the record before
)

// States of a record.
const (
	StateOpen = 1
	StateDone = 2
)

// Record is one event. Its layout is that of trace_record in trace.h.
type Record struct {
	State  uint32
	Kind   Kind
	Name   uint16 // index into the names
	Begin  uint64 // ticks
	End    uint64
	Thread uint32
	Peer   int32
	Object int64 // handle
	Bytes  int64
	Disp   int64 // displacement of a one-sided operation, in bytes
	Tag    int32 // tag, root's place, assertion or lock type; the bytes that a one-sided operation spans
	Op     int32 // handle of a reduction's operation; -1 if the call failed
}

// RanksInRecord is how many ranks a record of KindRanks has, from its Begin on.
const RanksInRecord = 12

// Ranks returns the world ranks in a record of KindRanks.
func (r *Record) Ranks() *[RanksInRecord]int32 {
	return (*[RanksInRecord]int32)(unsafe.Pointer(&r.Begin))
}

// Head is the header of a part; its layout is that of trace_head in trace.h.
type Head struct {
	Magic    uint64
	Version  uint32
	Clock    uint32 // ClockTSC or ClockMonotonic
	Capacity uint64 // number of records that there is room for
	Rank     int32  // in COMM_WORLD; -1: no rank has recorded here
	Size     int32
	PID      uint32
	NameLen  uint32
	Tick0    uint64 // when the recording began
	Nano0    uint64
	Tick1    uint64 // when it ended; 0: the process did not store it
	Nano1    uint64
	_        [7]uint64

	Next    uint64 // number of records taken
	Threads uint32 // number of threads that have recorded calls
	First   uint32 // the first of these threads
	_       [6]uint64
}

// EnvPart is the environment variable in which the launcher passes the path of its part
// to a rank.
const EnvPart = "GORMAPY_JOB_TRACE"

// The layout of a part.
const (
	magic     = 0x6563617274796d67 // gmytrace
	version   = 1
	namesAt   = 4096
	recordsAt = 64 << 10

	RecordBytes = int(unsafe.Sizeof(Record{}))
)

// Part is the memory of one rank's recording.
type Part struct {
	Head    *Head
	mem     []byte
	seg     *sys.Segment // nil: the caller owns the memory
	records []Record
}

// Capacity returns the number of records for which a part should have room.
func Capacity() (int, error) {
	text := settings.TraceEvents.Value()
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1<<30 {
		return 0, fmt.Errorf("%s is %q: it is a number of events for each rank, 1 to %d", settings.TraceEvents.Name, text, 1<<30)
	}
	return n, nil
}

// NewPart makes a part with room for n records. The kernel allocates its memory when it
// is touched.
func NewPart(n int) (*Part, error) {
	seg, err := sys.NewSegment("trace", recordsAt+n*RecordBytes)
	if err != nil {
		return nil, err
	}
	p, _ := view(seg.Mem)
	p.seg = seg
	*p.Head = Head{Magic: magic, Version: version, Clock: clockHere(), Capacity: uint64(n), Rank: -1}
	p.Head.Tick0, p.Head.Nano0 = p.pair()
	p.bind()
	return p, nil
}

// OpenPart maps the part that a launcher has made for this process.
func OpenPart(path string) (*Part, error) {
	seg, err := sys.OpenSegmentPath(path)
	if err != nil {
		return nil, err
	}
	p, err := view(seg.Mem)
	if err == nil {
		err = p.check()
	}
	if err != nil {
		seg.Close()
		return nil, err
	}
	seg.CloseFD()
	p.seg = seg
	p.bind()
	return p, nil
}

// ReadPart returns the part in mem, which may end after its last record.
func ReadPart(mem []byte) (*Part, error) {
	p, err := view(mem)
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, err
	}
	p.bind()
	return p, nil
}

func view(mem []byte) (*Part, error) {
	if len(mem) < recordsAt {
		return nil, fmt.Errorf("%d bytes are no part of a recording: its header has %d", len(mem), recordsAt)
	}
	return &Part{Head: (*Head)(unsafe.Pointer(&mem[0])), mem: mem}, nil
}

func (p *Part) check() error {
	if p.Head.Magic != magic || p.Head.Version != version {
		return fmt.Errorf("no part of a recording by this version of gormapy (it begins with %#x, version %d)", p.Head.Magic, p.Head.Version)
	}
	if p.Head.NameLen > recordsAt-namesAt {
		return fmt.Errorf("a broken part of a recording: names of %d bytes", p.Head.NameLen)
	}
	return nil
}

func (p *Part) bind() {
	n := min(uint64(len(p.mem)-recordsAt)/uint64(RecordBytes), p.Head.Capacity)
	if n > 0 {
		p.records = unsafe.Slice((*Record)(unsafe.Pointer(&p.mem[recordsAt])), n)
	}
}

// Path returns the path of the part for a child of this process, whose pid is pid.
func (p *Part) Path(pid int) string { return fmt.Sprintf("/proc/%d/fd/%d", pid, p.seg.FD) }

// Close unmaps the memory. No thread may write to the part any more.
func (p *Part) Close() {
	if p.seg != nil {
		_ = p.seg.Close()
	}
}

// Used reports whether a rank has recorded here.
func (p *Part) Used() bool { return p.Head.Rank >= 0 }

// Records returns the records that were taken.
func (p *Part) Records() []Record {
	return p.records[:min(atomic.LoadUint64(&p.Head.Next), uint64(len(p.records)))]
}

// Dropped returns the number of records for which there was no room.
func (p *Part) Dropped() uint64 {
	if n := atomic.LoadUint64(&p.Head.Next); n > p.Head.Capacity {
		return n - p.Head.Capacity
	}
	return 0
}

// Bytes returns the part up to its last record, for ReadPart.
func (p *Part) Bytes() []byte { return p.mem[:recordsAt+len(p.Records())*RecordBytes] }

// Names returns the names of the calls, each followed by a tab and its category.
func (p *Part) Names() []string {
	return strings.Split(string(p.mem[namesAt:namesAt+int(p.Head.NameLen)]), "\n")
}

// setNames stores the names for readers.
func (p *Part) setNames(names string) error {
	if len(names) > recordsAt-namesAt {
		return fmt.Errorf("the names of the calls take %d bytes, there is room for %d", len(names), recordsAt-namesAt)
	}
	p.Head.NameLen = uint32(copy(p.mem[namesAt:recordsAt], names))
	return nil
}
