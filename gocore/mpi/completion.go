package mpi

import (
	"gormapy/gocore/check/events"
	"gormapy/gocore/engine"
	"gormapy/gocore/job"
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

// WaitEach waits for all requests, then finishes them, one after the other, and stores their codes. *done counts those that have a code. It
// returns 0 once all have, else Interrupted. As long as one is under way it finishes none: a signal handler may ask for each of them.
func WaitEach(hs []int64, codes []int32, done *int32) Code {
	waiters.Add(1)
	defer waiters.Add(-1)
	if await(hs[*done:]) == Interrupted {
		return Interrupted
	}
	for ; int(*done) < len(hs); *done++ {
		code := waitForOne(hs[*done])
		if code == Interrupted {
			return Interrupted
		}
		codes[*done] = int32(code)
	}
	return 0
}

// waitForOne is waitFor that contains panics: those of one request do not end the wait for the others.
func waitForOne(h int64) (code Code) {
	defer Contain(&code)
	if h == 0 {
		return 0
	}
	return waitFor(h, nil)
}

// Await waits until each request has completed or can't complete any more, or returns
// Interrupted. It finishes none of them, so an interrupted caller may wait for all of
// them again.
func Await(hs []int64) (code Code) {
	waiters.Add(1)
	defer waiters.Add(-1)
	return await(hs)
}

// await is Await for a thread that is counted in waiters.
func await(hs []int64) (code Code) {
	defer Contain(&code)
	for _, h := range hs {
		if h == 0 {
			continue
		}
		if r, e := borrowRequest(h); e == nil && !r.advance() && r.await() == engine.ErrInterrupted {
			return interrupted()
		}
	}
	return 0
}

func (r *Request) await() error {
	defer r.leave()
	return proc.eng.Wait(r.enter(0), r.advance, r.check)
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

// Waitany waits for one of several requests; index is -1 if none is active. If there is
// an error and an index, it is the error of that request.
func Waitany(hs []int64, st *Status) (index int, code Code) {
	defer Contain(&code)
	list, index, code := active(hs)
	if code != 0 {
		fillFailed(st, code)
		return index, code
	}
	if len(list) == 0 {
		if st != nil {
			*st = empty
		}
		return -1, 0
	}
	var found activeRequest
	defer list[0].r.leave()
	err := proc.eng.Wait(list[0].r.enter(job.CallWait), func() bool {
		for _, a := range list {
			if a.r.advance() {
				found = a
				return true
			}
		}
		return false
	}, func() error {
		for _, a := range list {
			if err := a.r.check(); err != nil {
				found = a
				return err
			}
		}
		return nil
	})
	switch {
	case err == engine.ErrInterrupted:
		return -1, interrupted()
	case err != nil && found.r == nil:
		return -1, codeOfErr(err)
	case err != nil:
		return found.i, found.r.failWith(err, hs[found.i], st)
	}
	return found.i, found.r.finish(hs[found.i], st)
}

type activeRequest struct {
	i int
	r *Request
}

// active returns the active requests. If a handle is stale, it returns its index and an
// error code.
func active(hs []int64) ([]activeRequest, int, Code) {
	list := make([]activeRequest, 0, len(hs))
	for i, h := range hs {
		if h == 0 {
			continue
		}
		r, e := getRequest(h)
		if e != nil {
			return nil, i, CodeOf(e)
		}
		if !r.inactive.Load() {
			list = append(list, activeRequest{i, r})
		}
	}
	return list, -1, 0
}

// Testsome finishes all requests that have completed and writes their indices; n is -1
// if none is active. codes[k] belongs to indices[k]. If any has failed, Testsome
// finishes only the failed ones and leaves the others for the next call.
func Testsome(hs []int64, indices []int32, sts []Status, codes []int32) (n int, code Code) {
	defer Contain(&code)
	list, stale, code := active(hs)
	if code != 0 {
		indices[0], codes[0] = int32(stale), int32(code)
		fillFailed(&sts[0], code)
		return 1, 0
	}
	if len(list) == 0 {
		return -1, 0
	}
	proc.eng.Progress()
	var complete, failed []activeRequest
	var why []error // of those that can't complete; nil for those that have completed with an error
	for _, a := range list {
		if a.r.advance() {
			if a.r.outcome(nil) == 0 {
				complete = append(complete, a)
			} else {
				failed, why = append(failed, a), append(why, nil)
			}
		} else if err := a.r.check(); err != nil {
			failed, why = append(failed, a), append(why, err)
		}
	}
	for k, a := range failed {
		indices[n] = int32(a.i)
		if why[k] != nil {
			codes[n] = int32(a.r.failWith(why[k], hs[a.i], &sts[n]))
		} else {
			codes[n] = int32(a.r.finish(hs[a.i], &sts[n]))
		}
		n++
	}
	if n == 0 {
		for _, a := range complete {
			indices[n] = int32(a.i)
			codes[n] = int32(a.r.finish(hs[a.i], &sts[n]))
			n++
		}
	}
	if n == 0 {
		proc.eng.GiveWay()
	}
	return n, 0
}
