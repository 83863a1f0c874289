//go:build cgo

package verbs

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/ibverbs"
	"gormapy/gocore/rdmaapi/backend"
)

// spare is how many completions a queue has room for beyond the depth asked for.
const spare = 4096

// queue is a completion queue with a channel. Completions that Wait finds while it arms
// the channel are kept for Poll.
type queue struct {
	cq      *ibverbs.CQ
	channel *ibverbs.CompChannel
	wake    int // an eventfd

	mu    sync.Mutex
	kept  []ibverbs.WC
	batch []ibverbs.WC
}

// CreateCQ is described with backend.Context.
func (c *context) CreateCQ(depth int) (backend.CQ, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	q := &queue{wake: wake, batch: make([]ibverbs.WC, 64)}
	if q.channel, err = c.c.CreateCompChannel(); err != nil {
		unix.Close(wake)
		return nil, translate(err)
	}
	deep := depth + spare
	if c.d.Limits.MaxCQE > 0 {
		deep = max(depth, min(deep, c.d.Limits.MaxCQE))
	}
	if q.cq, err = c.c.CreateCQ(deep, q.channel); err != nil {
		q.channel.Close() //nolint:errcheck // there is another error to report
		unix.Close(wake)
		return nil, translate(err)
	}
	return q, nil
}

// Poll is described with backend.CQ.
func (q *queue) Poll(out []backend.Completion) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := min(len(q.kept), len(out)); n > 0 {
		for i := range q.kept[:n] {
			complete(&q.kept[i], &out[i])
		}
		q.kept = q.kept[n:]
		return n, nil
	}
	n, err := q.cq.Poll(q.batch[:min(len(q.batch), len(out))])
	if err != nil {
		return 0, translate(err)
	}
	for i := range q.batch[:n] {
		complete(&q.batch[i], &out[i])
	}
	return n, nil
}

func complete(w *ibverbs.WC, c *backend.Completion) {
	*c = backend.Completion{Cookie: w.ID, Status: backend.Status(w.Status)}
	if w.Status != ibverbs.Success {
		return
	}
	if w.Opcode == ibverbs.WCRecv || w.Opcode == ibverbs.WCRecvRDMAWI {
		c.Recv, c.Write, c.N = true, w.Opcode == ibverbs.WCRecvRDMAWI, int(w.Bytes)
		c.Imm, c.HasImm = w.Imm()
	}
}

// Wait is described with backend.CQ.
func (q *queue) Wait(d time.Duration) error {
	if found, err := q.arm(); found || err != nil {
		return err
	}
	fds := []unix.PollFd{{Fd: int32(q.channel.FD()), Events: unix.POLLIN}, {Fd: int32(q.wake), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, int((d+time.Millisecond-1)/time.Millisecond))
	if n <= 0 || err != nil {
		return nil // interrupted, or the time is up
	}
	if fds[1].Revents != 0 {
		var count [8]byte
		unix.Read(q.wake, count[:]) //nolint:errcheck // another Wait may have read it
	}
	if fds[0].Revents != 0 {
		if _, err := q.channel.Event(); err != nil {
			return translate(err)
		}
	}
	return nil
}

// arm makes the channel report completions from now on, and reports whether some came
// before.
func (q *queue) arm() (found bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.kept) > 0 {
		return true, nil
	}
	if err := q.cq.ReqNotify(false); err != nil {
		return false, translate(err)
	}
	n, err := q.cq.Poll(q.batch)
	if err != nil {
		return false, translate(err)
	}
	q.kept = append(q.kept[:0:0], q.batch[:n]...)
	return n > 0, nil
}

// Wake is described with backend.CQ.
func (q *queue) Wake() {
	one := [8]byte{1}
	unix.Write(q.wake, one[:]) //nolint:errcheck // it fails if the counter is full: a wake-up is pending
}

// Close is described with backend.CQ.
func (q *queue) Close() error {
	for {
		if more, err := q.channel.Event(); !more || err != nil {
			break
		}
	}
	err := q.cq.Close()
	if e := q.channel.Close(); err == nil {
		err = e
	}
	unix.Close(q.wake)
	return translate(err)
}
