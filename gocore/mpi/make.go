package mpi

import (
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
)

// Begin begins a call that makes or frees an object.
type Begin func() (operation, *errs.Error)

// request begins a call and returns a request for it.
func (begin Begin) request() (req int64, code Code) {
	defer Contain(&code)
	o, e := begin()
	if e != nil {
		return 0, CodeOf(e)
	}
	o.Advance()
	rest(o)
	return reqs.add(&Request{op: o}), 0
}

// Make runs a call that makes or frees an object, and sets *made to the handle of what it makes. If it is interrupted, *pending
// is a request for it, for Result.
func Make(begin Begin, made, pending *int64) (code Code) {
	defer Contain(&code)
	o, e := begin()
	if e != nil {
		return CodeOf(e)
	}
	if o.Advance() {
		code = CodeOf(o.Err())
	} else {
		r := takeRequestOf(o)
		switch code = r.wait(0, nil, 0); code {
		case 0:
			giveRequest(r)
		case Interrupted:
			*pending = reqs.add(r)
		}
	}
	rest(o)
	if m, ok := o.(maker); ok && code == 0 {
		*made = m.handle()
	}
	return code
}

// rest has what a call that does not wait any more leaves to be done, if anything, advance in any wait of this process.
func rest(o operation) {
	if l, ok := o.(interface{ rest() engine.Background }); ok {
		if b := l.rest(); b != nil && !b.Advance() {
			proc.eng.AddBackground(b)
		}
	}
}
