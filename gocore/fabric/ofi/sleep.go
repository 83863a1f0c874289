//go:build cgo

package ofi

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
)

// retry is how long a sleeper sleeps before it polls for events that no descriptor
// reports: new room at the provider, connections that it makes, cards.
const retry = time.Millisecond

// sleeper is a transport whose provider has FI_WAIT_FD. Its descriptor is an epoll set of
// the provider's descriptor and a timer. The timer serves when the provider refuses to be
// waited for, and for retries.
type sleeper struct {
	*transport
	set, timer int
	armed      bool      // the timer is set; owned by the thread that polls or arms
	tryAt      time.Time // when the timer fires for a retry; zero: it fires at once
}

var _ fabric.Sleeper = (*sleeper)(nil)

func newSleeper(t *transport) (s *sleeper, err error) {
	s = &sleeper{transport: t, set: -1, timer: -1}
	defer func() {
		if err != nil {
			s.closeFDs()
		}
	}()
	if s.set, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make an epoll set: %w", err)
	}
	if s.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	for _, fd := range []int{s.timer, t.cq.FD} {
		if err = unix.EpollCtl(s.set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return nil, fmt.Errorf("add a descriptor to an epoll set: %w", err)
		}
	}
	return s, nil
}

func (s *sleeper) closeFDs() {
	for _, fd := range []int{s.set, s.timer} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	s.set, s.timer = -1, -1
}

// FD implements fabric.Sleeper.
func (s *sleeper) FD() int { return s.set }

// Arm implements fabric.Sleeper.
func (s *sleeper) Arm() error {
	if err := s.net.TryWait(s.cq); err != nil {
		return s.setTimer(1) // there is a completion already: fire at once
	}
	if s.again.Swap(false) || s.work.Load() {
		return s.setTimer(retry)
	}
	return s.setTimer(0)
}

func (s *sleeper) setTimer(after time.Duration) error {
	if after == 0 && !s.armed {
		return nil
	}
	s.armed, s.tryAt = after != 0, time.Time{}
	if after == retry {
		s.tryAt = time.Now().Add(retry)
	}
	when := unix.ItimerSpec{Value: unix.NsecToTimespec(after.Nanoseconds())}
	if err := unix.TimerfdSettime(s.timer, 0, &when, nil); err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	return nil
}

// Poll implements fabric.Transport.
func (s *sleeper) Poll(sink fabric.Sink) int {
	n := s.transport.Poll(sink)
	// A timer for a retry is not stopped before it has fired: a thread that arms polls
	// once more before it sleeps, and the work to retry is still there.
	if s.armed && (s.tryAt.IsZero() || n > 0 && time.Now().After(s.tryAt)) {
		_ = s.setTimer(0) // this also clears an expiry
	}
	return n
}

// Close implements fabric.Transport.
func (s *sleeper) Close() error {
	closed := s.set < 0
	err := s.transport.Close()
	if !closed {
		s.closeFDs()
	}
	return err
}
