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
	over    bool
	left    chan struct{} // closed when run will not wait any more
	wakers  sync.WaitGroup
}

func newPoller(cq backend.CQ) *poller { return &poller{cq: cq, left: make(chan struct{})} }

func (p *poller) live() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stopped
}

// stop has run return, soon.
func (p *poller) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.stopped = true
	if p.over {
		return
	}
	p.wakers.Add(1)
	go func() {
		defer p.wakers.Done()
		for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
			p.cq.Wake() // which is lost if run was just going to wait
			select {
			case <-p.left:
				return
			case <-time.After(pause):
			}
		}
	}()
}

// run calls f with completions. It spins while spin returns true, else it sleeps.
// An error is that of the queue, after which there are no more.
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

// drain calls f with all completions there are, after run.
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
	p.stopped, p.over = true, true
	p.mu.Unlock()
	close(p.left)
	p.wakers.Wait()
	p.cq.Close() //nolint:errcheck // nothing can be done about it
}
