package mpi

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
)

// usedAgain reports whether one of many receives has the request of an earlier one. f is called when it has been started, and ends it.
func usedAgain(t *testing.T, f func(h int64)) bool {
	t.Helper()
	again, before := false, map[*Request]bool{}
	for range 100 { // the collector takes some, and the race detector drops some
		h, into := irecv(t, 5, 1)
		r := reqs.borrow(h)
		again = again || before[r]
		before[r] = true
		isend(t, KindSend, 5, 7)
		f(h)
		assert.Equal(t, int32(7), into[0])
		isStale(t, h)
	}
	return again
}

func TestRequestsAreUsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		again bool
		end   func(h int64)
	}{
		"Wait": {true, func(h int64) { done(t, h, 0) }},
		"Test": {true, func(h int64) {
			complete, code := Test(h, nil)
			succeeds(t, code)
			require.True(t, complete)
		}},
		"WaitEach": {true, func(h int64) {
			codes, n := []int32{-1}, int32(0)
			succeeds(t, WaitEach([]int64{h}, nil, codes, &n))
			require.Equal(t, []int32{0}, codes)
		}},
		"another thread may have it": {false, func(h int64) { reqs.get(h); done(t, h, 0) }},
		"another thread has seen it": {false, func(h int64) { reqs.each(func(int64, *Request) {}); done(t, h, 0) }},
		"another thread waits": {false, func(h int64) {
			waiters.Add(1)
			done(t, h, 0)
			waiters.Add(-1)
		}},
		"Waitany": {true, func(h int64) {
			_, code := Waitany([]int64{h, h}, nil)
			succeeds(t, code)
		}},
		"Testany": {true, func(h int64) {
			i, over, code := Testany([]int64{h}, nil)
			succeeds(t, code)
			require.True(t, over)
			require.Zero(t, i)
		}},
		"Testall": {true, func(h int64) {
			codes := []int32{-1, -1}
			over, code := Testall([]int64{0, h}, nil, codes)
			succeeds(t, code)
			require.True(t, over)
			require.Equal(t, []int32{0, 0}, codes)
		}},
		"Testsome, twice in the list": {true, func(h int64) {
			indices, codes := []int32{-1, -1}, []int32{-1, -1}
			n, code := Testsome([]int64{h, h}, indices, make([]Status, 2), codes)
			succeeds(t, code)
			require.Equal(t, 2, n)
			require.Equal(t, []int32{0, 0}, codes)
		}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.again, usedAgain(t, c.end)) })
	}
}

func TestRequestsOfCollectivesAreUsedAgain(t *testing.T) {
	_, from := memory[int32](t, 1)
	into, to := memory[int32](t, 0)
	i := typeOf("INT")
	for name, c := range map[string]struct {
		again bool
		end   func(h int64)
	}{
		"Wait":                       {true, func(h int64) { done(t, h, 0) }},
		"another thread may have it": {false, func(h int64) { reqs.get(h); done(t, h, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			again, before := false, map[*Request]bool{}
			for range 100 {
				into[0] = 0
				h, code := Coll(int(coll.KindAllreduce), CommSelf, from, 1, i, to, 1, i, int64(op.Sum), 0)
				succeeds(t, code)
				r := reqs.borrow(h)
				again = again || before[r]
				before[r] = true
				c.end(h)
				assert.Equal(t, int32(1), into[0])
				isStale(t, h)
			}
			assert.Equal(t, c.again, again)
		})
	}
}

// Threads that complete each other's requests never complete a later one in its place.
func TestThreadsCompleteTheSameRequests(t *testing.T) {
	var shared [4]atomic.Int64
	var stop atomic.Bool
	var owners, others sync.WaitGroup
	stale := func(code Code) bool {
		if code != 0 {
			fails(t, errs.Request, "the request has been completed or freed", code)
		}
		return code != 0
	}
	for i := range shared {
		owners.Add(1)
		go func() {
			defer owners.Done()
			for k := range int32(2000) {
				tag := 100 + i
				h, into := irecv(t, tag, 1)
				shared[i].Store(h)
				isend(t, KindSend, tag, k)
				var st Status
				if !stale(Wait(h, &st)) {
					assert.Equal(t, Status{Source: 0, Tag: int32(tag), Bytes: 4}, st)
				}
				assert.Equal(t, k, into[0])
			}
		}()
	}
	for _, finish := range []func(h int64, st *Status) (bool, Code){Test, Test, testsome} {
		others.Add(1)
		go func() {
			defer others.Done()
			for !stop.Load() {
				for i := range shared {
					var st Status
					h := shared[i].Load()
					complete, code := finish(h, &st)
					if !stale(code) && complete && h != 0 {
						assert.Equal(t, Status{Source: 0, Tag: int32(100 + i), Bytes: 4}, st)
					}
				}
			}
		}()
	}
	owners.Wait()
	stop.Store(true)
	others.Wait()
}

// testsome is Test by Testsome.
func testsome(h int64, st *Status) (complete bool, code Code) {
	var sts [1]Status
	var indices, codes [1]int32
	n, code := Testsome([]int64{h}, indices[:], sts[:], codes[:])
	if n == 1 {
		*st, code = sts[0], Code(codes[0])
	}
	return n == 1, code
}
