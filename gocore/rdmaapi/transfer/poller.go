package transfer

import (
	"runtime"
	"sync"
	"time"

	"gormapy/gocore/rdmaapi/backend"
)

// poller takes completions from a queue until it is stopped.
type poller struct {
	cq backend.CQ

	mu      sync.Mutex
	stopped bool
	closed  bool
	ended   chan struct{} // closed when run can't wait any more
	wakers  sync.WaitGroup
}

func newPoller(cq backend.CQ) *poller { return &poller{cq: cq, ended: make(chan struct{})} }

func (p *poller) live() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stopped
}

// stop makes run return soon.
func (p *poller) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.stopped = true
	if p.closed {
		return
	}
	p.wakers.Add(1)
	go func() {
		defer p.wakers.Done()
		for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
			p.cq.Wake() // repeated, since it is lost if run has not begun to wait yet
			select {
			case <-p.ended:
				return
			case <-time.After(pause):
			}
		}
	}()
}

// run calls f with completions. It spins while spin returns true, else it sleeps.
// It returns after stop, or with the error of a queue that has failed.
func (p *poller) run(f func([]backend.Completion), spin func() bool) error {
	var some [128]backend.Completion
	for p.live() {
		n, err := p.cq.Poll(some[:])
		if err != nil {
			return err
		}
		if n > 0 {
			f(some[:n])
			continue
		}
		if spin() {
			runtime.Gosched()
			continue
		}
		if err := p.cq.Wait(time.Hour); err != nil {
			return err
		}
	}
	return nil
}

// drain calls f with all remaining completions, after run has returned.
func (p *poller) drain(f func([]backend.Completion)) {
	var some [128]backend.Completion
	for {
		n, err := p.cq.Poll(some[:])
		if n == 0 || err != nil {
			return
		}
		f(some[:n])
	}
}

// close closes the queue, once run has returned or if it was never called.
func (p *poller) close() {
	p.mu.Lock()
	p.stopped, p.closed = true, true
	p.mu.Unlock()
	close(p.ended)
	p.wakers.Wait()
	p.cq.Close() //nolint:errcheck // nothing can be done about an error
}
