//go:build cgo

package ibverbs

// #include "calls.h"
import "C"

import (
	"fmt"
	"sync"
	"syscall"
)

// CompChannel reports by a file descriptor that a completion queue has completions.
type CompChannel struct {
	ctx *Context
	mu  sync.Mutex
	ptr *C.struct_ibv_comp_channel
	fd  int
}

// CreateCompChannel makes a channel. Its descriptor does not block.
func (c *Context) CreateCompChannel() (*CompChannel, error) {
	unlock, err := c.lock("ibv_create_comp_channel")
	if err != nil {
		return nil, err
	}
	defer unlock()
	ch := &CompChannel{ctx: c}
	if errno := C.gmv_create_channel(c.lib.calls, c.ptr, &ch.ptr); errno != 0 {
		return nil, failed("ibv_create_comp_channel", errno, "device %s", c.name)
	}
	ch.fd = int(ch.ptr.fd)
	return ch, nil
}

// FD is readable when there is an event.
func (ch *CompChannel) FD() int { return ch.fd }

// Event takes one event and acknowledges it. It returns false if there is none now.
func (ch *CompChannel) Event() (bool, error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.ptr == nil {
		return false, closed("ibv_get_cq_event", "the completion channel")
	}
	var cq *C.struct_ibv_cq
	errno := C.gmv_cq_event(ch.ctx.lib.calls, ch.ptr, &cq)
	if syscall.Errno(errno) == syscall.EAGAIN {
		return false, nil
	}
	if errno != 0 {
		return false, failed("ibv_get_cq_event", errno, "device %s", ch.ctx.name)
	}
	return true, nil
}

// Close frees the channel.
func (ch *CompChannel) Close() error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.ptr == nil {
		return nil
	}
	if errno := C.gmv_destroy_channel(ch.ctx.lib.calls, ch.ptr); errno != 0 {
		return failed("ibv_destroy_comp_channel", errno, "completion queues are closed before their channel")
	}
	ch.ptr = nil
	return nil
}

// CQ is a completion queue.
type CQ struct {
	ctx *Context
	mu  sync.Mutex
	ptr *C.struct_ibv_cq
	n   int
}

// CreateCQ makes a completion queue of at least depth entries. It reports completions on
// channel if that is not nil.
func (c *Context) CreateCQ(depth int, channel *CompChannel) (*CQ, error) {
	unlock, err := c.lock("ibv_create_cq")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if depth < 1 || depth > 1<<30 {
		return nil, &Error{"ibv_create_cq", syscall.EINVAL, fmt.Sprintf("a queue of %d entries", depth)}
	}
	var ch *C.struct_ibv_comp_channel
	if channel != nil {
		channel.mu.Lock()
		defer channel.mu.Unlock()
		if ch = channel.ptr; ch == nil {
			return nil, closed("ibv_create_cq", "the completion channel")
		}
	}
	q := &CQ{ctx: c}
	if errno := C.gmv_create_cq(c.lib.calls, c.ptr, C.int(depth), ch, &q.ptr); errno != 0 {
		return nil, failed("ibv_create_cq", errno, "%d entries on %s", depth, c.name)
	}
	q.n = int(q.ptr.cqe)
	return q, nil
}

// Depth returns how many completions the queue holds.
func (q *CQ) Depth() int { return q.n }

// Poll takes completions, at most len(wcs), and returns how many there were.
func (q *CQ) Poll(wcs []WC) (int, error) {
	if len(wcs) == 0 {
		return 0, nil
	}
	q.mu.Lock()
	if q.ptr == nil {
		q.mu.Unlock()
		return 0, closed("ibv_poll_cq", "the completion queue")
	}
	n := int(C.gmv_poll(q.ptr, C.int(len(wcs)), (*C.struct_ibv_wc)(ptrOf(&wcs[0]))))
	q.mu.Unlock()
	if n < 0 {
		return 0, failed("ibv_poll_cq", C.int(-n), "device %s", q.ctx.name)
	}
	return n, nil
}

// ReqNotify makes the channel report the next completion.
func (q *CQ) ReqNotify(solicitedOnly bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ptr == nil {
		return closed("ibv_req_notify_cq", "the completion queue")
	}
	only := C.int(0)
	if solicitedOnly {
		only = 1
	}
	if errno := C.gmv_req_notify(q.ptr, only); errno != 0 {
		return failed("ibv_req_notify_cq", errno, "device %s", q.ctx.name)
	}
	return nil
}

// Close frees the queue. Its events must have been taken before.
func (q *CQ) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ptr == nil {
		return nil
	}
	if errno := C.gmv_destroy_cq(q.ctx.lib.calls, q.ptr); errno != 0 {
		return failed("ibv_destroy_cq", errno, "queue pairs are closed before their completion queues")
	}
	q.ptr = nil
	return nil
}
