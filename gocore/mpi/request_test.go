package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
)

// isend starts a send of numbers to this process itself.
func isend(t testing.TB, kind, tag int, numbers ...int32) int64 {
	t.Helper()
	_, addr := memory(t, numbers...)
	req, code := P2P(kind, CommSelf, addr, int64(len(numbers)), typeOf("INT"), 0, tag)
	succeeds(t, code)
	return req
}

// irecv starts a receive of n numbers from this process itself.
func irecv(t testing.TB, tag, n int) (req int64, into []int32) {
	t.Helper()
	into, addr := memory(t, make([]int32, n)...)
	req, code := P2P(KindRecv, CommSelf, addr, int64(n), typeOf("INT"), 0, tag)
	succeeds(t, code)
	return req, into
}

// isStale fails the test unless a handle names no request any more.
func isStale(t testing.TB, req int64) {
	t.Helper()
	fails(t, errs.Request, "the request has been completed or freed", Wait(req, nil))
	_, code := Test(req, nil)
	fails(t, errs.Request, "the request has been completed or freed", code)
	fails(t, errs.Request, "the request has been completed or freed", RequestCancel(req))
	fails(t, errs.Request, "the request has been completed or freed", RequestFree(req))
}

func TestWaitFreesTheRequest(t *testing.T) {
	receive, into := irecv(t, 5, 3)
	send := isend(t, KindSend, 5, 1, 2)
	assert.Equal(t, Status{Source: 0, Tag: 5, Bytes: 8}, done(t, receive, 0))
	assert.Equal(t, []int32{1, 2, 0}, into)
	assert.Equal(t, empty, done(t, send, 0))
	isStale(t, receive)
}

func TestSendsThatAreCompleteHaveOneRequest(t *testing.T) {
	first, second := isend(t, KindSend, 5, 1), isend(t, KindSend, 5, 2)
	assert.EqualValues(t, RequestSent, first)
	assert.EqualValues(t, RequestSent, second)
	var st Status
	complete, code := RequestStatus(first, &st)
	succeeds(t, code)
	assert.True(t, complete)
	assert.Equal(t, empty, st)
	Blocks(first)
	succeeds(t, RequestCancel(first))
	succeeds(t, RequestFree(first))
	RequestAbandon(first, true)
	assert.True(t, RequestOver(first))
	complete, code = Test(second, &st)
	succeeds(t, code)
	assert.True(t, complete)
	assert.Equal(t, empty, done(t, second, 0))
	for range 2 {
		receive, _ := irecv(t, 5, 1)
		assert.Equal(t, Status{Source: 0, Tag: 5, Bytes: 4}, done(t, receive, 0))
	}
}

func TestTestFreesTheRequestWhenItIsComplete(t *testing.T) {
	receive, into := irecv(t, 5, 1)
	complete, code := Test(receive, nil)
	succeeds(t, code)
	require.False(t, complete)
	done(t, isend(t, KindSsend, 5, 7), 0)

	var st Status
	complete, code = RequestStatus(receive, &st)
	succeeds(t, code)
	require.True(t, complete)
	assert.Equal(t, Status{Source: 0, Tag: 5, Bytes: 4}, st)

	st = Status{}
	complete, code = Test(receive, &st)
	succeeds(t, code)
	require.True(t, complete, "RequestStatus left it as it was")
	assert.Equal(t, Status{Source: 0, Tag: 5, Bytes: 4}, st)
	assert.EqualValues(t, 7, into[0])
	isStale(t, receive)
}

func TestSynchronousSendCompletesWhenItIsReceived(t *testing.T) {
	send := isend(t, KindSsend, 5, 7)
	complete, code := Test(send, nil)
	succeeds(t, code)
	assert.False(t, complete)
	receive, into := irecv(t, 5, 1)
	done(t, receive, 0)
	done(t, send, 0)
	assert.EqualValues(t, 7, into[0])
}

func TestMessagesWithTheSameTagAreReceivedInOrder(t *testing.T) {
	sends := []int64{isend(t, KindSend, 5, 1), isend(t, KindBsend, 6, 2), isend(t, KindRsend, 5, 3)}
	for _, want := range []struct {
		tag   int
		value int32
	}{{6, 2}, {AnyTag, 1}, {5, 3}} {
		receive, into := irecv(t, want.tag, 1)
		st := done(t, receive, 0)
		assert.Equal(t, want.value, into[0])
		assert.EqualValues(t, map[int32]int32{1: 5, 2: 6, 3: 5}[want.value], st.Tag)
	}
	for _, send := range sends {
		done(t, send, 0)
	}
}

func TestCancelledReceiveCompletes(t *testing.T) {
	receive, _ := irecv(t, 5, 1)
	succeeds(t, RequestCancel(receive))
	st := done(t, receive, 0)
	assert.EqualValues(t, 1, st.Cancelled)
	isStale(t, receive)

	// A receive that has its message can't be withdrawn.
	receive, into := irecv(t, 5, 1)
	done(t, isend(t, KindSsend, 5, 7), 0)
	succeeds(t, RequestCancel(receive))
	st = done(t, receive, 0)
	assert.Zero(t, st.Cancelled)
	assert.EqualValues(t, 7, into[0])
}

func TestFreedRequestCompletesByItself(t *testing.T) {
	receive, into := irecv(t, 5, 1)
	succeeds(t, RequestFree(receive))
	isStale(t, receive)
	assert.False(t, RequestOver(receive), "the receive still uses its memory")
	done(t, isend(t, KindSsend, 5, 7), 0)
	assert.True(t, RequestOver(receive))
	assert.EqualValues(t, 7, into[0])
	assert.Nil(t, reqs.get(receive), "RequestOver has dropped it")
}

func TestAbandonedReceiveIsWithdrawn(t *testing.T) {
	receive, into := irecv(t, 5, 1)
	RequestAbandon(receive, true)
	assert.True(t, RequestOver(receive))
	isStale(t, receive)
	send := isend(t, KindSsend, 5, 7)
	again, second := irecv(t, 5, 1)
	done(t, again, 0)
	done(t, send, 0)
	assert.Zero(t, into[0])
	assert.EqualValues(t, 7, second[0])
}

func TestAbandonedSendIsReceivedNevertheless(t *testing.T) {
	send := isend(t, KindSsend, 5, 7)
	RequestAbandon(send, true)
	isStale(t, send)
	assert.False(t, RequestOver(send))
	receive, into := irecv(t, 5, 1)
	done(t, receive, 0)
	assert.EqualValues(t, 7, into[0])
	eventually(t, func() bool { return RequestOver(send) })
}

func TestNullRequestIsComplete(t *testing.T) {
	st := Status{Source: 9}
	succeeds(t, Wait(0, &st))
	assert.Equal(t, empty, st)
	for name, call := range map[string]func(int64, *Status) (bool, Code){"test": Test, "status": RequestStatus} {
		t.Run(name, func(t *testing.T) {
			st := Status{Source: 9}
			complete, code := call(0, &st)
			succeeds(t, code)
			assert.True(t, complete)
			assert.Equal(t, empty, st)
		})
	}
	h := int64(9)
	succeeds(t, Result(0, &h))
	assert.Zero(t, h)
	succeeds(t, Await([]int64{0, 0}))
	assert.True(t, RequestOver(0))
	fails(t, errs.Request, "REQUEST_NULL", RequestFree(0))
}

func TestRequestOfTheNullProcess(t *testing.T) {
	for name, kind := range map[string]int{"send": KindSend, "receive": KindRecv} {
		t.Run(name, func(t *testing.T) {
			req, code := P2P(kind, CommSelf, 0, 0, typeOf("INT"), ProcNull, 0)
			assert.Equal(t, Status{Source: ProcNull, Tag: AnyTag}, done(t, req, code))
		})
	}
}

func TestWaitanyFinishesOneRequest(t *testing.T) {
	first, _ := irecv(t, 5, 1)
	second, into := irecv(t, 6, 1)
	done(t, isend(t, KindSend, 6, 7), 0)
	hs := []int64{0, first, second}
	var st Status
	i, code := Waitany(hs, &st)
	succeeds(t, code)
	assert.Equal(t, 2, i)
	assert.EqualValues(t, 6, st.Tag)
	assert.EqualValues(t, 7, into[0])
	isStale(t, second)

	i, code = Waitany(hs, &st)
	fails(t, errs.Request, "has been completed or freed", code)
	assert.Equal(t, 2, i, "the index of the stale handle")
	succeeds(t, RequestCancel(first))
	done(t, first, 0)

	i, code = Waitany([]int64{0, 0}, &st)
	succeeds(t, code)
	assert.Equal(t, -1, i)
	assert.Equal(t, empty, st)
}

func TestTestsomeFinishesWhatIsComplete(t *testing.T) {
	first, _ := irecv(t, 5, 1)
	second, _ := irecv(t, 6, 1)
	third, _ := irecv(t, 7, 1)
	hs := []int64{first, 0, second, third}
	indices, sts, codes := make([]int32, 4), make([]Status, 4), make([]int32, 4)

	n, code := Testsome(hs, indices, sts, codes)
	succeeds(t, code)
	assert.Zero(t, n)
	done(t, isend(t, KindSsend, 5, 1), 0)
	done(t, isend(t, KindSsend, 7, 1), 0)
	n, code = Testsome(hs, indices, sts, codes)
	succeeds(t, code)
	require.Equal(t, 2, n)
	assert.Equal(t, []int32{0, 3}, indices[:n])
	assert.Equal(t, []int32{0, 0}, codes[:n])
	assert.EqualValues(t, 5, sts[0].Tag)
	assert.EqualValues(t, 7, sts[1].Tag)

	n, code = Testsome(hs, indices, sts, codes)
	succeeds(t, code)
	assert.Equal(t, 1, n)
	assert.EqualValues(t, 0, indices[0])
	fails(t, errs.Request, "has been completed or freed", int(codes[0]))

	succeeds(t, RequestCancel(second))
	done(t, second, 0)
	n, code = Testsome([]int64{0}, indices, sts, codes)
	succeeds(t, code)
	assert.Equal(t, -1, n, "none is active")
}

func TestTestsomeReportsFailuresFirst(t *testing.T) {
	fine, _ := irecv(t, 5, 1)
	short, _ := irecv(t, 6, 1)
	done(t, isend(t, KindSsend, 5, 1), 0)
	done(t, isend(t, KindSsend, 6, 1, 2), 0)
	hs := []int64{fine, short}
	indices, sts, codes := make([]int32, 2), make([]Status, 2), make([]int32, 2)
	n, code := Testsome(hs, indices, sts, codes)
	succeeds(t, code)
	require.Equal(t, 1, n)
	assert.EqualValues(t, 1, indices[0])
	fails(t, errs.Truncate, "8 bytes", int(codes[0]))
	hs[1] = 0
	n, code = Testsome(hs, indices, sts, codes)
	succeeds(t, code)
	require.Equal(t, 1, n)
	assert.EqualValues(t, 0, indices[0])
	assert.Zero(t, codes[0])
}

func TestAwaitFinishesNoRequest(t *testing.T) {
	receive, _ := irecv(t, 5, 1)
	done(t, isend(t, KindSend, 5, 1), 0)
	code := Await([]int64{0, receive})
	for code == Interrupted {
		code = Await([]int64{0, receive})
	}
	succeeds(t, code)
	done(t, receive, 0)
}

func TestLongMessageIsTruncated(t *testing.T) {
	receive, into := irecv(t, 5, 1)
	done(t, isend(t, KindSend, 5, 7, 8), 0)
	var st Status
	code := waited(Interrupted, receive, &st)
	fails(t, errs.Truncate, "8 bytes", code)
	assert.Equal(t, errs.Truncate, errs.Class(st.Error))
	assert.EqualValues(t, 5, st.Tag)
	assert.NotEqualValues(t, 8, into[0])
	isStale(t, receive)
}

func TestPersistentRequestIsStartedAgainAndAgain(t *testing.T) {
	numbers, from := memory[int32](t, 0)
	into, to := memory[int32](t, 0)
	send, code := P2PInit(KindSend, CommSelf, from, 1, typeOf("INT"), 0, 5)
	succeeds(t, code)
	receive, code := P2PInit(KindRecv, CommSelf, to, 1, typeOf("INT"), 0, 5)
	succeeds(t, code)
	assert.Equal(t, empty, done(t, receive, 0), "an inactive request is complete")
	for i := range int32(3) {
		numbers[0] = i + 1
		assert.True(t, RequestInactive(send))
		succeeds(t, Start(receive))
		assert.False(t, RequestInactive(receive))
		fails(t, errs.Request, "active: wait for it first", Start(receive))
		succeeds(t, Start(send))
		done(t, send, 0)
		assert.Equal(t, Status{Source: 0, Tag: 5, Bytes: 4}, done(t, receive, 0))
		assert.Equal(t, i+1, into[0])
		assert.True(t, RequestInactive(receive))
	}
	i, code := Waitany([]int64{send, receive}, nil)
	succeeds(t, code)
	assert.Equal(t, -1, i, "inactive requests don't count")
	for _, req := range []int64{send, receive} {
		succeeds(t, RequestFree(req))
		fails(t, errs.Request, "has been completed or freed", Start(req))
		assert.True(t, RequestOver(req))
	}
}

func TestPersistentCollective(t *testing.T) {
	numbers, from := memory[int32](t, 0)
	sums, to := memory[int32](t, 0)
	req, code := CollInit(int(coll.KindAllreduce), CommSelf, from, 1, typeOf("INT"), to, 1, typeOf("INT"), int64(op.Sum), 0)
	succeeds(t, code)
	for i := range int32(3) {
		numbers[0] = i + 1
		succeeds(t, Start(req))
		done(t, req, 0)
		assert.Equal(t, i+1, sums[0])
	}
	succeeds(t, RequestFree(req))
	assert.True(t, RequestOver(req))
}

func TestOnlyPersistentRequestsAreStarted(t *testing.T) {
	receive, _ := irecv(t, 5, 1)
	fails(t, errs.Request, "not persistent", Start(receive))
	succeeds(t, RequestCancel(receive))
	done(t, receive, 0)
	fails(t, errs.Request, "has been completed or freed", Start(receive))
	fails(t, errs.Request, "has been completed or freed", Start(0))
	assert.False(t, RequestInactive(receive))
}

func TestGeneralizedRequestIsCompletedByTheProgram(t *testing.T) {
	req, code := GrequestStart()
	succeeds(t, code)
	complete, code := Test(req, nil)
	succeeds(t, code)
	assert.False(t, complete)
	succeeds(t, GrequestComplete(req))
	assert.Equal(t, empty, done(t, req, 0))
	isStale(t, req)

	receive, _ := irecv(t, 5, 1)
	fails(t, errs.Request, "not a generalized one", GrequestComplete(receive))
	succeeds(t, RequestCancel(receive))
	done(t, receive, 0)
	fails(t, errs.Request, "has been completed or freed", GrequestComplete(req))
}

func TestGeneralizedRequestWakesTheThreadThatWaits(t *testing.T) {
	req, code := GrequestStart()
	succeeds(t, code)
	completed := make(chan Code)
	go func() { completed <- GrequestComplete(req) }()
	done(t, req, 0)
	succeeds(t, <-completed)
}
