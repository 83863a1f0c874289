package engine

import (
	"runtime/debug"

	"gormapy/gocore/errs"
	"gormapy/gocore/log"
)

// Damage is the error of calls after an internal error in this process's part of
// communication, nil if there was none.
//
// What a call does with the memory that it was given can fault. That is the call's
// own error: whoever touches the program's memory catches faults there (package sys),
// and nobody else learns of it. Any other panic under the engine is a mistake of
// ours. It leaves locks and counters as they should be, but a message or a step of
// an operation is lost with it, so that calls could wait for ever: they say what
// happened, and fail.
func (e *Engine) Damage() *errs.Error { return e.damage.Load() }

// contain, deferred, ends a panic in something that the engine does for others.
func (e *Engine) contain(what string) {
	p := recover()
	if p == nil {
		return
	}
	if _, ends := p.(interface{ Uncontained() }); ends { // how a test's explorer ends a thread
		panic(p)
	}
	d := errs.New(errs.Intern, "communication of this process has ended because of an internal error in %s: %v (its first report has where)", what, p)
	if e.damage.CompareAndSwap(nil, d) {
		log.Errorf("engine", "%s\n%s", d.Detail, debug.Stack())
	}
	e.me.Ring()
}
