package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
	"gormapy/gocore/rma"
)

// epochCalls are the calls of epochs on a window of one rank.
func epochCalls(win int64) map[string]func() Code {
	wait := func(call func(pending *int64) Code) func() Code { return func() Code { return blocking(call) } }
	return map[string]func() Code{
		"fence":      wait(func(p *int64) Code { return Fence(win, 0, p) }),
		"last fence": wait(func(p *int64) Code { return Fence(win, rma.ModeNoSucceed, p) }),
		"lock":       wait(func(p *int64) Code { return Lock(win, 0, LockExclusive, 0, p) }),
		"lock shared": wait(func(p *int64) Code {
			return Lock(win, 0, LockShared, 0, p)
		}),
		"lock, no check": wait(func(p *int64) Code { return Lock(win, 0, LockExclusive, rma.ModeNoCheck, p) }),
		"lock all":       wait(func(p *int64) Code { return LockAll(win, 0, p) }),
		"unlock":         wait(func(p *int64) Code { return Unlock(win, 0, p) }),
		"unlock all":     wait(func(p *int64) Code { return UnlockAll(win, p) }),
		"flush":          wait(func(p *int64) Code { return Flush(win, 0, p) }),
		"flush all":      wait(func(p *int64) Code { return Flush(win, -1, p) }),
		"drain":          wait(func(p *int64) Code { return CompleteAt(win, -1, p) }),
		"post": func() Code {
			g := WinGroup(win)
			defer GroupFree(g)
			return WinPost(win, g, 0)
		},
		"start": wait(func(p *int64) Code {
			g := WinGroup(win)
			defer GroupFree(g)
			return WinStart(win, g, 0, p)
		}),
		"complete": wait(func(p *int64) Code { return WinComplete(win, p) }),
		"wait":     wait(func(p *int64) Code { return WinWait(win, p) }),
		"free":     func() Code { return WinCheckFree(win) },
		"no locks": func() Code { return WinNoLocks(win, true) },
		"locks":    func() Code { return WinNoLocks(win, false) },
	}
}

func TestEpochsPermitAccess(t *testing.T) {
	for name, c := range map[string]struct{ begin, end []string }{
		"fence":                  {[]string{"fence"}, []string{"last fence"}},
		"lock":                   {[]string{"lock"}, []string{"flush", "flush all", "drain", "unlock"}},
		"shared lock":            {[]string{"lock shared"}, []string{"unlock"}},
		"lock without check":     {[]string{"lock, no check"}, []string{"unlock"}},
		"lock after a fence":     {[]string{"fence", "lock"}, []string{"unlock"}},
		"lock all":               {[]string{"lock all"}, []string{"flush", "flush all", "unlock all"}},
		"post and start":         {[]string{"post", "start"}, []string{"complete", "wait"}},
		"lock after no_locks":    {[]string{"no locks", "locks", "lock"}, []string{"unlock"}},
		"fence, then PSCW":       {[]string{"fence", "last fence", "post", "start"}, []string{"complete", "wait"}},
		"lock while it's posted": {[]string{"post", "lock"}, []string{"unlock", "start", "complete", "wait"}},
	} {
		t.Run(name, func(t *testing.T) {
			win := newWindow(t, rma.FlavorAllocate)
			calls := epochCalls(win)
			_, addr := memory[int32](t, 1)
			put := access(KindPut, win, addr, 1, 0)
			fails(t, errs.RMASync, "rank 0 can't be accessed outside of an epoch", RMA(put))
			for _, call := range c.begin {
				succeeds(t, calls[call]())
			}
			succeeds(t, RMA(put))
			for _, call := range c.end {
				succeeds(t, calls[call]())
			}
			fails(t, errs.RMASync, "rank 0 can't be accessed outside of an epoch", RMA(put))
		})
	}
}

func TestEpochCallsInTheWrongOrder(t *testing.T) {
	for name, c := range map[string]struct {
		before []string
		call   string
		text   string
		after  []string
	}{
		"unlock without lock":         {nil, "unlock", "Unlock of rank 0, which is not locked by this process", nil},
		"unlock all without lock all": {nil, "unlock all", "Unlock_all without Lock_all", nil},
		"flush without lock":          {nil, "flush", "Flush of rank 0, which is not locked", nil},
		"flush all without lock":      {nil, "flush all", "Flush_all: no target is locked", nil},
		"complete without start":      {nil, "complete", "Complete without Start", nil},
		"wait without post":           {nil, "wait", "Wait without Post", nil},
		"flush in a fence epoch":      {[]string{"fence"}, "flush", "not locked", nil},
		"lock twice":                  {[]string{"lock"}, "lock", "this process has locked it already", []string{"unlock"}},
		"lock all after lock":         {[]string{"lock"}, "lock all", "rank 0 is locked (unlock it first)", []string{"unlock"}},
		"lock after lock all":         {[]string{"lock all"}, "lock", "all targets are locked by Lock_all already", []string{"unlock all"}},
		"unlock after lock all":       {[]string{"lock all"}, "unlock", "it was locked by Lock_all; call Unlock_all", []string{"unlock all"}},
		"unlock all after lock":       {[]string{"lock"}, "unlock all", "Unlock_all without Lock_all", []string{"unlock"}},
		"fence after lock":            {[]string{"lock"}, "fence", "Fence inside an epoch: rank 0 is locked", []string{"unlock"}},
		"fence after lock all":        {[]string{"lock all"}, "fence", "Fence inside an epoch: all targets are locked", []string{"unlock all"}},
		"fence after post":            {[]string{"post"}, "fence", "Post exposes this process's part; Wait first", []string{"start", "complete", "wait"}},
		"post twice":                  {[]string{"post"}, "post", "by an earlier Post; Wait first", []string{"start", "complete", "wait"}},
		"start twice":                 {[]string{"post", "start"}, "start", "Start has opened an access epoch", []string{"complete", "wait"}},
		"lock after start":            {[]string{"post", "start"}, "lock", "Start has opened an access epoch", []string{"complete", "wait"}},
		"free after lock":             {[]string{"lock"}, "free", "Free inside an epoch: rank 0 is locked", []string{"unlock"}},
		"free after post":             {[]string{"post"}, "free", "Free inside an epoch: Post exposes", []string{"start", "complete", "wait"}},
		"lock with no_locks":          {[]string{"no locks"}, "lock", "no_locks=true, so it can't be locked", nil},
		"lock all with no_locks":      {[]string{"no locks"}, "lock all", "no_locks=true, so it can't be locked", nil},
	} {
		t.Run(name, func(t *testing.T) {
			calls := epochCalls(newWindow(t, rma.FlavorAllocate))
			for _, call := range c.before {
				succeeds(t, calls[call]())
			}
			fails(t, errs.RMASync, c.text, calls[c.call]())
			for _, call := range c.after {
				succeeds(t, calls[call]()) // the error has left the epoch as it was
			}
			succeeds(t, calls["free"]())
		})
	}
}

func TestEpochArgumentsAreChecked(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	elsewhere := groupOf(t, 1)
	var pending int64
	for name, c := range map[string]struct {
		class errs.Class
		text  string
		code  Code
	}{
		"assertion of a fence":    {errs.Assert, "the assertion 1 has bits that are no MODE_* flag", Fence(win, 1, &pending)},
		"assertion of a lock":     {errs.Assert, "the assertion -1", Lock(win, 0, LockShared, -1, &pending)},
		"assertion of a lock all": {errs.Assert, "the assertion 7", LockAll(win, 7, &pending)},
		"assertion of a post":     {errs.Assert, "the assertion 7", WinPost(win, GroupEmpty, 7)},
		"type of a lock":          {errs.Locktype, "the lock type 3 is neither LOCK_EXCLUSIVE nor LOCK_SHARED", Lock(win, 0, 3, 0, &pending)},
		"rank of a lock":          {errs.Rank, "Lock: rank 1 is not in the window", Lock(win, 1, LockShared, 0, &pending)},
		"rank of an unlock":       {errs.Rank, "Unlock: rank 1 is not in the window", Unlock(win, 1, &pending)},
		"rank of a flush":         {errs.Rank, "Flush: rank 5 is not in the window", Flush(win, 5, &pending)},
		"null group":              {errs.Group, "GROUP_NULL", WinPost(win, GroupNull, 0)},
		"group of a post":         {errs.Group, "Post: rank 0 of the group, rank 1 of COMM_WORLD, is not in the window", WinPost(win, elsewhere, 0)},
		"group of a start":        {errs.Group, "Start: rank 0 of the group, rank 1 of COMM_WORLD", WinStart(win, elsewhere, 0, &pending)},
	} {
		t.Run(name, func(t *testing.T) { fails(t, c.class, c.text, c.code) })
	}
	assert.Zero(t, pending)
}

func TestEpochCallsOnTheNullProcessDoNothing(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	var pending int64
	succeeds(t, Lock(win, ProcNull, LockExclusive, 0, &pending))
	succeeds(t, Flush(win, ProcNull, &pending))
	succeeds(t, Unlock(win, ProcNull, &pending))
	succeeds(t, WinCheckFree(win))
}

func TestFenceThatAssertsAnIdleWindowWaitsForNobody(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	succeeds(t, fence(win, rma.ModeNoPrecede|rma.ModeNoSucceed))
	_, addr := memory[int32](t, 1)
	fails(t, errs.RMASync, "outside of an epoch", RMA(access(KindPut, win, addr, 1, 0)))
}

func TestExposureEpochEndsWithTheAccess(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	calls := epochCalls(win)
	var ended int64
	fails(t, errs.RMASync, "Test without Post", WinTest(win, &ended))
	succeeds(t, calls["post"]())
	succeeds(t, calls["start"]())
	succeeds(t, WinTest(win, &ended))
	require.Zero(t, ended)
	succeeds(t, calls["complete"]())
	succeeds(t, WinTest(win, &ended))
	assert.EqualValues(t, 1, ended)
	fails(t, errs.RMASync, "Wait without Post", calls["wait"]())
}

func TestCollectiveResetEndsWhatIsUnderWay(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	lock(t, win)
	receive, _ := irecv(t, 5, 1)
	send := isend(t, KindSsend, 6, 1)
	code := Reset()
	for code == Interrupted {
		code = Reset()
	}
	succeeds(t, code)

	fails(t, errs.Pending, "dropped by the collective reset", waited(Interrupted, receive, nil))
	fails(t, errs.Pending, "dropped by the collective reset", waited(Interrupted, send, nil))
	var pending int64
	fails(t, errs.RMASync, "not locked", Unlock(win, 0, &pending))
	found, code := Iprobe(CommSelf, AnySource, AnyTag, nil, nil)
	succeeds(t, code)
	assert.False(t, found, "the message was dropped")

	// Communication continues on the same objects.
	lock(t, win)
	unlock(t, win)
	receive, into := irecv(t, 6, 1)
	done(t, isend(t, KindSend, 6, 7), 0)
	done(t, receive, 0)
	assert.EqualValues(t, 7, into[0])
}
