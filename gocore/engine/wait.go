package engine

import (
	"errors"
	"runtime/debug"
	"time"

	"gormapy/gocore/job"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/trace"
)

// ErrInterrupted tells that a wait returned so that the caller can look at
// signals; what it waits for has not happened, and it may wait on.
var ErrInterrupted = errors.New("wait interrupted")

// Reason says what a thread waits for; it becomes the wait record.
type Reason struct {
	Call job.Call
	Peer int // world rank, -1 any, -2 nobody in particular
	Tag  int // -1: none
	Ctx  uint64
	Info string
	// SleepAtOnce says that others come first: the wait sleeps at once, since it would
	// take the processor from them for nothing.
	SleepAtOnce bool
	// Until, if not 0, is when what is waited for is the case anyhow (job.Now's
	// clock): done says so by then, and the wait does not sleep longer.
	Until int64
	since int64
}

const (
	// yieldFor is how long a wait yields the processor before it sleeps: longer
	// than a peer on the same core needs to run and answer, short enough that
	// nobody pays for a wait that lasts.
	yieldFor = 50 * time.Microsecond
	// yieldLong is the same where every rank can have a core: as long as a peer may
	// take to copy a long message. Who sleeps is woken late, and often on the core
	// of the one that wakes it.
	yieldLong = time.Millisecond
	// slice bounds a sleep: the time within which Ctrl-C is seen by a thread that
	// the signal did not hit, and any lost wake-up of a future bug is made good.
	slice = 50 * time.Millisecond
)

// now is the clock; the test of the wait's interleavings sets it.
var now = job.Now

// thread is replaced likewise: which thread of the system a goroutine gets is chance.
var thread = sys.Thread

// Wait polls until done returns true, and then returns nil. It returns
// ErrInterrupted when a signal arrived or a slice of time is over: call it again
// with the same Reason to wait on. check, if not nil, is asked before every
// sleep whether what is waited for can still happen; its error ends the wait.
func (e *Engine) Wait(why *Reason, done func() bool, check func() error) error {
	debug.SetPanicOnFault(true) // of this goroutine, which handles what has come: see Progress
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

// waitPolling counts the caller among those who poll, also if what it waits for
// panics: peers don't call the progress engine of a process that polls.
func (e *Engine) waitPolling(why *Reason, done func() bool, check func() error) error {
	atom.Add32(&e.me.Pollers, 1)
	defer e.stopPolling()
	return e.wait(why, done, check)
}

// stopPolling leaves what has come since the last poll to the progress engine.
func (e *Engine) stopPolling() {
	atom.Add32(&e.me.Pollers, ^uint32(0))
	if atom.Load32(&e.me.Urgent) != e.delivered.Load() {
		e.me.RingProgress()
	} else {
		e.HandOver()
	}
}

func (e *Engine) wait(why *Reason, done func() bool, check func() error) error {
	// A wait that goes on has been asleep: it would burn the core again in each slice.
	resumed := why.since != 0 || why.SleepAtOnce && e.Shared()
	for i := 0; i < e.spin && !resumed; i++ {
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
	start := now()
	if e.spin > 0 && !resumed {
		limit = int64(yieldLong)
		e.spread(start)
	} else if !resumed {
		e.balance(start)
	}
	for i := 1; !resumed; i++ {
		atom.Yield()
		if done() { // by what another process stored, without polling
			return nil
		}
		e.Progress()
		if done() {
			return nil
		}
		if i%4 == 0 && now()-start > limit {
			if limit == int64(yieldLong) || !e.roomy() {
				break
			}
			limit = int64(yieldLong)
		}
	}
	if why.since == 0 {
		why.since = start
	}
	rec := e.publish(why)
	defer unpublish(rec)
	for {
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
	}
}

// sleep looks once more, and sleeps if there is still reason to. over says that the
// wait has ended, with err.
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
	if e.backlog.Load() != 0 {
		left = min(left, 200*time.Microsecond) // room in a ring is not announced: look for it again soon
	}
	return false, atom.Wait(&e.me.Doorbell, bell, left), nil
}

// roomy reports whether there is a core for every rank that does not sleep.
func (e *Engine) roomy() bool {
	const most = 64 // more would take too long to look at
	if e.Size > most || e.Job.Head.Cores == 0 {
		return false
	}
	awake := uint32(0)
	for i := range e.Job.Ranks {
		if atom.Load32(&e.Job.Ranks[i].Sleepers) == 0 {
			awake++
		}
	}
	return awake <= e.Job.Head.Cores
}

// spreadEvery bounds how often a rank looks for a core of its own.
const spreadEvery = int64(2 * time.Millisecond)

// spread leaves the core that this thread shares with another rank that polls
// too, although there is one for each: the kernel, which wakes a thread near the
// one that woke it, can leave both there for long, and then each answer costs
// two switches instead of a cache line. The higher rank goes.
func (e *Engine) spread(now int64) {
	last := e.spreadAt.Load()
	if now-last < spreadEvery || !e.spreadAt.CompareAndSwap(last, now) {
		return
	}
	mine := sys.CPU() + 1
	atom.Store32(&e.me.CPU, uint32(mine))
	shared := false
	var taken []int
	for r := range e.Job.Ranks {
		if r == e.Rank {
			continue
		}
		if cpu := int(atom.Load32(&e.Job.Ranks[r].CPU)); cpu > 0 {
			taken = append(taken, cpu-1)
			shared = shared || cpu == mine && r < e.Rank && e.Active(r)
		}
	}
	if shared && sys.MoveOff(taken) {
		atom.Store32(&e.me.CPU, uint32(sys.CPU()+1))
	}
}

// balance is spread where ranks have to share cores: it leaves a core that has
// two more ranks than another one has. Ranks that only yield to each other look
// like little load, so the kernel leaves three of them on one core and one on
// the other for long, and a fence of all takes as long as the three. The highest
// rank of the core goes.
func (e *Engine) balance(now int64) {
	const most = 64 // more would take too long to look at
	last := e.spreadAt.Load()
	if now-last < spreadEvery || e.Size > most || !e.spreadAt.CompareAndSwap(last, now) {
		return
	}
	mine := sys.CPU()
	if mine < 0 || mine >= sys.MaxCPU {
		return
	}
	atom.Store32(&e.me.CPU, uint32(mine+1))
	var ranks [sys.MaxCPU]int // by core
	for r := range e.Job.Ranks {
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
	least, taken := mine, []int(nil)
	for _, cpu := range e.cores {
		if ranks[cpu] < ranks[least] {
			least = cpu
		}
	}
	if ranks[mine] < ranks[least]+2 {
		return
	}
	for _, cpu := range e.cores {
		if cpu != least {
			taken = append(taken, cpu)
		}
	}
	if sys.MoveOff(taken) {
		atom.Store32(&e.me.CPU, uint32(sys.CPU()+1))
	}
}

// publish writes the wait record; nil if all slots are taken.
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
