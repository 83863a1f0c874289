package engine

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"gormapy/gocore/log"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// Start starts the progress engines and the watcher of peers.
func (e *Engine) Start() error {
	e.served = make(chan struct{})
	log.Debugf("engine", "progress engine and watcher of peers start")
	go func() {
		defer close(e.served)
		guarded("progress engine", e.serve)
	}()
	if e.net != nil {
		stop, err := e.startNetProgress()
		if err != nil {
			return fmt.Errorf("make eventfd: %w", err)
		}
		e.stopNetProgress = stop
	}
	return e.watch()
}

// Stop ends them, and returns when they have ended.
func (e *Engine) Stop() {
	if e.stop.Swap(true) {
		return
	}
	log.Debugf("engine", "progress engine and watcher of peers stop")
	atom.Add32(&e.me.Progress, 1)
	atom.Wake(&e.me.Progress)
	if e.served != nil {
		<-e.served
	}
	if e.stopNetProgress != nil && !e.closed.Load() {
		e.stopNetProgress()
	}
	if e.stopWatch != nil {
		e.stopWatch()
	}
}

// serve is the loop of the progress engine: it polls for a process that makes no call.
// It has a thread of its own with a short scheduling slice, so that it runs soon after
// it is woken although the process's main thread keeps a core busy.
func (e *Engine) serve() {
	runtime.LockOSThread()
	sys.ShortSlice()
	for !e.stop.Load() {
		atom.Add32(&e.me.ProgressSleepers, 1)
		bell := atom.Load32(&e.me.Progress)
		n := e.pollSure(0)
		if n == 0 && !e.stop.Load() {
			wait := 10 * time.Second // nothing is due: this guards against a lost wake-up
			if e.pressing.Load() > 0 {
				wait = 200 * time.Microsecond
			}
			atom.Wait(&e.me.Progress, bell, wait)
		}
		atom.Add32(&e.me.ProgressSleepers, ^uint32(0))
		// Another message often follows: stay awake for a moment.
		for quiet := 0; quiet < 8 && !e.stop.Load(); quiet++ {
			if e.pollSure(0) > 0 {
				quiet = 0
			}
			atom.Yield()
		}
	}
}

// guarded runs f, the body of a goroutine, and logs a panic instead of letting it end
// the interpreter.
func guarded(what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			log.Errorf("engine", "internal error in the %s: %v\n%s", what, p, debug.Stack())
		}
	}()
	debug.SetPanicOnFault(true)
	f()
}

// Poll makes the progress that is possible now, unless another thread is polling.
func (e *Engine) Poll() {
	if e.polling.CompareAndSwap(0, 1) && e.pollLocked(0) > 0 {
		e.rearm.polled()
	}
}

// Exclude runs f while no thread polls: from the beginning of f to its end no handler
// works on a request's memory. It must not be called from a handler.
func (e *Engine) Exclude(f func()) {
	e.takePolling()
	defer e.polling.Store(0)
	f()
}

// A thread that waits for the poll lock yields lockYields times and then pauses: the thread that
// holds it may have lost the processor, and may be in a group of threads for which a yield makes no
// room.
const (
	lockYields = 16
	lockPause  = 20 * time.Microsecond
)

func (e *Engine) takePolling() {
	for i := 1; !e.polling.CompareAndSwap(0, 1); i++ {
		if i <= lockYields {
			atom.Yield()
		} else {
			atom.Pause(lockPause)
		}
		if i%64 == 0 {
			runtime.Gosched() // Go's scheduler may have the poller wait for this goroutine's turn
		}
	}
}

// PollSure polls, if necessary after the thread that is polling. It must not be called
// from a handler.
func (e *Engine) PollSure() { e.pollSure(0) }

// pollSure is PollSure and returns how much it moved. asleep is 1 if the caller has
// announced itself in Sleepers, else 0.
func (e *Engine) pollSure(asleep uint32) int {
	e.takePolling()
	n := e.pollLocked(asleep)
	if n > 0 {
		e.rearm.polled()
	}
	return n
}

func (e *Engine) pollLocked(asleep uint32) (n int) {
	// A panic in here leaves no lock taken. It is not passed on to the caller, which
	// may be waiting for something else.
	defer e.polling.Store(0)
	defer e.contain("the progress of communication")
	for _, t := range e.transports {
		moved := t.Poll(e)
		if moved > 0 && t == e.net {
			e.arrived.Add(1)
		}
		n += moved
	}
	if e.connected.live.Load() || atomic.LoadUint32(&e.me.Announced) != 0 { // the protocol is in Poll
		n += e.connected.links.Poll(e)
	}
	if e.hooks.needed.Load() > 0 {
		for _, do := range e.hooks.list {
			n += do()
		}
	}
	if e.backlog.Load() > 0 {
		n += e.sendQueued()
	}
	if n == 0 {
		return 0
	}
	e.me.Moved++ // written under the poll lock only
	if atom.Load32(&e.me.Sleepers) > asleep {
		// Another thread of this process may wait asleep for what was just delivered.
		e.me.Ring()
	}
	return n
}

// pollHooks are functions that every poll calls while they are needed.
type pollHooks struct {
	list   []func() int
	needed atomic.Int32
}

// AddPollHook makes pollers call do while the count of NeedPollHooks is positive. do
// returns how much it moved. All hooks are added before the first NeedPollHooks.
func (e *Engine) AddPollHook(do func() int) { e.hooks.list = append(e.hooks.list, do) }

// NeedPollHooks adds d, which may be negative, to the number of reasons to call the
// poll hooks.
func (e *Engine) NeedPollHooks(d int) { e.hooks.needed.Add(int32(d)) }
