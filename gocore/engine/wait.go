package engine

import (
	"errors"
	"runtime/debug"
	"sync/atomic"
	"time"

	"gormapy/gocore/job"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/trace"
)

// ErrInterrupted means that a wait returned so that the caller can handle
// signals. What it waits for has not happened, and it may wait again.
var ErrInterrupted = errors.New("wait interrupted")

// Reason describes what a thread waits for; it becomes the wait record.
type Reason struct {
	Call job.Call
	Peer int // world rank, -1 any, -2 no particular rank
	Tag  int // -1: none
	Ctx  uint64
	Info string
	// SleepAtOnce makes the wait sleep at once where ranks share cores, because many other
	// ranks have to run first and polling would only take the processor from them.
	SleepAtOnce bool
	// Copying makes the wait yield the processor for longer before it sleeps, since other ranks copy long data meanwhile.
	Copying bool
	// Until, if not 0, is the time (by job.Now's clock) from which done returns true
	// in any case. The wait does not sleep longer.
	Until int64
	since int64
}

// Since returns the time at which the wait began to sleep; 0: it has not.
func (why *Reason) Since() int64 { return why.since }

// Continue makes a wait with another Reason go on, which began at the time since.
func (why *Reason) Continue(since int64) { why.since = since }

const (
	// yieldFor is how long a wait yields the processor before it sleeps: longer
	// than a peer on the same core needs to run and answer, but so short that it
	// costs little in a long wait.
	yieldFor = 50 * time.Microsecond
	// yieldLong is the same where every rank can have a core, or peers are known to copy:
	// as long as a peer may take to copy a long message. A thread that sleeps is woken late,
	// and often on the core of the thread that wakes it. But while it yields, its core
	// counts as busy, and ranks that compute may be left together on another one.
	yieldLong = time.Millisecond
	// contendedGap is how long four yields, and polls that find nothing, take if another process
	// runs on the core meanwhile. If that happens twice within contendedFor, the core is taken for shared as
	// long again, and a wait yields only for yieldShared: some schedulers let a thread that
	// yields run on.
	contendedGap = int64(40 * time.Microsecond)
	contendedFor = int64(5 * time.Millisecond)
	yieldShared  = int64(10 * time.Microsecond)
	// slice bounds a sleep: within this time a thread that the signal did not
	// interrupt notices Ctrl-C, and a wake-up that a future bug loses is made up for.
	slice = 50 * time.Millisecond
)

// now is the clock; the interleaving test of Wait replaces it.
var now = job.Now

// thread returns the system's number of the calling thread. The same test replaces it,
// since a goroutine does not run on the same thread each time.
var thread = sys.Thread

// Wait polls until done returns true, and then returns nil. It returns
// ErrInterrupted when a signal has arrived or a slice of time is over: to continue
// the wait, call it again with the same Reason. check, if not nil, is called before
// every sleep; it returns an error, which ends the wait, if what is waited for can't
// happen any more.
func (e *Engine) Wait(why *Reason, done func() bool, check func() error) error {
	debug.SetPanicOnFault(true) // of this goroutine, which runs handlers: see Progress
	if done() {
		return nil
	}
	var begun uint64
	recording := trace.On()
	if recording != nil {
		begun = recording.Now()
	}
	err := e.waitPolling(why, done, check)
	if recording != nil {
		recording.Waited(begun, uint32(why.Call), why.Peer, why.Tag)
	}
	return err
}

// waitPolling counts the caller in Pollers during the wait, since peers don't wake the
// progress engine of a process that polls. A panic does not leave it counted.
func (e *Engine) waitPolling(why *Reason, done func() bool, check func() error) error {
	atom.Add32(&e.me.Pollers, 1)
	defer e.stopPolling()
	return e.wait(why, done, check)
}

// stopPolling leaves what has arrived since the last poll to the progress engine.
func (e *Engine) stopPolling() {
	atom.Add32(&e.me.Pollers, ^uint32(0))
	if atom.Load32(&e.me.Urgent) != e.delivered.Load() {
		e.me.RingProgress()
	} else {
		e.HandOver()
	}
}

func (e *Engine) wait(why *Reason, done func() bool, check func() error) error {
	// A continued wait has slept before: it would keep the core busy again in each slice.
	resumed := why.since != 0 || why.SleepAtOnce && e.CoresShared()
	contended := e.net != nil && now() < e.contended.Load()
	for i := 0; i < e.spin && !resumed && !contended; i++ {
		e.Progress()
		if done() {
			return nil
		}
	}
	e.Progress()
	if done() {
		return nil
	}
	limit := int64(yieldFor)
	if contended {
		limit = yieldShared
	}
	start := now()
	if why.Copying && !contended {
		limit = int64(yieldLong)
	}
	if e.spin > 0 && !resumed && !contended {
		limit = int64(yieldLong)
		e.spread(start)
	} else if !resumed {
		e.balance(start)
	}
	if !resumed && e.yield(start, limit, done) {
		return nil
	}
	if why.since == 0 {
		why.since = start
	}
	rec := e.publish(why)
	defer unpublish(rec)
	for {
		arrived := e.arrived.Load()
		over, interrupted, err := e.sleep(why, start, done, check)
		if over {
			return err
		}
		e.Progress()
		if done() {
			return nil
		}
		if interrupted || now()-start >= int64(slice) {
			return ErrInterrupted
		}
		if e.arrived.Load() != arrived && e.yield(start, limit, done) {
			return nil
		}
	}
}

// yield polls and yields the processor in turn. It reports whether done returned true, and ends
// after limit, or when the wait that began at start has taken a slice. As long as the network
// delivers something, though not what is waited for, limit begins again: a rank that waits
// for others serves their one-sided operations, and the next one should not have to wake it.
func (e *Engine) yield(start, limit int64, done func() bool) bool {
	begun, arrived := now(), e.arrived.Load()
	last, moved := begun, atomic.LoadUint32(&e.me.Moved) // nothing depends on when this is read
	for i := 1; ; i++ {
		atom.Yield()
		if done() { // another process may have stored what it looks at, without a poll
			return true
		}
		e.Progress()
		if done() {
			return true
		}
		if i%4 != 0 {
			continue
		}
		t, n := now(), atomic.LoadUint32(&e.me.Moved)
		if t-last > contendedGap && n == moved && e.net != nil && e.interrupted(t) {
			limit = yieldShared
		}
		last, moved = t, n
		if n := e.arrived.Load(); n != arrived && t-start < int64(slice) {
			begun, arrived = t, n
		}
		if t-begun > limit {
			if limit == int64(yieldLong) || !e.roomy() || t < e.contended.Load() {
				return false
			}
			limit = int64(yieldLong)
		}
	}
}

// interrupted notes that another process has just run on the core, at time t, and reports
// whether the core is shared.
func (e *Engine) interrupted(t int64) bool {
	if t-e.interruptedAt.Swap(t) > contendedFor {
		return false
	}
	e.contended.Store(t + contendedFor)
	return true
}

// sleep polls once more, and sleeps if done still returns false. over reports whether
// the wait has ended, with err.
func (e *Engine) sleep(why *Reason, start int64, done func() bool, check func() error) (over, interrupted bool, err error) {
	atom.Add32(&e.me.Sleepers, 1)
	defer atom.Add32(&e.me.Sleepers, ^uint32(0))
	e.endNap()
	bell := atom.Load32(&e.me.Doorbell)
	e.pollSure(1)
	e.advanceBackground()
	if done() {
		return true, false, nil
	}
	if err := e.Damage(); err != nil {
		return true, false, err
	}
	if check != nil {
		if err := check(); err != nil {
			return true, false, err
		}
	}
	left := slice - time.Duration(now()-start)
	if why.Until != 0 {
		left = min(left, time.Duration(why.Until-now()))
	}
	if left <= 0 {
		return false, false, nil
	}
	if e.pressing.Load() != 0 {
		left = min(left, 200*time.Microsecond) // nothing announces room in a ring: look for it again soon
	}
	return false, atom.Wait(&e.me.Doorbell, bell, left), nil
}

// roomy reports whether there is a core for every rank that does not sleep.
func (e *Engine) roomy() bool {
	if len(e.local) > maxInspected || e.Job.Head.Cores == 0 {
		return false
	}
	awake := uint32(0)
	for _, r := range e.local {
		if atom.Load32(&e.Job.Ranks[r].Sleepers) == 0 {
			awake++
		}
	}
	return awake <= e.Job.Head.Cores
}

// gaveWayFor is how soon GiveWay does nothing when it has given way.
const gaveWayFor = int64(2 * time.Microsecond)

// GiveWay lets another rank run, if ranks share cores. It is for a call that does not wait and has found nothing: the program may make
// it again and again, and what it looks for may be on a rank that has no core meanwhile.
func (e *Engine) GiveWay() {
	if !e.CoresShared() {
		return
	}
	if t := now(); t-e.gaveWay.Load() > gaveWayFor {
		atom.Yield()
		e.gaveWay.Store(now())
	}
}

// maxInspected is how many ranks a node may have for a wait to inspect all of them: with
// more it would take too long.
const maxInspected = 64

// spreadEvery bounds how often a rank looks for a core of its own.
const spreadEvery = int64(2 * time.Millisecond)

// spread moves this thread off a core that it shares with another rank that polls
// too, although there is a core for each. The kernel, which wakes a thread near the
// one that woke it, can leave both there for long, and then each answer costs
// two context switches instead of a cache line. The higher rank moves.
func (e *Engine) spread(now int64) {
	last := e.spreadAt.Load()
	if now-last < spreadEvery || !e.spreadAt.CompareAndSwap(last, now) {
		return
	}
	mine := sys.CPU() + 1
	atom.Store32(&e.me.CPU, uint32(mine)) // also for those that may move when this one may not
	if len(e.cores) < 2 {
		return
	}
	shared := false
	var taken []int
	for _, r := range e.local {
		if r == e.Rank {
			continue
		}
		if cpu := int(atom.Load32(&e.Job.Ranks[r].CPU)); cpu > 0 {
			taken = append(taken, cpu-1)
			shared = shared || cpu == mine && r < e.Rank && e.Active(r)
		}
	}
	if shared && sys.MoveOff(taken, e.cores) {
		atom.Store32(&e.me.CPU, uint32(sys.CPU()+1))
	}
}

// balance is spread where ranks have to share cores: it moves this thread off a core
// that has at least two more ranks than another one. Ranks that only yield to each
// other look like little load, so the kernel leaves three of them on one core and one
// on the other for long, and a fence of all takes as long as the three. The highest
// rank of the core moves.
func (e *Engine) balance(now int64) {
	last := e.spreadAt.Load()
	if now-last < spreadEvery || len(e.local) > maxInspected || !e.spreadAt.CompareAndSwap(last, now) {
		return
	}
	mine := sys.CPU()
	if mine < 0 || mine >= sys.MaxCPU {
		return
	}
	atom.Store32(&e.me.CPU, uint32(mine+1))
	if len(e.cores) < 2 {
		return
	}
	var ranks [sys.MaxCPU]int // by core
	for _, r := range e.local {
		rk := &e.Job.Ranks[r]
		cpu := int(atom.Load32(&rk.CPU)) - 1
		if cpu < 0 || cpu >= len(ranks) || atom.Load32(&rk.Sleepers) != 0 || atom.Load32(&rk.State) != job.StateReady {
			continue
		}
		if cpu == mine && r > e.Rank {
			return
		}
		ranks[cpu]++
	}
	idlest, taken := mine, []int(nil)
	for _, cpu := range e.cores {
		if ranks[cpu] < ranks[idlest] {
			idlest = cpu
		}
	}
	if ranks[mine] < ranks[idlest]+2 {
		return
	}
	for _, cpu := range e.cores {
		if cpu != idlest {
			taken = append(taken, cpu)
		}
	}
	if sys.MoveOff(taken, e.cores) {
		atom.Store32(&e.me.CPU, uint32(sys.CPU()+1))
	}
}

// publish writes the wait record and returns it; nil if all slots are taken.
func (e *Engine) publish(why *Reason) *job.WaitRecord {
	for i := range e.me.Waits {
		w := &e.me.Waits[i]
		seq := atom.Load32(&w.Seq)
		if seq&1 == 0 && atom.CAS32(&w.Seq, seq, seq+1) {
			w.Call, w.Peer, w.Tag = uint32(why.Call), int32(why.Peer), int32(why.Tag)
			w.Ctx, w.Since = why.Ctx, why.since
			w.Thread = uint32(thread())
			n := copy(w.Info[:], why.Info)
			clear(w.Info[n:])
			return w
		}
	}
	return nil
}

func unpublish(w *job.WaitRecord) {
	if w != nil {
		atom.Add32(&w.Seq, 1)
	}
}
