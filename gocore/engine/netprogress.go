package engine

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/log"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// # Network progress
//
// Peers on this host ring a doorbell; a network does not. So a process that has a
// network transport has a second progress engine, which polls the network while no
// thread of the program does:
//
//   - While threads poll by themselves, it naps. It checks again after napTime, or
//     at once when one of them goes to sleep.
//   - Otherwise it arms the transport's descriptor, polls once more, and blocks on
//     the descriptor. It delivers what arrives, which wakes the sleeping threads. If
//     another thread polls meanwhile and finds something, it wakes the progress engine,
//     which arms again: that thread may have taken what the descriptor would have
//     signalled.
//   - If the transport has no descriptor (Caps.Manual, as EFA), it polls and naps,
//     twice as long each time up to napTime.
//
// When a thread leaves its wait to compute, the first message that follows is delayed
// by up to napTime; those after it find the descriptor armed.

const (
	napTime = time.Millisecond
	napMin  = 20 * time.Microsecond
)

// startNetProgress starts the progress engine of the network; stop ends it.
func (e *Engine) startNetProgress() (stop func(), err error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	e.rearm.wake = wake
	done := make(chan struct{})
	go func() {
		defer close(done)
		guarded("progress engine of the network", func() { e.serveNet(wake) })
	}()
	return func() {
		e.netEnds.Store(true)
		e.rearm.ring()
		e.endNap()
		<-done
		e.rearm.mu.Lock()
		defer e.rearm.mu.Unlock()
		unix.Close(wake)
		e.rearm.wake = -1
	}, nil
}

// rearm lets other threads wake the progress engine of the network.
type rearm struct {
	armed atomic.Bool // the progress engine may block on the transport's descriptor
	mu    sync.Mutex
	wake  int // eventfd, -1 when it has ended
}

func (r *rearm) ring() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := [8]byte{1}; r.wake >= 0 {
		_, _ = unix.Write(r.wake, one[:])
	}
}

// polled is called by a thread that has polled and found something.
func (r *rearm) polled() {
	if r.armed.Load() && r.armed.Swap(false) {
		r.ring()
	}
}

// nap sleeps for t, napTime at most, or until endNap is called.
func (e *Engine) nap(t time.Duration) {
	word := atom.Load32(&e.napWord)
	e.napping.Store(true)
	if !e.netEnds.Load() {
		atom.Nap(&e.napWord, word, t)
	}
	e.napping.Store(false)
}

// endNap ends the nap. A thread calls it before it sleeps, so that the progress engine
// delivers what arrives and wakes the thread.
func (e *Engine) endNap() {
	if e.napping.Load() {
		atom.Add32(&e.napWord, 1)
		atom.Wake(&e.napWord)
	}
}

// othersPoll reports whether a thread of the program polls at the moment.
func (e *Engine) othersPoll() bool {
	return int32(atom.Load32(&e.me.Pollers)-atom.Load32(&e.me.Sleepers)) > 0
}

// serveNet is the loop of the progress engine of the network.
func (e *Engine) serveNet(wake int) {
	runtime.LockOSThread()
	sys.ShortSlice()
	sleeper, _ := e.net.(fabric.Sleeper)
	pause := napMin
	for !e.netEnds.Load() {
		if e.othersPoll() {
			e.nap(napTime)
			continue
		}
		if sleeper == nil {
			if e.pollSure(0) > 0 {
				pause = napMin
				atom.Yield()
				continue
			}
			e.nap(pause)
			pause = min(2*pause, napTime)
			continue
		}
		var err error
		e.Exclude(func() {
			err = sleeper.Arm()
			e.rearm.armed.Store(true)
		})
		if err != nil {
			log.Debugf("engine", "%s can't wait for arrivals, it is polled: %v", e.net.Name(), err)
			sleeper = nil
			continue
		}
		if e.pollAlone() > 0 {
			atom.Yield()
			continue
		}
		limit := 1000
		if e.pressing.Load() > 0 {
			limit = 1
		}
		fds := []unix.PollFd{{Fd: int32(sleeper.FD()), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, limit); err != nil && err != unix.EINTR {
			log.Debugf("engine", "wait for arrivals: %v", err) // the kernel may have no memory just now
			e.nap(napTime)
		}
		if fds[1].Revents != 0 {
			var count [8]byte
			_, _ = unix.Read(wake, count[:])
		}
		if !e.othersPoll() {
			e.pollAlone()
		}
	}
}

// pollAlone is pollSure without waking the progress engine of the network, which calls
// it.
func (e *Engine) pollAlone() int {
	e.takePolling()
	return e.pollLocked(0)
}

// Disconnect tells the peers that are reached by the network that this process sends nothing
// more. Disconnected reports, after that, whether all of them have received everything that was
// sent to them, or never will.
func (e *Engine) Disconnect() {
	if d, ok := e.net.(fabric.Disconnecter); ok && !e.closed.Load() {
		d.Disconnect()
	}
}

// Disconnected reports whether the network can be closed without a loss, see Disconnect.
func (e *Engine) Disconnected() bool {
	d, ok := e.net.(fabric.Disconnecter)
	if !ok || e.closed.Load() {
		return true
	}
	for r := range e.Size {
		if e.peers[r].remote && !d.Disconnected(r) && !e.Gone(r) {
			return false
		}
	}
	return true
}

// CloseNet closes the network's connections. The caller has made sure that all
// messages have left this process (see Disconnect), and starts no operation any more.
func (e *Engine) CloseNet() {
	if e.net == nil || e.closed.Swap(true) {
		return
	}
	if e.stopNetProgress != nil {
		e.stopNetProgress()
	}
	e.Exclude(func() {
		e.transports = slices.DeleteFunc(slices.Clone(e.transports), func(t fabric.Transport) bool { return t == e.net })
		if err := e.net.Close(); err != nil {
			log.Debugf("engine", "close %s: %v", e.net.Name(), err)
		}
	})
}
