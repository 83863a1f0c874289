//go:build cgo

package ofi

import (
	"errors"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/device"
	"gormapy/gocore/libfabric"
	"gormapy/gocore/rdmaapi/backend"
)

// domain is a protection domain.
type domain struct {
	ctx  *context
	dom  *libfabric.Domain
	wake int // an eventfd: there is a new pair, or the domain is closed
	done chan struct{}

	mu     sync.Mutex
	pairs  map[*pair]struct{}
	number uint32
	latest time.Time // of the last completion
	closed bool
}

// AllocPD is described with backend.Context.
func (c *context) AllocPD() (backend.PD, error) {
	dom, err := c.fabric.OpenDomain(c.Info)
	if err != nil {
		return nil, translate(err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		dom.Close() //nolint:errcheck // there is another error to report
		return nil, err
	}
	d := &domain{ctx: c, dom: dom, wake: wake, done: make(chan struct{}), pairs: map[*pair]struct{}{}}
	go d.drive()
	return d, nil
}

// rouse wakes the goroutine that drives the provider.
func (d *domain) rouse() {
	one := [8]byte{1}
	unix.Write(d.wake, one[:]) //nolint:errcheck // it fails if the counter is full: a wake-up is pending
}

// Close is described with backend.PD.
func (d *domain) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.rouse()
	<-d.done
	unix.Close(d.wake)
	return translate(d.dom.Close())
}

// drive drives the provider until the domain is closed.
func (d *domain) drive() {
	defer close(d.done)
	for {
		d.mu.Lock()
		if d.closed {
			d.mu.Unlock()
			return
		}
		busy := d.progress()
		fds := []unix.PollFd{{Fd: int32(d.wake), Events: unix.POLLIN}}
		sleep := time.Hour
		for p := range d.pairs {
			if p.ep == nil {
				continue
			}
			sleep = idle
			if p.cq.FD < 0 || errors.Is(d.ctx.fabric.TryWait(p.cq), libfabric.EAGAIN) {
				busy = busy || p.cq.FD >= 0
				continue
			}
			fds = append(fds, unix.PollFd{Fd: int32(p.cq.FD), Events: unix.POLLIN})
		}
		if sleep == idle && time.Since(d.latest) < lately {
			sleep = watchful
		}
		d.mu.Unlock()
		if busy {
			continue
		}
		unix.Poll(fds, int(sleep/time.Millisecond)) //nolint:errcheck // an interrupt is a wake-up, too
		if fds[0].Revents != 0 {
			var count [8]byte
			unix.Read(d.wake, count[:]) //nolint:errcheck // it does not block
		}
	}
}

// progress reads all queues, and posts requests that wait. It reports whether anything
// completed. The caller holds mu.
func (d *domain) progress() (busy bool) {
	for p := range d.pairs {
		if p.progress() {
			busy = true
		}
	}
	if busy {
		d.latest = time.Now()
	}
	return busy
}

// region is registered memory.
type region struct {
	d      *domain
	mr     *libfabric.MR
	addr   uint64
	access backend.Access
	closed bool // under domain.mu
}

func (r *region) Addr() uint64           { return r.addr }
func (r *region) LKey() uint32           { return 0 }
func (r *region) RKey() uint64           { return r.mr.Key }
func (r *region) Access() backend.Access { return r.access }

// Close is described with backend.Region. A provider may still use the local memory of
// requests under way, so these end first.
func (r *region) Close() error {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	for p := range r.d.pairs {
		p.withdraw(r)
	}
	r.closed = true
	return translate(r.mr.Close())
}

// Register is described with backend.PD.
func (d *domain) Register(p unsafe.Pointer, n int, access backend.Access) (backend.Region, error) {
	mr, err := d.ctx.Offer.Register(d.dom, nil, uintptr(p), n, device.Access(access))
	if err != nil {
		return nil, translate(err)
	}
	r := &region{d: d, mr: mr, access: access}
	if d.ctx.Info.MRMode&libfabric.MRVirtAddr != 0 {
		r.addr = uint64(uintptr(p))
	}
	return r, nil
}
