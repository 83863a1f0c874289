package job

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

const (
	magic   = 0x676f726d61707931 // "gormapy1"
	version = 11

	headBytes = 4096
	// MaxRanks bounds a job; rings are laid out for every pair.
	MaxRanks = 512
	// Blocks is how many communicators and windows can have a barrier block at
	// the same time; the others synchronise by messages.
	Blocks = 512
)

// Rank states, in the order in which they are passed.
const (
	StateNone      uint32 = iota // no process has claimed the rank
	StateClaimed                 // its process is initialising
	StateReady                   // it communicates
	StateFinalized               // it has finalized; its messages stay readable
)

// Head is the first page of the segment.
type Head struct {
	Magic             uint64
	Version           uint32
	Size              uint32 // number of ranks
	ID                [32]byte
	LauncherPID       uint32 // 0 if the job has no launcher of gormapy
	Cores             uint32 // number of cores that the job may use
	LauncherStartTime uint64 // start time of the launcher, see sys.StartTime

	AbortClaim uint32 // rank+1 of the first to abort
	AbortState uint32 // 1 once AbortCode is valid
	AbortCode  int32  // exit status the job is to end with
	Interrupt  uint32 // 1 once the launcher was asked to stop (Ctrl-C, SIGTERM)
	// ErrorHash identifies the first unhandled exception that was printed in full, so
	// that ranks with the same one print only a line, see ClaimError.
	ErrorHash uint64

	RankOff, RankStride  uint64
	RingOff, RingBytes   uint64 // ring from i to j at RingOff + (j*Size+i)*RingBytes
	BlockOff, BlockBytes uint64
	BlockUsed            [Blocks / 32]uint32 // bitmap of barrier blocks in use

	MailOff uint64   // see Directory
	Fabric  uint64   // the first rank's GORMAPY_FABRIC, see AgreeFabric
	Across  uint64   // the network between the nodes, see SetAcross
	Secret  [32]byte // of the job, for connections outside the segment

	Nodes uint32 // number of nodes of the job, each of which has a segment
	Hosts uint32 // number of hosts that they are on
	Node  uint32 // the number of this one
	Map   uint32 // see SetMap
	// AgentBell is the doorbell of the node's agent, see RingAgent.
	AgentBell    uint32
	ErrorVerdict uint32 // on the claim of ErrorHash by a rank of this node
	News         uint32 // see AwaitNews
	TimedOut     uint32 // see ClaimTimeout

	// CutOff is set when the ranks of this node have to end, see CutOff.
	CutOff uint32

	CoreMask [16]uint64 // by processor: whether a rank of this node may use it, see CountCores

	Address    [16]byte // of this node, see SetAddress
	HasAddress uint32   // 1 once Address is valid
	Connected  uint32   // 1 once a rank is connected to a process of another job

	Parent [128]byte // see SetParent
}

// WaitRecord describes what a thread of a rank waits for. Seq is odd while a wait
// is in progress. Readers may see a torn record, which only appears in reports.
type WaitRecord struct {
	Seq   uint32
	Call  uint32 // a Call
	Peer  int32  // world rank, -1 any, -2 none
	Tag   int32
	Ctx   uint64 // context of the communicator or id of the window
	Since int64  // CLOCK_MONOTONIC, ns
	Info  [32]byte
	// Thread is the kernel's number of the thread that waits. For the main thread it is
	// the pid.
	Thread uint32
	_      uint32
}

// WaitRecords is how many waits of one process are published at a time.
const WaitRecords = 4

// Rank is the shared state of one rank. Words written by different processes are on
// different cache lines.
type Rank struct {
	Claim     uint32 // pid of the process that is this rank
	State     uint32
	Gen       uint32 // generation of contexts, matching and epochs
	Flags     uint32
	StartTime uint64 // start time of the process, see sys.StartTime
	CPU       uint32 // 1 + the processor on which it last waited; 0 if unknown
	Node      uint32 // the number of its node
	Agent     uint32 // of the node with this rank's number: see agents.go
	Arena     uint32 // 1 + the descriptor of its arena, which others open; 0 if there is none
	_         [24]byte

	Exit       uint32 // 1 once the launcher saw the end of the rank
	ExitStatus int32  // wait status
	ChildPID   uint32 // the process that the launcher started for this rank
	// Ended is 1 once any process has found that the rank's process has ended: from then
	// on its pid (for copies between address spaces, /proc) may be another process's.
	Ended uint32
	_     [48]byte

	Doorbell uint32 // threads that wait sleep on it
	Sleepers uint32
	_        [56]byte

	Progress         uint32 // the progress engine sleeps on it
	ProgressSleepers uint32
	Pollers          uint32 // threads of the rank that poll or sleep in a wait
	Urgent           uint32 // number of urgent messages sent to the rank, see package engine
	_                [48]byte

	Waits [WaitRecords]WaitRecord

	// Moved counts the polls that moved something: a rank that waits and whose count
	// does not change makes no progress.
	Moved uint32
	_     [60]byte

	Mails uint32 // see Directory
	_     [60]byte
	Card  card

	AgentCard card // see agents.go

	Announced     uint32 // see connected.go
	_             [60]byte
	Announcements [Announcements]Announcement
	_             [16]byte
}

// Rank.Flags
const (
	FlagStacks uint32 = 1 << iota // StackSignal makes the rank print its stacks
)

// StackSignal makes a rank that has set FlagStacks print the Python stacks of all
// its threads. It is a real-time signal that neither Python, Go nor glibc uses.
const StackSignal = 61

// Segment is a mapped job segment.
type Segment struct {
	Head  *Head
	Ranks []Rank
	shm   *sys.Segment

	origin    string // the path by which it was opened
	connected [MaxConnected]atomic.Pointer[Rank]
}

// Create makes the segment of a job of size ranks on one node.
func Create(size int) (*Segment, error) { return CreateNode(make([]int, size), 0) }

// CreateNodes makes the segments of all nodes of a job. nodes has the number of the node of
// each rank.
func CreateNodes(nodes []int) (segs []*Segment, err error) {
	for n := range slices.Max(nodes) + 1 {
		s, err := CreateNode(nodes, n)
		if err != nil {
			for _, s := range segs {
				s.Close()
			}
			return nil, err
		}
		if n > 0 {
			s.Head.ID, s.Head.Secret = segs[0].Head.ID, segs[0].Head.Secret
		}
		segs = append(segs, s)
	}
	return segs, nil
}

// CreateNode makes the segment of one node of a job, likewise.
func CreateNode(nodes []int, node int) (*Segment, error) {
	size := len(nodes)
	if size < 1 || size > MaxRanks {
		return nil, fmt.Errorf("a job has 1 to %d ranks, %d were asked for", MaxRanks, size)
	}
	rankOff := uint64(headBytes)
	stride := uint64(unsafe.Sizeof(Rank{}))
	ringOff := roundUp(rankOff+stride*uint64(size), 4096)
	ring := ringBytes(size)
	blockOff := ringOff + uint64(size)*uint64(size)*ring
	block := blockBytes(size)
	mailOff := blockOff + Blocks*block
	total := mailOff + uint64(size)*uint64(size)*uint64(unsafe.Sizeof(mail{}))
	shm, err := sys.NewSegment("job", int(total))
	if err != nil {
		return nil, err
	}
	s := attach(shm, size)
	h := s.Head
	h.Size, h.Version, h.Cores = uint32(size), version, uint32(runtime.NumCPU())
	h.RankOff, h.RankStride = rankOff, stride
	h.RingOff, h.RingBytes = ringOff, ring
	h.BlockOff, h.BlockBytes = blockOff, block
	h.MailOff = mailOff
	h.Node, h.Hosts = uint32(node), 1
	for r, n := range nodes {
		s.Ranks[r].Node = uint32(n)
		h.Nodes = max(h.Nodes, uint32(n)+1)
	}
	if _, err := rand.Read(h.Secret[:]); err != nil {
		return nil, fmt.Errorf("make the job's secret: %w", err)
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("make job id: %w", err)
	}
	hex.Encode(h.ID[:], id[:])
	h.BlockUsed[0] = 1 // block WorldBlock
	atomic.StoreUint64(&h.Magic, magic)
	return s, nil
}

// Open maps the job segment at path, as given by Path.
func Open(path string) (*Segment, error) {
	shm, err := sys.OpenSegmentPath(path)
	if err != nil {
		return nil, err
	}
	if len(shm.Mem) < headBytes {
		shm.Close()
		return nil, errors.New("open job segment " + path + ": too short")
	}
	h := (*Head)(unsafe.Pointer(&shm.Mem[0]))
	size := int(h.Size)
	if atomic.LoadUint64(&h.Magic) != magic || h.Version != version || size < 1 || size > MaxRanks ||
		h.MailOff+uint64(size*size)*uint64(unsafe.Sizeof(mail{})) > uint64(len(shm.Mem)) || h.RankStride != uint64(unsafe.Sizeof(Rank{})) {
		shm.Close()
		return nil, fmt.Errorf("open job segment %s: made by another version of gormapy (launcher and ranks must be of one installation)", path)
	}
	s := attach(shm, size)
	s.origin = path
	return s, nil
}

func attach(shm *sys.Segment, size int) *Segment {
	shm.KeepFromChildren()
	return &Segment{
		Head:  (*Head)(unsafe.Pointer(&shm.Mem[0])),
		Ranks: unsafe.Slice((*Rank)(unsafe.Pointer(&shm.Mem[headBytes])), size),
		shm:   shm,
	}
}

// ringBytes returns the size of a ring. It is smaller in larger jobs, because the
// mapping grows with the square of the number of ranks (16 ranks: 64 MiB of addresses,
// touched on first use).
func ringBytes(size int) uint64 {
	switch {
	case size <= 32:
		return 256 << 10
	case size <= 128:
		return 64 << 10
	}
	return 16 << 10
}

// A barrier block has BarrierGroupsOffset bytes for the barrier of all ranks, then two cache lines for that of each of
// BarrierGroups groups, then for each rank BoardSlots+1 cache lines (see coll.Board), for each group two times BoardSlots, and for each rank
// NonblockingSlots+1, then for each rank BoardSlots times BoardSlotBytes and LongSlots times LongSlotBytes, for each group two times BoardSlots
// times BoardSlotBytes, and for each rank NonblockingSlots times that.
const BarrierGroupsOffset = 4 * 64

// BarrierGroups returns the largest number of groups of a barrier of up to size ranks.
func BarrierGroups(size int) int { return (size + LeastBarrierGroup - 1) / LeastBarrierGroup }

// BoardOffset returns the offset of the ranks' cache lines in a block.
func BoardOffset(size int) int { return BarrierGroupsOffset + BarrierGroups(size)*2*64 }

// BoardSlotBytes returns the size of a rank's data of one small collective.
func BoardSlotBytes(size int) int {
	switch {
	case size <= 32:
		return 4 << 10
	case size <= 128:
		return 512
	}
	return 128
}

// LongSlots is how many collectives with more data a rank can be ahead of the others.
const LongSlots = 2

// LongSlotBytes returns the size of a rank's data of one of these; 0 in a job of many
// ranks, where the blocks would need too much address space.
func LongSlotBytes(size int) int {
	if size <= 8 {
		return 64 << 10
	}
	return 0
}

// GroupSlotsOffset returns the offset of the groups' slots in a block.
func GroupSlotsOffset(size int) int { return BoardOffset(size) + size*(BoardSlots+1)*64 }

// NonblockingOffset returns the offset of the ranks' cache lines of nonblocking collectives in a block.
func NonblockingOffset(size int) int {
	return GroupSlotsOffset(size) + BarrierGroups(size)*2*BoardSlots*64
}

// BoardDataOffset returns the offset of the ranks' data in a block.
func BoardDataOffset(size int) int {
	return NonblockingOffset(size) + size*(NonblockingSlots+1)*64
}

// LongSlotDataOffset returns the offset of the data of the long slots.
func LongSlotDataOffset(size int) int {
	return BoardDataOffset(size) + size*BoardSlots*BoardSlotBytes(size)
}

// GroupDataOffset returns the offset of the groups' data.
func GroupDataOffset(size int) int {
	return LongSlotDataOffset(size) + size*LongSlots*LongSlotBytes(size)
}

// NonblockingDataOffset returns the offset of the ranks' data of nonblocking collectives.
func NonblockingDataOffset(size int) int {
	return GroupDataOffset(size) + BarrierGroups(size)*2*BoardSlots*BoardSlotBytes(size)
}

func blockBytes(size int) uint64 {
	return roundUp(uint64(NonblockingDataOffset(size)+size*NonblockingSlots*BoardSlotBytes(size)), 4096)
}

// WorldBlock is the barrier block of the communicator of all ranks.
const WorldBlock = 0

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// Path returns a path at which other processes of this user can open the segment while
// this process lives and keeps the descriptor.
func (s *Segment) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.shm.FD) }

// FD returns the segment's descriptor in this process.
func (s *Segment) FD() int { return s.shm.FD }

// CloseFD closes the descriptor and keeps the mapping.
func (s *Segment) CloseFD() { s.shm.CloseFD() }

// Close unmaps the segment.
func (s *Segment) Close() error { return s.shm.Close() }

// Ring returns the memory of the ring from rank src to rank dst.
func (s *Segment) Ring(src, dst int) []byte {
	off := s.Head.RingOff + uint64(dst*len(s.Ranks)+src)*s.Head.RingBytes
	return s.shm.Mem[off : off+s.Head.RingBytes : off+s.Head.RingBytes]
}

// ID returns the job's random name, 32 hexadecimal digits.
func (s *Segment) ID() string { return string(s.Head.ID[:]) }

// Block returns the memory of barrier block i.
func (s *Segment) Block(i int) []byte {
	off := s.Head.BlockOff + uint64(i)*s.Head.BlockBytes
	return s.shm.Mem[off : off+s.Head.BlockBytes : off+s.Head.BlockBytes]
}

// TakeBlock reserves a barrier block and zeroes it except for its data. It returns -1
// if none is left.
func (s *Segment) TakeBlock() int {
	for w := range s.Head.BlockUsed {
		p := &s.Head.BlockUsed[w]
		for {
			old := atomic.LoadUint32(p)
			if old == ^uint32(0) {
				break
			}
			bit := 0
			for old&(1<<bit) != 0 {
				bit++
			}
			if atomic.CompareAndSwapUint32(p, old, old|1<<bit) {
				i := w*32 + bit
				clear(s.Block(i)[:BoardDataOffset(len(s.Ranks))])
				return i
			}
		}
	}
	return -1
}

// GiveBlock frees block i. No rank may use it any more.
func (s *Segment) GiveBlock(i int) {
	atomic.AndUint32(&s.Head.BlockUsed[i/32], ^uint32(1<<(i%32)))
}

// AgreeFabric returns the name, of at most 8 bytes, with which the first rank called
// it.
func (s *Segment) AgreeFabric(name string) string {
	atomic.CompareAndSwapUint64(&s.Head.Fabric, 0, packed(name))
	return unpacked(atomic.LoadUint64(&s.Head.Fabric))
}

// SetAcross records the network between the nodes, a name of at most 8 bytes. Across returns it,
// "" if none was set.
func (s *Segment) SetAcross(name string) { atomic.StoreUint64(&s.Head.Across, packed(name)) }

// Across is described with SetAcross.
func (s *Segment) Across() string { return unpacked(atomic.LoadUint64(&s.Head.Across)) }

// packed returns a name of at most 8 bytes as a word.
func packed(name string) uint64 {
	var b [8]byte
	copy(b[:], name)
	return binary.LittleEndian.Uint64(b[:])
}

// unpacked returns the name that packed has packed.
func unpacked(word uint64) string {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], word)
	return strings.TrimRight(string(b[:]), "\x00")
}

// Ring wakes the rank's threads that sleep in a wait. A waiter increments Sleepers,
// reads Doorbell, checks its condition once more, and only then sleeps while Doorbell
// has that value. A thread that makes the condition true does so with a
// sequentially consistent store before it calls Ring. So either the waiter sees
// the condition, or Ring sees the sleeper.
func (r *Rank) Ring() {
	if atom.Load32(&r.Sleepers) != 0 {
		atom.Add32(&r.Doorbell, 1)
		atom.Wake(&r.Doorbell)
	}
}

// RingProgress wakes the progress engine of the rank if it sleeps.
func (r *Rank) RingProgress() {
	if atom.Load32(&r.ProgressSleepers) != 0 {
		atom.Add32(&r.Progress, 1)
		atom.Wake(&r.Progress)
	}
}

// PID returns the pid of the process that is this rank, 0 if none has claimed it.
func (r *Rank) PID() int { return int(atomic.LoadUint32(&r.Claim)) }
