package mpi

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
)

func TestPointToPointArgumentsAreChecked(t *testing.T) {
	_, addr := memory[int32](t, 1)
	i := typeOf("INT")
	type arguments struct {
		comm, addr, count, typ int64
		peer, tag              int
	}
	for name, c := range map[string]struct {
		kind  int
		a     arguments
		class errs.Class
		text  string
	}{
		"null communicator":    {KindSend, arguments{CommNull, addr, 1, i, 0, 0}, errs.Comm, "COMM_NULL"},
		"freed communicator":   {KindRecv, arguments{noHandle, addr, 1, i, 0, 0}, errs.Comm, "has been freed"},
		"null type":            {KindSend, arguments{CommSelf, addr, 1, 0, 0, 0}, errs.Type, "DATATYPE_NULL"},
		"negative count":       {KindRecv, arguments{CommSelf, addr, -1, i, 0, 0}, errs.Count, "the count -1 is negative"},
		"no memory":            {KindSend, arguments{CommSelf, 0, 1, i, 0, 0}, errs.Buffer, "is the buffer None"},
		"destination":          {KindSend, arguments{CommSelf, addr, 1, i, 1, 0}, errs.Rank, "the destination rank 1 is not in the communicator: its only rank is 0"},
		"source":               {KindRecv, arguments{CommWorld, addr, 1, i, 4, 0}, errs.Rank, "this process is the whole job: start more by mpiexec"},
		"send to any":          {KindSsend, arguments{CommSelf, addr, 1, i, AnySource, 0}, errs.Rank, "the destination rank -1"},
		"below the null":       {KindRecv, arguments{CommSelf, addr, 1, i, -3, 0}, errs.Rank, "the source rank -3"},
		"send with any tag":    {KindSend, arguments{CommSelf, addr, 1, i, 0, AnyTag}, errs.Tag, "can't be sent with ANY_TAG"},
		"negative tag":         {KindRecv, arguments{CommSelf, addr, 1, i, 0, -2}, errs.Tag, "the tag -2 is not between 0 and 2147483647"},
		"large tag":            {KindSend, arguments{CommSelf, addr, 1, i, 0, tagUB + 1}, errs.Tag, "the tag 2147483648"},
		"tag to the null":      {KindSend, arguments{CommSelf, addr, 1, i, ProcNull, -5}, errs.Tag, "the tag -5"},
		"more than memory has": {KindSend, arguments{CommSelf, addr, math.MaxInt64, i, 0, 0}, errs.Count, "more than memory can hold"},
	} {
		t.Run(name, func(t *testing.T) {
			a, before := c.a, len(reqs.items)
			_, code := P2P(c.kind, a.comm, a.addr, a.count, a.typ, a.peer, a.tag)
			fails(t, c.class, c.text, code)
			_, code = P2PInit(c.kind, a.comm, a.addr, a.count, a.typ, a.peer, a.tag)
			fails(t, c.class, c.text, code)
			var pending int64
			fails(t, c.class, c.text, Blocking(c.kind, a.comm, a.addr, a.count, a.typ, a.peer, a.tag, nil, &pending))
			if c.kind != KindRecv {
				fails(t, c.class, c.text, SendNow(c.kind, a.comm, a.addr, a.count, a.typ, a.peer, a.tag, &pending))
			}
			assert.Zero(t, pending)
			assert.Len(t, reqs.items, before, "a call that fails makes no request")
		})
	}
}

// Sizes around the protocols' limits: nothing, an eager message, the longest one, and
// those that are announced.
var messageSizes = []int{0, 1, 100, 16 << 10, 16<<10 + 1, 1 << 20}

func TestMessageOfEachSizeArrives(t *testing.T) {
	for _, n := range messageSizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			out, from := memory(t, make([]byte, n+1)...)
			in, to := memory(t, make([]byte, n+1)...)
			for i := range out {
				out[i] = byte(i*7 + 1)
			}
			var st Status
			succeeds(t, blocking(func(pending *int64) Code {
				return Sendrecv(CommSelf, [5]int64{from, int64(n), typeOf("BYTE"), 0, 3}, [5]int64{to, int64(n), typeOf("BYTE"), 0, 3}, &st, pending)
			}))
			assert.Equal(t, out[:n], in[:n])
			assert.Zero(t, in[n])
			assert.Equal(t, Status{Source: 0, Tag: 3, Bytes: int64(n)}, st)
		})
	}
}

func TestDerivedTypesAtBothSides(t *testing.T) {
	column := newType(t, TypeVector(typeOf("INT"), 3, 1, 2))
	succeeds(t, TypeCommit(column))
	_, from := memory[int32](t, 1, -1, 2, -1, 3)
	row, to := memory(t, make([]int32, 3)...)
	req, code := Isendrecv(CommSelf, [5]int64{from, 1, column, 0, 3}, [5]int64{to, 3, typeOf("INT"), AnySource, AnyTag})
	assert.Equal(t, Status{Source: 0, Tag: 3, Bytes: 12}, done(t, req, code))
	assert.Equal(t, []int32{1, 2, 3}, row)
}

func TestSendrecvStartsBothOrNeither(t *testing.T) {
	_, addr := memory[int32](t, 1)
	fine, wrong := [5]int64{addr, 1, typeOf("INT"), 0, 3}, [5]int64{addr, 1, typeOf("INT"), 9, 3}
	var pending int64
	fails(t, errs.Rank, "the destination rank 9", Sendrecv(CommSelf, wrong, fine, nil, &pending))
	fails(t, errs.Rank, "the source rank 9", Sendrecv(CommSelf, fine, wrong, nil, &pending))
	_, code := Isendrecv(CommSelf, wrong, fine)
	fails(t, errs.Rank, "the destination rank 9", code)
	found, code := Iprobe(CommSelf, AnySource, AnyTag, nil, nil)
	succeeds(t, code)
	assert.False(t, found, "the send of the second call has not begun")
}

func TestProbeLeavesTheMessage(t *testing.T) {
	found, code := Iprobe(CommSelf, AnySource, 5, nil, nil)
	succeeds(t, code)
	require.False(t, found)
	send := isend(t, KindSsend, 5, 1, 2)
	var st Status
	var wait int64
	code = Probe(CommSelf, AnySource, AnyTag, &st, nil, &wait)
	for code == Interrupted {
		code = Probe(CommSelf, AnySource, AnyTag, &st, nil, &wait)
	}
	succeeds(t, code)
	assert.Equal(t, Status{Source: 0, Tag: 5, Bytes: 8}, st)
	found, code = Iprobe(CommSelf, 0, 5, nil, nil)
	succeeds(t, code)
	assert.True(t, found)
	receive, into := irecv(t, 5, 2)
	done(t, receive, 0)
	done(t, send, 0)
	assert.Equal(t, []int32{1, 2}, into)
}

func TestMatchedMessageIsReceivedByItsHandleOnly(t *testing.T) {
	send := isend(t, KindSsend, 5, 1, 2)
	var msg int64
	var st Status
	eventually(t, func() bool {
		found, code := Iprobe(CommSelf, 0, 5, &st, &msg)
		succeeds(t, code)
		return found
	})
	found, code := Iprobe(CommSelf, 0, 5, nil, nil)
	succeeds(t, code)
	assert.False(t, found, "the message is out of matching")

	into, to := memory(t, make([]int32, 2)...)
	_, code = Mrecv(msg, to, -1, typeOf("INT"))
	fails(t, errs.Count, "is negative", code)
	req, code := Mrecv(msg, to, 2, typeOf("INT"))
	assert.Equal(t, Status{Source: 0, Tag: 5, Bytes: 8}, done(t, req, code))
	done(t, send, 0)
	assert.Equal(t, []int32{1, 2}, into)
	_, code = Mrecv(msg, to, 2, typeOf("INT"))
	fails(t, errs.Request, "MESSAGE_NULL or has been received", code)
}

func TestProbeOfTheNullProcess(t *testing.T) {
	var st Status
	var msg, wait int64
	succeeds(t, Probe(CommSelf, ProcNull, 5, &st, &msg, &wait))
	assert.Equal(t, Status{Source: ProcNull, Tag: AnyTag}, st)
	assert.EqualValues(t, MessageNoProc, msg)
	found, code := Iprobe(CommSelf, ProcNull, 5, nil, nil)
	succeeds(t, code)
	assert.True(t, found)
	req, code := Mrecv(MessageNoProc, 0, 0, typeOf("INT"))
	assert.Equal(t, Status{Source: ProcNull, Tag: AnyTag}, done(t, req, code))

	fails(t, errs.Rank, "the source rank 2", Probe(CommSelf, 2, 5, nil, nil, &wait))
	_, code = Iprobe(CommSelf, 0, -7, nil, nil)
	fails(t, errs.Tag, "the tag -7", code)
}

func TestGoProgramSendsSlices(t *testing.T) {
	comm, err := World()
	require.NoError(t, err)
	assert.Zero(t, comm.Rank())
	assert.Equal(t, 1, comm.Size())
	require.NoError(t, comm.Barrier())

	in := make([]complex128, 3)
	st, err := Exchange(comm, []complex128{1, 2i}, 0, in, AnySource, 3)
	require.NoError(t, err)
	assert.Equal(t, []complex128{1, 2i, 0}, in)
	assert.EqualValues(t, 32, st.Bytes)

	require.NoError(t, Send(comm, []uint16{7}, 0, 4))
	word := make([]uint16, 1)
	st, err = Recv(comm, word, 0, 4)
	require.NoError(t, err)
	assert.Equal(t, []uint16{7}, word)
	assert.Equal(t, Status{Source: 0, Tag: 4, Bytes: 2}, st)

	require.NoError(t, Send(comm, []int8(nil), ProcNull, 4))
	var e *errs.Error
	require.ErrorAs(t, Send(comm, []float32{1}, 9, 4), &e)
	assert.Equal(t, errs.Rank, e.Class)
}

func TestElementTypesHaveTheSizeOfTheirElements(t *testing.T) {
	for name, c := range map[string]struct{ typ, size int64 }{
		"int8": {elementType[int8](), 1}, "uint8": {elementType[uint8](), 1},
		"int16": {elementType[int16](), 2}, "uint16": {elementType[uint16](), 2},
		"int32": {elementType[int32](), 4}, "uint32": {elementType[uint32](), 4},
		"int64": {elementType[int64](), 8}, "uint64": {elementType[uint64](), 8},
		"float32": {elementType[float32](), 4}, "float64": {elementType[float64](), 8},
		"complex64": {elementType[complex64](), 8}, "complex128": {elementType[complex128](), 16},
	} {
		t.Run(name, func(t *testing.T) {
			size, _ := TraceSpan(c.typ, 1)
			assert.Equal(t, c.size, size)
		})
	}
}
