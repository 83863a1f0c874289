package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
)

// freeLater frees a communicator at the end of the test.
func freeLater(t testing.TB, comm int64) int64 {
	t.Helper()
	t.Cleanup(func() {
		req, code := CommFree(comm)
		done(t, req, code)
	})
	return comm
}

func TestPredefinedCommunicators(t *testing.T) {
	for name, comm := range map[string]int64{"world": CommWorld, "self": CommSelf} {
		t.Run(name, func(t *testing.T) {
			assert.Zero(t, CommRank(comm))
			assert.Equal(t, 1, CommSize(comm))
			assert.Equal(t, []int{0}, worldRanks(t, CommGroup(comm)))
			succeeds(t, blocking(func(pending *int64) Code { return Barrier(comm, pending) }))
			_, code := CommFree(comm)
			fails(t, errs.Comm, "COMM_WORLD and COMM_SELF can't be freed", code)
		})
	}
	assert.Equal(t, Ident, CommCompare(CommWorld, CommWorld))
	assert.Equal(t, Congruent, CommCompare(CommWorld, CommSelf))
}

func TestCommunicatorsAreMadeOfOthers(t *testing.T) {
	group := groupOf(t, 0)
	for name, make := range map[string]func() (int64, Code){
		"dup":          func() (int64, Code) { return CommDup(CommWorld) },
		"split":        func() (int64, Code) { return CommSplit(CommWorld, 3, 1) },
		"split type":   func() (int64, Code) { return CommSplitType(CommWorld, CommTypeShared, 0) },
		"create":       func() (int64, Code) { return CommCreate(CommWorld, group) },
		"create group": func() (int64, Code) { return CommCreateGroup(CommWorld, group, 5) },
	} {
		t.Run(name, func(t *testing.T) {
			req, code := make()
			comm := result(t, req, code)
			assert.Equal(t, 1, CommSize(comm))
			assert.Equal(t, Congruent, CommCompare(CommWorld, comm))

			// Its messages are apart from those of the parent.
			_, sent := memory[int32](t, 42)
			received, into := memory[int32](t, 0)
			req, code = P2P(KindSend, comm, sent, 1, typeOf("INT"), 0, 1)
			succeeds(t, code)
			found, code := Iprobe(CommWorld, 0, 1, nil, nil)
			succeeds(t, code)
			assert.False(t, found)
			receive, code := P2P(KindRecv, comm, into, 1, typeOf("INT"), 0, 1)
			done(t, receive, code)
			done(t, req, 0)
			assert.EqualValues(t, 42, received[0])

			req, code = CommFree(comm)
			done(t, req, code)
			fails(t, errs.Comm, "has been freed", -CommSize(comm))
		})
	}
}

func TestRankOutsideOfTheNewCommunicatorGetsNull(t *testing.T) {
	for name, make := range map[string]func() (int64, Code){
		"split":      func() (int64, Code) { return CommSplit(CommWorld, Undefined, 0) },
		"split type": func() (int64, Code) { return CommSplitType(CommWorld, Undefined, 0) },
		"create":     func() (int64, Code) { return CommCreate(CommWorld, GroupEmpty) },
	} {
		t.Run(name, func(t *testing.T) {
			req, code := make()
			assert.EqualValues(t, CommNull, result(t, req, code))
		})
	}
	req, code := CommCreateGroup(CommWorld, GroupEmpty, 0)
	succeeds(t, code)
	assert.Zero(t, req, "there is nothing to wait for")
}

func TestIdupGivesAHandleThatIsFilledLater(t *testing.T) {
	comm, req, code := CommIdup(CommSelf)
	done(t, req, code)
	freeLater(t, comm)
	assert.Equal(t, Congruent, CommCompare(CommSelf, comm))
}

func TestContextsOfCommunicatorsDiffer(t *testing.T) {
	contexts := map[uint32]bool{}
	for range 20 {
		req, code := CommDup(CommSelf)
		c, e := getComm(freeLater(t, result(t, req, code)))
		succeeds(t, CodeOf(e))
		require.False(t, contexts[c.ctx], "context %d is used twice", c.ctx)
		contexts[c.ctx] = true
	}
}

func TestCommunicatorErrors(t *testing.T) {
	elsewhere := groupOf(t, 0, 3)
	second := func(_ int64, code Code) Code { return code }
	var pending int64
	_, _, idup := CommIdup(CommNull)
	for name, c := range map[string]struct {
		class errs.Class
		text  string
		code  Code
	}{
		"size of null":            {errs.Comm, "COMM_NULL", -CommSize(CommNull)},
		"rank of null":            {errs.Comm, "COMM_NULL", -CommRank(CommNull)},
		"no such handle":          {errs.Comm, "has been freed, or is not made yet", -CommRank(noHandle)},
		"group of null":           {errs.Comm, "COMM_NULL", int(-CommGroup(CommNull))},
		"comparison with null":    {errs.Comm, "COMM_NULL", -CommCompare(CommSelf, CommNull)},
		"comparison of null":      {errs.Comm, "COMM_NULL", -CommCompare(CommNull, CommSelf)},
		"barrier":                 {errs.Comm, "COMM_NULL", Barrier(CommNull, &pending)},
		"dup":                     {errs.Comm, "COMM_NULL", second(CommDup(CommNull))},
		"idup":                    {errs.Comm, "COMM_NULL", idup},
		"free":                    {errs.Comm, "COMM_NULL", second(CommFree(CommNull))},
		"negative color":          {errs.Arg, "the color -1 is negative; use MPI.UNDEFINED", second(CommSplit(CommWorld, -1, 0))},
		"unknown type":            {errs.Arg, "the type 99 is not supported", second(CommSplitType(CommWorld, 99, 0))},
		"create without group":    {errs.Group, "GROUP_NULL", second(CommCreate(CommWorld, GroupNull))},
		"create of others":        {errs.Group, "world rank 3 of the group is not in the communicator", second(CommCreate(CommWorld, elsewhere))},
		"create group of others":  {errs.Group, "world rank 3 of the group", second(CommCreateGroup(CommWorld, elsewhere, 0))},
		"create group, wrong tag": {errs.Tag, "the tag -1 is not between 0 and", second(CommCreateGroup(CommWorld, GroupEmpty, -1))},
	} {
		t.Run(name, func(t *testing.T) { fails(t, c.class, c.text, c.code) })
	}
}

func TestDroppedCommunicatorIsGone(t *testing.T) {
	req, code := CommDup(CommSelf)
	comm := result(t, req, code)
	succeeds(t, CommDrop(comm))
	fails(t, errs.Comm, "has been freed", -CommSize(comm))
	fails(t, errs.Comm, "has been freed", CommDrop(comm))
	for _, predefined := range []int64{CommWorld, CommSelf} {
		fails(t, errs.Comm, "can't be dropped", CommDrop(predefined))
	}
	fails(t, errs.Comm, "COMM_NULL", CommDrop(CommNull))
}
