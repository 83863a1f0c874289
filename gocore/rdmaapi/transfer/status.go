package transfer

import (
	"fmt"
	"sync"
	"time"
)

// Code is the state or result of a transfer, numbered as in MORI-IO.
type Code int32

// The codes.
const (
	Success     Code = 0
	Init        Code = 1 // waits for a connection, or for room
	InProgress  Code = 2
	InvalidArgs Code = 11
	NotFound    Code = 12
	RDMAOp      Code = 13 // the device, the connection or the peer failed
	BadState    Code = 14 // an object that the transfer needs is closed
)

// Failed reports whether c is an error.
func (c Code) Failed() bool { return c >= InvalidArgs }

// Done reports whether c is final.
func (c Code) Done() bool { return c != Init && c != InProgress }

// Status is the status of a transfer. It is safe for concurrent use.
type Status struct {
	mu     sync.Mutex
	code   Code
	text   string
	done   chan struct{} // made by the first Wait that waits; closed at the end
	onDone []func()
}

// Failure returns the status of a transfer that failed before it began.
func Failure(code Code, format string, args ...any) *Status {
	return &Status{code: code, text: fmt.Sprintf(format, args...)}
}

// Get returns code and text.
func (s *Status) Get() (Code, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.code, s.text
}

func (s *Status) started() {
	s.mu.Lock()
	if s.code == Init {
		s.code = InProgress
	}
	s.mu.Unlock()
}

func (s *Status) settle(code Code, text string) {
	s.mu.Lock()
	if s.code.Done() {
		s.mu.Unlock()
		return
	}
	s.code, s.text = code, text
	if s.done != nil {
		close(s.done)
	}
	onDone := s.onDone
	s.onDone = nil
	s.mu.Unlock()
	for _, f := range onDone {
		f()
	}
}

// OnDone calls f when the transfer ends, at once if it has ended.
func (s *Status) OnDone(f func()) {
	s.mu.Lock()
	if !s.code.Done() {
		s.onDone = append(s.onDone, f)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	f()
}

// Wait waits, at most d, and reports whether the transfer has ended.
func (s *Status) Wait(d time.Duration) bool {
	s.mu.Lock()
	if s.code.Done() {
		s.mu.Unlock()
		return true
	}
	if d <= 0 {
		s.mu.Unlock()
		return false
	}
	if s.done == nil {
		s.done = make(chan struct{})
	}
	done := s.done
	s.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
