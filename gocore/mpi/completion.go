package mpi

import (
	"gormapy/gocore/check/events"
)

// Wait waits for a request, or returns Interrupted.
func Wait(h int64, st *Status) (code Code) {
	defer Contain(&code)
	if h == 0 {
		if st != nil {
			*st = empty
		}
		return 0
	}
	waiters.Add(1)
	defer waiters.Add(-1)
	return waitFor(h, st)
}

// waitFor is Wait for a thread that is counted in waiters.
func waitFor(h int64, st *Status) Code {
	r, e := borrowRequest(h)
	if e != nil {
		code := CodeOf(e)
		fillFailed(st, code)
		return code
	}
	var code Code
	if r.advance() {
		code = r.finish(h, st)
	} else {
		code = r.wait(h, st, 0)
	}
	giveBack(r)
	return code
}

// maker is an operation that makes an object.
type maker interface{ handle() int64 }

// Result waits for a request that makes an object and returns its handle.
func Result(h int64, out *int64) (code Code) {
	defer Contain(&code)
	if h == 0 {
		*out = 0
		return 0
	}
	r, e := getRequest(h)
	if e != nil {
		return CodeOf(e)
	}
	if code = r.wait(h, nil, 0); code == 0 {
		if m, ok := r.op.(maker); ok {
			*out = m.handle()
		}
	}
	return code
}

// Test reports whether a request is complete, and then finishes it.
func Test(h int64, st *Status) (done bool, code Code) {
	defer Contain(&code)
	if h == 0 {
		if st != nil {
			*st = empty
		}
		return true, 0
	}
	waiters.Add(1)
	defer waiters.Add(-1)
	return testFor(h, st)
}

// testFor is Test for a thread that is counted in waiters.
func testFor(h int64, st *Status) (done bool, code Code) {
	r, e := borrowRequest(h)
	if e != nil {
		code = CodeOf(e)
		fillFailed(st, code)
		return false, code
	}
	if !r.advance() {
		proc.eng.Progress()
		if !r.advance() {
			if err := r.check(); err != nil {
				return false, r.failWith(err, h, st)
			}
			proc.eng.GiveWay()
			return false, 0
		}
	}
	code = r.finish(h, st)
	giveBack(r)
	return true, code
}

// RequestStatus is Test without finishing the request.
func RequestStatus(h int64, st *Status) (done bool, code Code) {
	defer Contain(&code)
	if h == 0 {
		*st = empty
		return true, 0
	}
	r, e := getRequest(h)
	if e != nil {
		return false, CodeOf(e)
	}
	if !r.advance() {
		proc.eng.Progress()
		if !r.advance() {
			switch err := r.check(); {
			case err == nil:
				proc.eng.GiveWay()
				return false, 0
			case mayComplete(err):
				return false, codeOfErr(err)
			}
			*st = empty // the call that finishes it returns the error
			return true, 0
		}
	}
	r.outcome(st)
	st.Error = 0
	if checked := events.On(); checked != nil {
		r.record(nil, checked, false)
	}
	return true, 0
}
