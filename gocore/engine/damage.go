package engine

import (
	"runtime/debug"

	"gormapy/gocore/errs"
	"gormapy/gocore/log"
)

// Damage returns the error with which calls fail after an internal error in this
// process's part of communication, nil if there was none.
//
// A call can fault on the memory that it was given. That is an error of this call
// alone: code that touches the program's memory catches the fault there (package
// sys). Any other panic under the engine is a bug in gormapy. It leaves locks and
// counters as they should be, but a message or a step of an operation is lost, so that
// calls could wait for ever. They fail with this error instead.
func (e *Engine) Damage() *errs.Error { return e.damage.Load() }

// contain is deferred. It ends a panic in work that the engine does for other callers,
// and notes it as damage.
func (e *Engine) contain(what string) {
	p := recover()
	if p == nil {
		return
	}
	if _, ends := p.(interface{ Uncontained() }); ends { // package explore ends a thread in this way
		panic(p)
	}
	d := errs.New(errs.Intern, "communication of this process has ended because of an internal error in %s: %v (its first report has where)", what, p)
	if e.damage.CompareAndSwap(nil, d) {
		log.Errorf("engine", "%s\n%s", d.Detail, debug.Stack())
	}
	e.me.Ring()
}
