package engine

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/sys"
)

// verdictTime is how long, after a peer's process has ended, this rank waits for
// the launcher to decide whether that ends the job, before its own calls fail.
// Without it every rank would print an error of its own when one of them fails.
// The launcher decides at once, but on a busy machine it may not run for a while.
// If the launcher has died, this rank ends for that reason.
const verdictTime = 5 * time.Second

// stayTime is that of a rank that has finalized. Its process may stay for a long time, as its
// node's agent.
const stayTime = 200 * time.Millisecond

// OnNodeChange sets the function that the watcher calls, from one thread at a time, when a
// process of this node has ended, or the state of a rank may have changed. In a job on one node it is not called.
func (e *Engine) OnNodeChange(f func()) { e.onNodeChange = f }

// OnGone adds a function that the watcher calls when a rank is gone. It must be called before Start.
func (e *Engine) OnGone(f func(rank int)) { e.onGone = append(e.onGone, f) }

// OnEnd sets the function that is called when the process of another rank has ended, before
// calls fail for that reason. It must be called before Start.
func (e *Engine) OnEnd(f func(rank int)) { e.onEnd = f }

// Gone reports whether rank r has ended and will never answer again. It returns false
// while the job is being stopped because of that end: this process is about to
// be stopped too, and the failed rank's message is the one to be seen.
func (e *Engine) Gone(r int) bool {
	if e.gone[r].Load() != 0 {
		return true
	}
	if !e.exited(r) || !e.Drained(r) {
		return false
	}
	e.setGone(r)
	return true
}

func (e *Engine) setGone(r int) {
	if e.gone[r].CompareAndSwap(0, 1) {
		e.ends.Add(1)
	}
}

// Ends counts the ranks of which it is known that they are Gone.
func (e *Engine) Ends() uint32 { return e.ends.Load() }

// HowEnded returns a description of the end of rank r, false if its process has not ended and its host has not left the job. What
// the rank has sent may still arrive, and the launcher may stop this process because of that end: see Gone.
func (e *Engine) HowEnded(r int) (how string, ended bool) {
	rk := e.Job.Rank(r)
	if r == e.Rank || e.gone[r].Load() == 0 && atomic.LoadUint32(&rk.Ended) == 0 && atomic.LoadUint32(&rk.Exit) == 0 && !e.unreachable(r) {
		return "", false
	}
	return e.HowGone(r), true
}

// exited reports whether rank r has exited and the job is not being stopped. A process of another job that has finalized
// counts as one that has exited: it may wait for the end of this process, which it has spawned.
func (e *Engine) exited(r int) bool {
	if !e.Job.Own(r) && e.Finalized(r) {
		return true
	}
	if atomic.LoadUint32(&e.Job.Rank(r).Exit) == 0 {
		return false
	}
	_, _, aborted := e.Job.Aborted()
	return !aborted // the watcher sets gone if this process is not stopped
}

// Drained reports whether everything that rank r has sent to this one has been delivered. If its process has not ended, that is
// what it had sent when the caller learnt something from it.
func (e *Engine) Drained(r int) bool {
	if e.unreachable(r) {
		return true
	}
	d, ok := e.peers[r].via.(fabric.Drainer)
	return !ok || d.Drained(r)
}

// unreachable reports whether the host of rank r has left the job.
func (e *Engine) unreachable(r int) bool {
	return atomic.LoadUint32(&e.Job.Rank(r).Flags)&job.Unreachable != 0
}

// AwaitVerdict waits until rank r, whose process has ended, is Gone: a call that has found
// the end by itself does not fail before the launcher has decided whether that ends the job.
// That takes milliseconds. It may be called under the poll lock, so it does not wait until
// the rank's last messages have been delivered.
func (e *Engine) AwaitVerdict(r int) {
	for end := time.Now().Add(VerdictLimit); !e.Judged(r) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// VerdictLimit is how long a call that has found the end of a rank waits for the launcher's verdict.
const VerdictLimit = 3 * verdictTime

// Judged reports whether AwaitVerdict would not wait.
func (e *Engine) Judged(r int) bool {
	return e.gone[r].Load() != 0 || e.exited(r) || e.judged[r].Load() != 0 || e.stop.Load()
}

// Lost reports whether rank r is gone or the connection to it has broken. In the second
// case it will be Gone soon.
func (e *Engine) Lost(r int) bool {
	return e.Gone(r) || e.peers[r].lost.Load() != nil && !e.Finalized(r)
}

// HowGone returns a description of the end of rank r for an error message.
func (e *Engine) HowGone(r int) string {
	rk := e.Job.Rank(r)
	s := e.Name(r)
	if why := e.peers[r].lost.Load(); why != nil && atomic.LoadUint32(&rk.Exit) == 0 && !e.Finalized(r) {
		return fmt.Sprintf("the connection to %s is lost: %s", s, *why)
	}
	if pid := rk.PID(); pid != 0 {
		s += fmt.Sprintf(" (pid %d)", pid)
	}
	switch {
	case atomic.LoadUint32(&rk.Exit) != 0:
		ws := unix.WaitStatus(rk.ExitStatus)
		if !ws.Signaled() {
			s += " has"
		}
		return s + " " + job.EndText(ws)
	case rk.LostToForgery():
		return s + job.LostToForgeryText
	case atomic.LoadUint32(&rk.Flags)&job.Unreachable != 0:
		return s + " can't be reached any more: its host has left the job"
	case atomic.LoadUint32(&rk.State) == job.StateFinalized:
		return s + " has ended (finalized)"
	}
	return s + " has ended without finalizing"
}

// lostTime is how long the engine waits, after a connection broke, for news that the
// rank has ended: that makes a better message than a broken connection.
const lostTime = time.Second

// Broken implements fabric.Sink. A rank that closes its connections because it has
// finalized is not lost.
func (e *Engine) Broken(rank int, err error) {
	defer e.contain("the end of a connection")
	text := err.Error()
	if errors.Is(err, fabric.ErrDisconnected) {
		log.Debugf("engine", "%s", text)
		return
	}
	if rank == e.Rank || !e.peers[rank].lost.CompareAndSwap(nil, &text) {
		return
	}
	log.Debugf("engine", "connection to %s: %s", e.Name(rank), text)
	go guarded("watcher of peers", func() {
		rk := e.Job.Rank(rank)
		for until := time.Now().Add(lostTime); time.Now().Before(until); time.Sleep(time.Millisecond) {
			if e.stop.Load() || e.gone[rank].Load() != 0 || atomic.LoadUint32(&rk.Exit) != 0 || e.Finalized(rank) {
				return // the watcher reports it
			}
		}
		e.NoteGone(rank)
	})
}

// drainTime is how long the watcher waits for the last messages of a rank whose process has
// ended: the end of its connection may be late, or be lost.
const drainTime = 10 * time.Second

// awaitDrained waits until the last messages of a rank whose process has ended are delivered.
func (e *Engine) awaitDrained(rank int) {
	for until := time.Now().Add(drainTime); !e.Drained(rank) && !e.stop.Load() && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
		e.pollSure(0)
	}
}

// NoteGone records that a rank will never answer again, and wakes the threads that
// wait for it. The watcher calls it; a simulation has no watcher and calls it itself.
// A rank whose host has left the job may live. Others take over what it held, so nothing that
// it sends may arrive any more.
func (e *Engine) NoteGone(rank int) {
	log.Infof("engine", "%s", e.HowGone(rank))
	if d, ok := e.peers[rank].via.(fabric.Disconnecter); ok && e.unreachable(rank) {
		e.Exclude(func() {
			if !e.closed.Load() {
				d.Cut(rank)
			}
		})
	}
	e.setGone(rank)
	for _, f := range e.onGone {
		f(rank)
	}
	e.me.Ring()
}

// lookEvery is how often the watcher checks a process for which it has no pidfd.
const lookEvery = 200 * time.Millisecond

// watch starts the watcher, which detects the end of peers and of the launcher by
// pidfds, or by periodic checks where it can't have any: on old kernels, and while the
// process has no descriptors left.
func (e *Engine) watch() error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("make eventfd: %w", err)
	}
	var wake atomic.Int32 // -1: the program has closed it
	wake.Store(int32(fd))
	done := make(chan struct{})
	go func() {
		defer close(done)
		guarded("watcher of peers", func() { e.watchLoop(&wake) })
	}()
	farDone := make(chan struct{})
	go func() {
		defer close(farDone)
		guarded("watcher of ranks on other nodes", e.watchFar)
	}()
	e.stopWatch = func() {
		e.Job.RingRanks() // ends watchFar
		<-farDone
		if fd := wake.Load(); fd >= 0 {
			one := [8]byte{1}
			_, _ = unix.Write(int(fd), one[:])
		}
		<-done
		if fd := wake.Load(); fd >= 0 {
			unix.Close(int(fd))
		}
	}
	return nil
}

// watched is a process whose end the watcher detects.
type watched struct {
	rank      int // -1: the launcher
	pid       int
	startTime uint64 // 0: not known
	fd        int    // pidfd; -1: there is none now
}

// look reports whether the process has ended. If it lives and has no pidfd, look opens
// one if it can.
func (w *watched) look() (ended bool) {
	if w.fd >= 0 {
		return sys.Look(w.pid, w.startTime) == sys.Ended
	}
	fd, ok, err := sys.PidFD(w.pid)
	life := sys.Look(w.pid, w.startTime) // after it was opened: so it is that process's
	switch {
	case !ok || err != nil:
	case life == sys.Living:
		w.fd = fd
	default:
		unix.Close(fd)
	}
	return life == sys.Ended
}

// polled handles the events that poll returned for the pidfd, and reports whether the
// process has ended. That the descriptor is readable is not enough: the program may
// have closed it, and its number may be another file's. In that case, and if it is
// closed, look opens another one, and this one is not closed here.
func (w *watched) polled(events int16) (ended bool) {
	switch {
	case events == 0:
		return false
	case events&unix.POLLNVAL == 0:
		switch sys.Look(w.pid, w.startTime) {
		case sys.Ended:
			return true
		case sys.Unknown:
			return false
		}
	}
	w.fd = -1
	return false
}

// watchFar notices the end of ranks on other nodes, of which the agent tells, or the launcher.
// A rank of this node that stays as its agent only says so itself.
func (e *Engine) watchFar() {
	if e.Job.Nodes() == 1 {
		return
	}
	known := make([]bool, e.Size)
	for news := uint32(0); !e.stop.Load(); news = e.Job.AwaitNews(news) {
		for r := range known {
			if !known[r] && r != e.Rank && (!e.Job.Local(r) || e.Finalized(r)) && atomic.LoadUint32(&e.Job.Ranks[r].Ended) != 0 {
				known[r] = true
				e.ended(r, func() {})
			}
		}
		if e.onNodeChange != nil {
			e.onNodeChange()
		}
	}
}

func (e *Engine) watchLoop(wake *atomic.Int32) {
	var list []watched
	known := make([]bool, e.Size)
	defer func() {
		for _, w := range list {
			if w.fd >= 0 {
				unix.Close(w.fd)
			}
		}
	}()
	if launcher := int(e.Job.Head.LauncherPID); launcher != 0 {
		list = append(list, watched{-1, launcher, e.Job.Head.LauncherStartTime, -1})
	}
	missing := -1
	for r := range known {
		known[r] = r == e.Rank || !e.Job.Local(r)
		if e.Job.Local(r) {
			missing++
		}
	}
	for !e.stop.Load() {
		// Ranks are claimed one by one. A claim is seen within 100 ms, which is soon
		// enough: until then only the launcher acts on the end of a rank.
		for r := range known {
			rk := &e.Job.Ranks[r]
			switch {
			case known[r]:
			case atomic.LoadUint32(&rk.State) != job.StateNone:
				known[r] = true
				missing--
				list = append(list, watched{r, rk.PID(), rk.StartTime, -1})
			}
		}
		list = e.drop(list, func(w *watched) bool { return w.fd < 0 && w.look() })
		fds := make([]unix.PollFd, 1, len(list)+1)
		fds[0] = unix.PollFd{Fd: wake.Load(), Events: unix.POLLIN}
		timeout := time.Duration(-1)
		if wake.Load() < 0 {
			timeout = lookEvery
		}
		for _, w := range list {
			fds = append(fds, unix.PollFd{Fd: int32(w.fd), Events: unix.POLLIN})
			if w.fd < 0 {
				timeout = lookEvery
			}
		}
		if missing > 0 {
			timeout = lookEvery / 2
		}
		switch _, err := unix.Poll(fds, milliseconds(timeout)); {
		case err == unix.EINTR:
			continue
		case err != nil: // more descriptors than the process may have by now, or no memory
			time.Sleep(lookEvery)
			list = e.drop(list, (*watched).look)
			continue
		}
		if fds[0].Revents != 0 && !e.stop.Load() {
			wake.Store(-1) // Stop has not written to it: the number is another file's now
		}
		i, unsure := 0, false
		list = e.drop(list, func(w *watched) bool {
			i++
			ended := w.polled(fds[i].Revents)
			unsure = unsure || !ended && w.fd >= 0 && fds[i].Revents != 0
			return ended
		})
		if unsure {
			time.Sleep(lookEvery)
		}
	}
}

// drop removes from list the processes that have ended, and acts on their end.
func (e *Engine) drop(list []watched, ended func(*watched) bool) []watched {
	keep := list[:0]
	for _, w := range list {
		if ended(&w) {
			e.ended(w.rank, e.status(&w))
		} else {
			keep = append(keep, w)
		}
	}
	return keep
}

// statusTime bounds the wait for the exit status of a peer that no launcher of gormapy's
// reports: its parent reaps it soon.
const statusTime = 100 * time.Millisecond

// status closes the pidfd of a process that has ended, and returns a function that records the
// process's exit status if nobody else will.
func (e *Engine) status(w *watched) (record func()) {
	fd, rank, pid := w.fd, w.rank, w.pid
	if rank < 0 || e.Job.Head.LauncherPID != 0 {
		if fd >= 0 {
			unix.Close(fd)
		}
		return func() {}
	}
	return func() {
		if fd < 0 {
			return
		}
		defer unix.Close(fd)
		if ws, ok := sys.ExitStatus(pid, fd, statusTime); ok && atomic.LoadUint32(&e.Job.Ranks[rank].Exit) == 0 {
			e.Job.Exited(rank, int(ws))
		}
	}
}

// milliseconds converts d to the time-out of poll(2).
func milliseconds(d time.Duration) int {
	if d < 0 {
		return -1
	}
	return int(d / time.Millisecond)
}

// ended acts on the end of the process of rank, or of the launcher if rank is -1. record
// records its exit status, if this process has to.
func (e *Engine) ended(rank int, record func()) {
	if rank < 0 {
		// No process is left that could stop this rank, which must not stay behind.
		// The delay lets the guardian of a launcher that died of SIGKILL do it first.
		time.AfterFunc(200*time.Millisecond, func() {
			if !e.stop.Load() {
				log.Errorf("engine", "the launcher (pid %d) is gone: this rank ends too", e.Job.Head.LauncherPID)
				_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			}
		})
		return
	}
	if e.Job.Local(rank) {
		e.Job.SetEnded(rank) // for all ranks: this one may be the first to know
		if e.Job.Nodes() > 1 {
			e.Job.RingRanks() // for watchFar
		}
	}
	deadline := time.Now().Add(verdictTime)
	if !e.Job.Own(rank) || e.Finalized(rank) {
		deadline = time.Now().Add(stayTime)
	}
	go guarded("watcher of peers", func() {
		rk := e.Job.Rank(rank)
		record()
		if e.onEnd != nil && e.Job.Own(rank) {
			e.onEnd(rank)
		}
		verdict := func() bool {
			return e.launcherOf(rank) == 0 || atomic.LoadUint32(&rk.Exit) != 0
		}
		for !e.stop.Load() && !verdict() && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if _, _, aborted := e.Job.Aborted(); aborted {
			time.Sleep(verdictTime) // the launcher should stop this process within that time
		}
		e.judged[rank].Store(1)
		e.awaitDrained(rank)
		if !e.stop.Load() {
			e.NoteGone(rank)
		}
	})
}

// Failed reports whether rank r has ended without finalizing.
func (e *Engine) Failed(r int) bool { return e.Gone(r) && !e.Finalized(r) }

// Absent reports whether rank r takes no part in communication any more: it has ended or finalized.
func (e *Engine) Absent(r int) bool { return e.Finalized(r) || e.Gone(r) }

// Finalized reports whether rank r has finalized.
func (e *Engine) Finalized(r int) bool {
	return atomic.LoadUint32(&e.Job.Rank(r).State) == job.StateFinalized
}
