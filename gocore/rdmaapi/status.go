package rdmaapi

import (
	"sync"
	"time"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/rdmaapi/transfer"
	"gormapy/gocore/sys"
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

// WakerOpen makes a waker, which informs an event loop of transfers that have ended.
func WakerOpen() (h int64) {
	const op = "await"
	defer contain(op, &h)
	w, err := sys.NewWaker()
	if err != nil {
		return code(refuse("EMFILE", op, nil, "make an eventfd: %v", err))
	}
	n, e := add("Waker", w, w.Close, op)
	if e != nil {
		_ = w.Close()
		return code(e)
	}
	return n.handle
}

// WakerFD returns the descriptor of a waker.
func WakerFD(h int64) int64 {
	w, _, e := get[*sys.Waker](h, "Waker", "await")
	if e != nil {
		return code(e)
	}
	return int64(w.FD())
}

// WakerWatch adds a transfer to those whose end a waker signals.
func WakerWatch(h, status int64) (c int64) {
	const op = "await"
	defer contain(op, &c)
	w, _, e := get[*sys.Waker](h, "Waker", op)
	if e != nil {
		return code(e)
	}
	s := findStatus(status)
	if s == nil {
		w.Notify(status)
		return 0
	}
	s.OnDone(func() { w.Notify(status) })
	return 0
}

// WakerTake writes the numbers of at most n statuses that have ended to addr and
// returns how many. If fewer than n, the descriptor is not readable any more.
func WakerTake(h, addr, n int64) (c int64) {
	const op = "await"
	defer contain(op, &c)
	w, _, e := get[*sys.Waker](h, "Waker", op)
	if e == nil {
		e = limit(op, "n", n, 1, maxPerPoll)
	}
	if e != nil {
		return code(e)
	}
	out := unsafe.Slice((*int64)(fabric.Pointer(uint64(addr))), int(n))
	return int64(w.Take(out))
}
