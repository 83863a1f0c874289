package rdmaapi

import (
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/rdmaapi/transfer"
)

// statuses are those of all transfers whose fate Python has not seen. A number is
// index | generation<<32.
var statuses struct {
	sync.RWMutex
	slots []statusSlot
	free  []int32
}

type statusSlot struct {
	status *transfer.Status
	gen    int64
}

func keepStatus(s *transfer.Status) int64 {
	statuses.Lock()
	defer statuses.Unlock()
	if len(statuses.slots) == 0 {
		statuses.slots = make([]statusSlot, 1) // 0 is no number
	}
	i := int32(len(statuses.slots))
	if f := len(statuses.free); f > 0 {
		i = statuses.free[f-1]
		statuses.free = statuses.free[:f-1]
	} else {
		statuses.slots = append(statuses.slots, statusSlot{})
	}
	slot := &statuses.slots[i]
	slot.gen = (slot.gen + 1) & 0x3fffffff
	slot.status = s
	return int64(i) | slot.gen<<32
}

func findStatus(h int64) *transfer.Status {
	statuses.RLock()
	defer statuses.RUnlock()
	i := h & 0xffffffff
	if h <= 0 || i >= int64(len(statuses.slots)) || statuses.slots[i].gen != h>>32 {
		return nil
	}
	return statuses.slots[i].status
}

// StatusFree forgets a status and returns 0; the transfer goes on.
func StatusFree(h int64) int64 {
	statuses.Lock()
	defer statuses.Unlock()
	i := h & 0xffffffff
	if h <= 0 || i >= int64(len(statuses.slots)) || statuses.slots[i].gen != h>>32 || statuses.slots[i].status == nil {
		return 0
	}
	statuses.slots[i].status = nil
	statuses.free = append(statuses.free, int32(i))
	return 0
}

const noStatus = -1 // of a number that names none

// StatusWait waits some microseconds for a transfer to end, and returns its code.
func StatusWait(h, us int64) int64 {
	s := findStatus(h)
	if s == nil {
		return noStatus
	}
	if us > 0 {
		s.Wait(min(time.Duration(us)*time.Microsecond, longestSlice))
	}
	c, _ := s.Get()
	return int64(c)
}

// StatusText says why a transfer has failed.
func StatusText(h int64) string {
	s := findStatus(h)
	if s == nil {
		return ""
	}
	_, t := s.Get()
	return t
}

// waker tells an event loop, by a descriptor that becomes readable, which
// transfers have ended.
type waker struct {
	mu     sync.Mutex
	fd     int // an eventfd; -1 when closed
	ended  []int64
	signed bool // the descriptor is readable, or will be
}

// WakerOpen makes one.
func WakerOpen() (h int64) {
	const op = "await"
	defer contain(op, &h)
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return code(refuse("EMFILE", op, nil, "make an eventfd: %v", err))
	}
	w := &waker{fd: fd}
	n, e := add("Waker", w, w.close, op)
	if e != nil {
		unix.Close(fd)
		return code(e)
	}
	return n.handle
}

// WakerFD is its descriptor.
func WakerFD(h int64) int64 {
	w, _, e := get[*waker](h, "Waker", "await")
	if e != nil {
		return code(e)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(w.fd)
}

func (w *waker) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fd := w.fd
	w.fd = -1
	return unix.Close(fd)
}

var one = [8]byte{0: 1} // what is written to an eventfd to make it readable

func (w *waker) tell(status int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return
	}
	w.ended = append(w.ended, status)
	if !w.signed {
		w.signed = true
		unix.Write(w.fd, one[:]) //nolint:errcheck // it fails only where it is readable already
	}
}

// WakerWatch has a waker told when a transfer ends.
func WakerWatch(h, status int64) (c int64) {
	const op = "await"
	defer contain(op, &c)
	w, _, e := get[*waker](h, "Waker", op)
	if e != nil {
		return code(e)
	}
	s := findStatus(status)
	if s == nil {
		w.tell(status)
		return 0
	}
	s.Tell(func() { w.tell(status) })
	return 0
}

// WakerTake writes the numbers of at most n statuses that have ended to addr and
// returns how many. If it is fewer than n, the descriptor is not readable any more.
func WakerTake(h, addr, n int64) (c int64) {
	const op = "await"
	defer contain(op, &c)
	w, _, e := get[*waker](h, "Waker", op)
	if e == nil {
		e = limit(op, "n", n, 1, maxPerPoll)
	}
	if e != nil {
		return code(e)
	}
	out := unsafe.Slice((*int64)(fabric.Pointer(uint64(addr))), int(n))
	w.mu.Lock()
	defer w.mu.Unlock()
	got := copy(out, w.ended)
	w.ended = append(w.ended[:0], w.ended[got:]...)
	if len(w.ended) == 0 && w.signed && w.fd >= 0 {
		var b [8]byte
		unix.Read(w.fd, b[:]) //nolint:errcheck // it does not block
		w.signed = false
	}
	return int64(got)
}
