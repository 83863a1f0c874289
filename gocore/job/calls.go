package job

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Call identifies, in wait records, a call that may wait.
type Call uint32

// The calls that publish a wait record.
const (
	CallNone Call = iota
	CallSend
	CallRecv
	CallProbe
	CallWait
	CallBarrier
	CallCollective
	CallFence
	CallLock
	CallFlush
	CallUnlock
	CallWinFree
	CallFinalize
	CallReset
	CallCommCreate
	CallWinCreate
	CallStart
	CallComplete
	CallExposed
	CallWord
	CallFile
	CallNotified
	CallRecvObject
)

var callNames = [...]string{"-", "Send", "Recv", "Probe", "Wait", "Barrier", "collective", "Win.Fence", "Win.Lock",
	"Win.Flush", "Win.Unlock", "Win.Free", "Finalize", "reset", "communicator creation", "window creation", "Win.Start", "Win.Complete", "Win.Wait", "slots",
	"a call of a file", "win_notified", "recv"}

func (c Call) String() string {
	if int(c) < len(callNames) {
		return callNames[c]
	}
	return fmt.Sprintf("call %d", uint32(c))
}

// Waiting reports whether a thread of the rank waits in a call for other ranks of the job, and not for a time that is over by itself.
func (rk *Rank) Waiting() bool {
	if atomic.LoadUint32(&rk.State) != StateReady {
		return false
	}
	for i := range rk.Waits {
		w := &rk.Waits[i]
		if atomic.LoadUint32(&w.Seq)&1 == 0 {
			continue
		}
		switch Call(atomic.LoadUint32(&w.Call)) {
		case CallNotified, CallWord, CallFile, CallCommCreate: // the last one may be an Accept, which waits for other jobs
		default:
			return true
		}
	}
	return false
}

// Describe returns the state of rank r as text for time-out and deadlock reports: one
// line for each wait in progress, or a single line if there is none.
func (s *Segment) Describe(r int) []string {
	rk := &s.Ranks[r]
	if atomic.LoadUint32(&rk.Exit) != 0 {
		return []string{fmt.Sprintf("rank %d: ended (%s)", r, StatusText(int(rk.ExitStatus)))}
	}
	switch atomic.LoadUint32(&rk.State) {
	case StateNone:
		return []string{fmt.Sprintf("rank %d (pid %d): has not initialised MPI", r, atomic.LoadUint32(&rk.ChildPID))}
	case StateClaimed:
		return []string{fmt.Sprintf("rank %d (pid %d): initialising", r, rk.PID())}
	case StateFinalized:
		return []string{fmt.Sprintf("rank %d (pid %d): finalized", r, rk.PID())}
	}
	var out []string
	for i := range rk.Waits {
		w := &rk.Waits[i]
		if atomic.LoadUint32(&w.Seq)&1 == 0 {
			continue
		}
		line := fmt.Sprintf("rank %d (pid %d): in %v", r, rk.PID(), Call(w.Call))
		if info := strings.TrimRight(string(w.Info[:]), "\x00"); info != "" {
			line += " on " + info
		}
		switch {
		case int(w.Peer) >= len(s.Ranks):
			line += ", waiting for a process of another job"
		case w.Peer >= 0:
			line += fmt.Sprintf(", waiting for rank %d", w.Peer)
		case w.Peer == -1:
			line += ", waiting for any rank"
		}
		if w.Tag >= 0 {
			line += fmt.Sprintf(", tag %d", w.Tag)
		}
		out = append(out, fmt.Sprintf("%s, for %.1f s", line, time.Duration(Now()-w.Since).Seconds()))
	}
	if out == nil {
		out = []string{fmt.Sprintf("rank %d (pid %d): running, in no MPI call", r, rk.PID())}
	}
	return out
}

// EndText returns how a process ended, from its wait status, as a clause.
func EndText(ws unix.WaitStatus) string {
	if ws.Signaled() {
		return "was killed by " + SignalText(ws.Signal())
	}
	return fmt.Sprintf("ended with exit status %d", ws.ExitStatus())
}

// SignalText returns the number and the name of a signal.
func SignalText(sig unix.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return fmt.Sprintf("signal %d (%s)", int(sig), name)
	}
	return fmt.Sprintf("signal %d", int(sig))
}

// StatusText returns a description of how a process ended, from its wait status.
func StatusText(ws int) string {
	st := unix.WaitStatus(ws)
	if st.Signaled() {
		return fmt.Sprintf("killed by signal %d, %s", int(st.Signal()), unix.SignalName(st.Signal()))
	}
	return fmt.Sprintf("exit status %d", st.ExitStatus())
}
