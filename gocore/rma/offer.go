package rma

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/log"
	"gormapy/gocore/sys"
)

// Offer describes a rank's part to the others when a window is made. Its layout is
// fixed, and it is exchanged as bytes.
type Offer struct {
	Addr   uint64 // Create: the memory
	Bytes  int64
	Unit   int64
	Flavor int32
	Failed int32 // error class, 0 if there is no error
	Probe  uint64
	Share  uint64 // Create: the memory's share of the rank's arena, see engine.Share
	PID    int32
	FD     int32 // first rank of a node, second round: the node's segment of the window
	Copy   int32 // second round: 1 if the kernel lets this rank read all others
	Mapped int32 // second round: 1 if this rank maps all memory that lies in arenas
	Hints  Hints
	Align  int32 // mpi_minimum_memory_alignment, 0 if it is not given
	Keyed  int64 // third round: 1 if a network reads and writes the part by Key
	Key    fabric.RemoteKey
	Skew   int64  // the part's address modulo 8
	Node   int64  // the number of the rank's node
	Tag    uint64 // second round: the node's segment begins with it
	Spare  uint64 // the tag of a segment that the rank could use again; 0: it has none
}

// OfferBytes is the size of Offer.
const OfferBytes = int(unsafe.Sizeof(Offer{}))

// probe is a word that peers read through the kernel, to learn whether they may.
var probe = uint64(0x70726f6265) //nolint

// NewOffer describes the calling rank's part. For Create, addr and n are the user's
// memory. For the other flavors, n is the size asked for.
func (m *RMA) NewOffer(f Flavor, addr unsafe.Pointer, n, unit int) Offer {
	o := Offer{Addr: uint64(uintptr(addr)), Bytes: int64(n), Unit: int64(unit), Flavor: int32(f), PID: int32(os.Getpid()),
		Probe: uint64(uintptr(unsafe.Pointer(&probe)))}
	if f == FlavorCreate && n > 0 {
		o.Share = m.eng.Share(addr, n)
	}
	return o
}

// layout has the offsets in a node's segment of a window, by rank. There is room for the
// synchronisation of all ranks, since those of other nodes have a slot in each lock and
// inbox, and for the data of the node's own ranks.
type layout struct {
	lock    []int
	inbox   []int // see pscw.go
	journal []int
	notify  []int // see notify.go
	data    []int // in dynamic windows the table of attached memory
	parts   []int // bytes of that
	total   int
}

func newLayout(offers []Offer, node int) layout {
	n := len(offers)
	at := make([]int, 6*n)
	list := func(i int) []int { return at[i*n : i*n : (i+1)*n] }
	l := layout{lock: list(0), inbox: list(1), journal: list(2), notify: list(3), data: list(4), parts: list(5), total: tagBytes}
	for range n {
		l.lock = append(l.lock, l.total)
		l.total += lockBytes(n)
	}
	for range n {
		l.inbox = append(l.inbox, l.total)
		l.total += inboxBytes(n)
	}
	l.total = pageUp(l.total)
	for range n {
		l.journal = append(l.journal, l.total)
		l.total += journalBytes
	}
	for range n { // pages that are not touched unless there are notifications
		l.notify = append(l.notify, l.total)
		l.total += notifyBytes
	}
	align := Alignment(offers)
	l.total = alignUp(l.total, align)
	for i := range offers {
		o := &offers[i]
		bytes, aligned := 0, true
		switch {
		case o.Node != int64(node):
		case Flavor(o.Flavor) == FlavorAllocate:
			bytes = int(o.Bytes)
		case Flavor(o.Flavor) == FlavorShared: // one run of memory, as MPI promises by default
			bytes, aligned = int(o.Bytes), o.Hints&HintNoncontig != 0
		case Flavor(o.Flavor) == FlavorDynamic:
			bytes, aligned = tableBytes, false
		}
		l.data, l.parts = append(l.data, l.total), append(l.parts, bytes)
		if aligned {
			bytes = alignUp(bytes, align)
		}
		l.total += bytes
	}
	l.total = max(pageUp(l.total), 4096)
	return l
}

// tagBytes is the room for the tag by which a segment is known.
const tagBytes = 64

func alignUp(n, align int) int { return (n + align - 1) / align * align }

func pageUp(n int) int { return alignUp(n, 4096) }

// CheckOffers returns an error if no window can be made of the offers.
func CheckOffers(offers []Offer) *errs.Error {
	for i := range offers {
		o := &offers[i]
		switch {
		case o.Failed != 0:
			return errs.New(errs.Class(o.Failed), "rank %d of the communicator could not give its part of the window", i)
		case o.Flavor != offers[0].Flavor:
			return errs.New(errs.Win, "the ranks of the communicator make different kinds of windows in the same collective call")
		case o.Bytes < 0 || o.Bytes > 1<<46:
			return errs.New(errs.Size, "rank %d asks for a window of %d bytes", i, o.Bytes)
		case Flavor(o.Flavor) == FlavorShared && o.Node != offers[0].Node:
			return errs.New(errs.RMAShared, "Win.Allocate_shared: rank %d of the communicator is on another node than rank 0, so they can't share memory: make the window on comm.Split_type(MPI.COMM_TYPE_SHARED), or use Win.Allocate", i)
		}
	}
	return checkHints(offers)
}

// Leader returns the rank that makes the segment of a node: the first one there.
func Leader(offers []Offer, node int) int {
	return slices.IndexFunc(offers, func(o Offer) bool { return o.Node == int64(node) })
}

// CreateSegment makes the window's segment of a node. The node's Leader calls it. It
// describes the segment in made.
func CreateSegment(offers []Offer, node int, made *Offer) (*sys.Segment, *errs.Error) {
	l := newLayout(offers, node)
	seg, err := sys.NewSegment("window", l.total)
	if err != nil {
		return nil, errs.New(errs.NoMem, "make window of %d bytes in all: %v", l.total, err)
	}
	if err := seg.Align(Alignment(offers)); err != nil {
		seg.Close()
		return nil, errs.New(errs.NoMem, "make window of %d bytes in all: %v", l.total, err)
	}
	made.FD, made.PID, made.Tag = int32(seg.FD), int32(os.Getpid()), rand.Uint64()
	*tag(seg) = made.Tag
	return seg, nil
}

func tag(seg *sys.Segment) *uint64 { return (*uint64)(unsafe.Pointer(&seg.Mem[0])) }

// OpenSegment maps the segment that the node's Leader has described in made. The other
// ranks of the node call it.
func OpenSegment(offers []Offer, made *Offer) (*sys.Segment, error) {
	seg, err := sys.OpenSegment(int(made.PID), int(made.FD))
	if err != nil {
		return nil, err
	}
	if len(seg.Mem) < tagBytes || *tag(seg) != made.Tag {
		seg.Close()
		return nil, fmt.Errorf("descriptor %d of process %d is not the segment that was made", made.FD, made.PID)
	}
	if err := seg.Align(Alignment(offers)); err != nil {
		seg.Close()
		return nil, err
	}
	return seg, nil
}

// CanCopy reports whether this process may read the memory of all ranks that it does
// not reach by a network. It tries, with each of them until it has succeeded once.
func (m *RMA) CanCopy(offers []Offer, world []int) bool {
	for i := range offers {
		if world[i] == m.eng.Rank || m.eng.Remote(world[i]) {
			continue
		}
		if _, caps := m.eng.Transport(world[i]); !caps.OneSided {
			return false
		}
		if _, known := m.readable.Load(world[i]); known {
			continue
		}
		var got uint64
		if _, err := m.eng.Get(world[i], unsafe.Pointer(&got), fabric.RemoteKey{Addr: offers[i].Probe}, 8, 0); err != nil || got != probe {
			return false
		}
		m.readable.Store(world[i], true)
	}
	return true
}

// Register registers this rank's part of a window with the network, if there is one
// that reads and writes memory, and completes the offer. offers are those of all ranks,
// seg is from CreateSegment or OpenSegment. It returns nil if the part can't be
// registered: then messages serve it.
func (m *RMA) Register(mine *Offer, rank int, world []int, offers []Offer, seg *sys.Segment) fabric.Region {
	net := m.eng.Net()
	if net == nil || !net.Caps().OneSided || mine.Bytes == 0 || m.eng.AllLocal(world) {
		return nil
	}
	var at unsafe.Pointer
	switch Flavor(mine.Flavor) {
	case FlavorDynamic:
		return nil
	case FlavorCreate:
		at = fabric.Pointer(mine.Addr)
	default:
		at = unsafe.Pointer(&seg.Mem[newLayout(offers, int(mine.Node)).data[rank]])
	}
	region, err := net.Register(at, int(mine.Bytes))
	if err != nil {
		log.Infof("rma", "%d bytes can't be registered with %s, so that messages serve this window: %v", mine.Bytes, net.Name(), err)
		return nil
	}
	mine.Keyed, mine.Key, mine.Skew = 1, region.Key(), int64(uintptr(at)%8)
	return region
}
