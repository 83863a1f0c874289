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

// Kind tells what a record is about.
type Kind uint16

// The kinds of records, numbered as in trace.h.
const (
	KindNone     Kind = iota
	KindCall          // a call on nothing in particular
	KindCallComm      // on the communicator Object
	KindCallWin       // on the window Object
	KindWait          // Begin to End; Tag is a job.Call, Peer a world rank
	KindSent          // Disp is the message's number, Object its context, Peer the receiver's world rank
	KindReceived      // likewise; Peer is the sender's world rank
	KindComm          // what the handle Object stands for: Disp is the context, Bytes the size, Peer the own rank; more follow
	KindWin           // the same of a window; Tag is its flavor
	KindRanks         // world ranks of what came before
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
	Disp   int64 // of a one-sided operation, in bytes
	Tag    int32 // tag, root's place, assertion or lock type; of a one-sided operation the bytes it spans
	Op     int32 // handle of a reduction's operation; of a call that failed -1
}

// RanksInRecord is how many ranks a record of KindRanks holds, from its Begin on.
const RanksInRecord = 12

// Ranks are the world ranks in a record of KindRanks.
func (r *Record) Ranks() *[RanksInRecord]int32 {
	return (*[RanksInRecord]int32)(unsafe.Pointer(&r.Begin))
}

// Head is the header of a part; its layout is that of trace_head in trace.h.
type Head struct {
	Magic    uint64
	Version  uint32
	Clock    uint32 // ClockTSC or ClockMonotonic
	Capacity uint64 // records that there is room for
	Rank     int32  // of COMM_WORLD; -1: nobody has recorded here
	Size     int32
	PID      uint32
	NameLen  uint32
	Tick0    uint64 // when the recording began
	Nano0    uint64
	Tick1    uint64 // when it ended; 0: the process did not say
	Nano1    uint64
	_        [7]uint64

	Next    uint64 // records taken
	Threads uint32 // threads that have recorded calls
	First   uint32 // the first of them
	_       [6]uint64
}

// EnvPart is the variable in which the launcher tells a rank where its part is.
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
	seg     *sys.Segment // nil: the memory is somebody else's
	records []Record
}

// Capacity is how many records a part is to have room for.
func Capacity() (int, error) {
	text := settings.TraceEvents.Value()
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1<<30 {
		return 0, fmt.Errorf("%s is %q: it is a number of events for each rank, 1 to %d", settings.TraceEvents.Name, text, 1<<30)
	}
	return n, nil
}

// NewPart makes a part with room for n records. Its memory is there when it is
// touched.
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

// ReadPart looks at a part, or at one that ends after its last record.
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

// Path is where a child of this process finds the part.
func (p *Part) Path(pid int) string { return fmt.Sprintf("/proc/%d/fd/%d", pid, p.seg.FD) }

// Close gives the memory back. Nobody may write any more.
func (p *Part) Close() {
	if p.seg != nil {
		_ = p.seg.Close()
	}
}

// Used reports whether a rank has recorded here.
func (p *Part) Used() bool { return p.Head.Rank >= 0 }

// Records are those that were written, and Dropped is how many there was no room
// for.
func (p *Part) Records() []Record {
	return p.records[:min(atomic.LoadUint64(&p.Head.Next), uint64(len(p.records)))]
}

// Dropped is how many records there was no room for.
func (p *Part) Dropped() uint64 {
	if n := atomic.LoadUint64(&p.Head.Next); n > p.Head.Capacity {
		return n - p.Head.Capacity
	}
	return 0
}

// Bytes is the part up to its last record, for ReadPart.
func (p *Part) Bytes() []byte { return p.mem[:recordsAt+len(p.Records())*RecordBytes] }

// Names are the names of the calls, each with the category that follows a tab.
func (p *Part) Names() []string {
	return strings.Split(string(p.mem[namesAt:namesAt+int(p.Head.NameLen)]), "\n")
}

// setNames makes the names known to readers.
func (p *Part) setNames(names string) error {
	if len(names) > recordsAt-namesAt {
		return fmt.Errorf("the names of the calls take %d bytes, there is room for %d", len(names), recordsAt-namesAt)
	}
	p.Head.NameLen = uint32(copy(p.mem[namesAt:recordsAt], names))
	return nil
}
