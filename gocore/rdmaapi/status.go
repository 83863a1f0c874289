package rdmaapi

import (
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/rdmaapi/transfer"
)

// statuses has the statuses that Python has not freed. The number of a status is
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
		statuses.slots = make([]statusSlot, 1) // 0 is not the number of a status
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

// StatusFree frees a status and returns 0. Its transfer continues.
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

const noStatus = -1 // the code for the number of no status

// StatusWait waits up to us microseconds for a transfer to end, and returns its code.
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

// StatusText returns why a transfer has failed.
func StatusText(h int64) string {
	s := findStatus(h)
	if s == nil {
		return ""
	}
	_, t := s.Get()
	return t
}

// waker informs an event loop of transfers that have ended: its descriptor becomes
// readable.
type waker struct {
	mu       sync.Mutex
	fd       int     // an eventfd; -1 when closed
	ended    []int64 // numbers of statuses
	signaled bool    // the descriptor is readable
}

// WakerOpen makes a waker.
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

// WakerFD returns the descriptor of a waker.
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

var one = [8]byte{0: 1} // written to an eventfd to make it readable

// notify adds the number of a status that has ended.
func (w *waker) notify(status int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return
	}
	w.ended = append(w.ended, status)
	if !w.signaled {
		w.signaled = true
		unix.Write(w.fd, one[:]) //nolint:errcheck // it fails only if the descriptor is readable already
	}
}

// WakerWatch adds a transfer to those whose end a waker signals.
func WakerWatch(h, status int64) (c int64) {
	const op = "await"
	defer contain(op, &c)
	w, _, e := get[*waker](h, "Waker", op)
	if e != nil {
		return code(e)
	}
	s := findStatus(status)
	if s == nil {
		w.notify(status)
		return 0
	}
	s.OnDone(func() { w.notify(status) })
	return 0
}

// WakerTake writes the numbers of at most n statuses that have ended to addr and
// returns how many. If fewer than n, the descriptor is not readable any more.
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
	if len(w.ended) == 0 && w.signaled && w.fd >= 0 {
		var b [8]byte
		unix.Read(w.fd, b[:]) //nolint:errcheck // it does not block
		w.signaled = false
	}
	return int64(got)
}
