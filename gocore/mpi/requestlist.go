package mpi

import (
	"gormapy/gocore/engine"
	"gormapy/gocore/job"
)

// The calls on several requests. All of them get the requests from the table by borrowRequest, and so are counted in waiters.

// WaitEach waits for all requests, then finishes them, one after the other, and stores their codes, and their statuses unless sts is nil. *done
// counts those that have a code. It returns 0 once all have, else Interrupted. As long as one is under way it finishes none: a signal handler
// may ask for each of them.
func WaitEach(hs []int64, sts []Status, codes []int32, done *int32) Code {
	waiters.Add(1)
	defer waiters.Add(-1)
	if await(hs[*done:]) == Interrupted {
		return Interrupted
	}
	for ; int(*done) < len(hs); *done++ {
		code := waitForOne(hs[*done], statusAt(sts, int(*done)))
		if code == Interrupted {
			return Interrupted
		}
		codes[*done] = int32(code)
	}
	return 0
}

// waitForOne is waitFor that contains panics: those of one request do not end the wait for the others.
func waitForOne(h int64, st *Status) (code Code) {
	defer Contain(&code)
	if h == 0 {
		if st != nil {
			*st = empty
		}
		return 0
	}
	return waitFor(h, st)
}

// statusAt returns where the status of request i goes; nil: nowhere.
func statusAt(sts []Status, i int) *Status {
	if sts == nil {
		return nil
	}
	return &sts[i]
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

// Testall reports whether all requests are over, which is that they have completed or can't complete any more. If so it finishes them, and
// stores their codes, and their statuses unless sts is nil. A code stays as it is as long as its request is under way. An error of a request
// that is under way is returned, and stored, too.
func Testall(hs []int64, sts []Status, codes []int32) (all bool, code Code) {
	defer Contain(&code)
	waiters.Add(1)
	defer waiters.Add(-1)
	for i, h := range hs {
		over, code := requestOver(h)
		if code != 0 {
			fillFailed(statusAt(sts, i), code)
			codes[i] = int32(code)
		}
		if code != 0 || !over {
			return false, code
		}
	}
	for i, h := range hs {
		over, one := testOne(h, statusAt(sts, i))
		if over || one != 0 {
			codes[i] = int32(one)
		}
		if code == 0 {
			code = one
		}
	}
	return true, code
}

// requestOver reports whether a request has completed or can't complete any more.
func requestOver(h int64) (over bool, code Code) {
	if h == 0 {
		return true, 0
	}
	r, e := borrowRequest(h)
	if e != nil {
		return false, CodeOf(e)
	}
	if r.advance() {
		return true, 0
	}
	proc.eng.Progress()
	if r.advance() {
		return true, 0
	}
	err := r.check()
	if err == nil {
		proc.eng.GiveWay()
		return false, 0
	}
	if mayComplete(err) {
		return false, codeOfErr(err)
	}
	return true, 0 // the call that finishes it returns the error
}

// testOne is testFor that contains panics, likewise.
func testOne(h int64, st *Status) (done bool, code Code) {
	defer Contain(&code)
	if h == 0 {
		if st != nil {
			*st = empty
		}
		return true, 0
	}
	return testFor(h, st)
}

// activeRequest is a request of a list that is neither null nor inactive.
type activeRequest struct {
	i int // its index
	r *Request

	complete bool
	why      error // why it can't complete
	code     Code  // of one that has completed
	give     bool  // it is finished, and for spareRequests
}

// finishOver finishes a request that is over.
func (a *activeRequest) finishOver(h int64, st *Status) Code {
	if a.why != nil {
		return a.r.failWith(a.why, h, st)
	}
	before := a.r.spare // the request may be in the list twice
	code := a.r.finish(h, st)
	a.give = a.r.spare && !before
	return code
}

// active appends the active requests to a list. If a handle is stale, it returns its index and an error code.
func active(list []activeRequest, hs []int64) ([]activeRequest, int, Code) {
	for i, h := range hs {
		if h == 0 {
			continue
		}
		r, e := borrowRequest(h)
		if e != nil {
			return nil, i, CodeOf(e)
		}
		if !r.inactive.Load() {
			list = append(list, activeRequest{i: i, r: r})
		}
	}
	return list, -1, 0
}

// room is for how many active requests a call has memory on its stack.
const room = 8

// awaitAny waits until one of the active requests is over, or returns an error: then found is nil unless it is that one's.
func awaitAny(list []activeRequest) (found *activeRequest, err error) {
	first := list[0].r
	defer first.leave()
	err = proc.eng.Wait(first.enter(job.CallWait), func() bool {
		found = firstComplete(list)
		return found != nil
	}, func() error {
		found = firstFailed(list)
		if found != nil {
			return found.why
		}
		return nil
	})
	return found, err
}

func firstComplete(list []activeRequest) *activeRequest {
	for i := range list {
		if list[i].r.advance() {
			return &list[i]
		}
	}
	return nil
}

func firstFailed(list []activeRequest) *activeRequest {
	for i := range list {
		if list[i].why = list[i].r.check(); list[i].why != nil {
			return &list[i]
		}
	}
	return nil
}

// Waitany waits for one of several requests; index is -1 if none is active. If there is
// an error and an index, it is the error of that request.
func Waitany(hs []int64, st *Status) (index int, code Code) {
	index, _, code = anyOf(hs, st, true)
	return index, code
}

// Testany is Waitany that does not wait: index is -1, too, if all active requests are under way, and over reports whether not.
func Testany(hs []int64, st *Status) (index int, over bool, code Code) { return anyOf(hs, st, false) }

func anyOf(hs []int64, st *Status, wait bool) (index int, over bool, code Code) {
	defer Contain(&code)
	waiters.Add(1)
	defer waiters.Add(-1)
	var own [room]activeRequest
	list, index, code := active(own[:0], hs)
	if code != 0 {
		fillFailed(st, code)
		return index, false, code
	}
	if len(list) == 0 {
		if st != nil {
			*st = empty
		}
		return -1, true, 0
	}
	found := firstComplete(list)
	switch {
	case found != nil:
	case wait:
		var err error
		if found, err = awaitAny(list); err == engine.ErrInterrupted {
			return -1, false, interrupted()
		} else if err != nil && found == nil {
			return -1, false, codeOfErr(err)
		}
	default:
		proc.eng.Progress()
		if found = firstComplete(list); found == nil {
			found = firstFailed(list)
		}
		if found == nil {
			proc.eng.GiveWay()
			return -1, false, 0
		}
	}
	code = found.finishOver(hs[found.i], st)
	if found.give {
		giveRequest(found.r)
	}
	return found.i, true, code
}

// Testsome finishes all requests that have completed and writes their indices; n is -1
// if none is active. codes[k] belongs to indices[k]. If any has failed, Testsome
// finishes only the failed ones and leaves the others for the next call.
func Testsome(hs []int64, indices []int32, sts []Status, codes []int32) (n int, code Code) {
	return someOf(hs, indices, sts, codes, false)
}

// Waitsome is Testsome that waits for at least one of them.
func Waitsome(hs []int64, indices []int32, sts []Status, codes []int32) (n int, code Code) {
	return someOf(hs, indices, sts, codes, true)
}

func someOf(hs []int64, indices []int32, sts []Status, codes []int32, wait bool) (n int, code Code) {
	defer Contain(&code)
	waiters.Add(1)
	defer waiters.Add(-1)
	var own [room]activeRequest
	list, stale, code := active(own[:0], hs)
	if code != 0 {
		indices[0], codes[0] = int32(stale), int32(code)
		fillFailed(&sts[0], code)
		return 1, 0
	}
	if len(list) == 0 {
		return -1, 0
	}
	proc.eng.Progress()
	n = finishSome(list, hs, indices, sts, codes)
	if n > 0 || !wait {
		if n == 0 {
			proc.eng.GiveWay()
		}
		return n, 0
	}
	found, err := awaitAny(list)
	switch {
	case err == engine.ErrInterrupted:
		return 0, interrupted()
	case err != nil && found == nil:
		return 0, codeOfErr(err)
	case err != nil:
		indices[0], codes[0] = int32(found.i), int32(found.finishOver(hs[found.i], &sts[0]))
		return 1, 0
	}
	return finishSome(list, hs, indices, sts, codes), 0
}

// finishSome finishes those of the requests that have failed, or those that have completed if none has.
func finishSome(list []activeRequest, hs []int64, indices []int32, sts []Status, codes []int32) (n int) {
	failed := false
	for k := range list {
		a := &list[k]
		a.why = nil
		if a.complete = a.r.advance(); a.complete {
			a.code = a.r.outcome(nil)
		} else {
			a.why = a.r.check()
		}
		failed = failed || a.why != nil || a.code != 0
	}
	for k := range list {
		a := &list[k]
		if a.why == nil && (!a.complete || failed && a.code == 0) {
			continue
		}
		indices[n], codes[n] = int32(a.i), int32(a.finishOver(hs[a.i], &sts[n]))
		n++
	}
	for k := range list { // not before: the request may be in the list twice
		if list[k].give {
			giveRequest(list[k].r)
		}
	}
	return n
}
