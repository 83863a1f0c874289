package mpi

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/sys"
)

// Agree and Shrink. Both are an instance of package agreement. Each process contributes which processes it knows to have
// failed, and what only Agree needs. The decision has the failed processes that any has known, and what only Shrink
// needs: the coordinator that combines the contributions draws the context of the new communicator, and takes its barrier block. If another
// coordinator takes over before anybody has accepted that, the context is not used, and the block stays taken until the job ends.

// The calls that agree. A process can't take part in the other one.
const (
	mixedCalls = iota // a decision: the processes have not made the same call
	callAgree
	callShrink
)

// The words of a contribution: the call, the flag, and the sets of the failed and the acknowledged processes.
const (
	contributedCall = iota
	contributedFlag
	contributedSets
)

// The words of a decision; the set of the failed processes follows.
const (
	decidedCall    = iota
	decidedFlag    // the bitwise and of the flags
	decidedUnacked // 1: not all have acknowledged all failures
	decidedContext
	decidedDrawer // of the context, as a process of the union
	decidedBlock
	decidedFailed
)

// set is a set of processes.
type set []int64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) add(p int)      { s[p/64] |= 1 << (p % 64) }
func (s set) has(p int) bool { return s[p/64]&(1<<(p%64)) != 0 }

func wordsOf(value []byte) []int64 {
	words := make([]int64, len(value)/8)
	for i := range words {
		words[i] = int64(binary.LittleEndian.Uint64(value[8*i:]))
	}
	return words
}

func valueOf(words []int64) (value []byte) {
	for _, w := range words {
		value = binary.LittleEndian.AppendUint64(value, uint64(w))
	}
	return value
}

// agreeing is Agree or Shrink as an operation.
type agreeing struct {
	c    *Comm
	call int64
	flag int64 // address that Iagree writes to, 0: none
	gen  uint32

	decision atomic.Pointer[[]int64]

	mu     sync.Mutex
	over   bool
	err    *errs.Error
	result int64 // the flag, or the handle of the new communicator
}

// CommAgree begins an agreement. The request's result is the bitwise and of the flags of all processes. It ends with ERR_PROC_FAILED if there
// is a failed process that not all have acknowledged.
func CommAgree(h int64, flag int32) (req int64, code Code) {
	defer Contain(&code)
	a, e := agree(h, callAgree, flag)
	if e != nil {
		return 0, CodeOf(e)
	}
	return inBackground(a), 0
}

// CommIagree begins an agreement of the C int at an address, where the result is stored.
func CommIagree(h, addr int64) (req int64, code Code) {
	defer Contain(&code)
	flag := int32(0)
	if fault := sys.Touch(func() { flag = *(*int32)(pointer(addr)) }); fault != nil {
		return 0, classError(errs.Buffer, "Iagree: %v", fault)
	}
	a, e := agree(h, callAgree, flag)
	if e != nil {
		return 0, CodeOf(e)
	}
	a.flag = addr
	return inBackground(a), 0
}

// CommShrink begins to make a communicator of the processes that have not failed. The request's result is its handle.
func CommShrink(h int64) (req int64, code Code) {
	defer Contain(&code)
	a, e := agree(h, callShrink, 0)
	if e != nil {
		return 0, CodeOf(e)
	}
	return inBackground(a), 0
}

// CommIshrink is CommShrink for a program that needs the handle at once. The handle names
// the new communicator once the request is complete.
func CommIshrink(h int64) (made, req int64, code Code) {
	defer Contain(&code)
	a, e := agree(h, callShrink, 0)
	if e != nil {
		return 0, 0, CodeOf(e)
	}
	a.result = comms.reserve()
	return a.result, inBackground(a), 0
}

// agree calls the next agreement of a communicator.
func agree(h int64, call int64, flag int32) (*agreeing, *errs.Error) {
	c, e := getComm(h)
	if e != nil {
		return nil, e
	}
	a := &agreeing{c: c, call: call, gen: c.pt.Generation()}
	f := &c.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	c.lookForFailed()
	m := c.agreements()
	c.lookForAbsent()
	failed, acked := newSet(len(c.union())), newSet(len(c.union()))
	for i, p := range f.failed {
		failed.add(p)
		if i < f.acked {
			acked.add(p)
		}
	}
	f.calls[m.Next()] = a // first: the call can decide at once
	m.Call(valueOf(slices.Concat([]int64{contributedCall: call, contributedFlag: int64(flag)}, failed, acked)))
	return a, nil
}

// combine makes the decision of the contributions, under faults.mu; see package agreement.
func (c *Comm) combine(contributions [][]byte, absent []bool) []byte {
	n := len(c.union())
	failed, acked := newSet(n), newSet(n)
	for i := range acked {
		acked[i] = -1
	}
	call, flag := int64(-1), int64(-1)
	for p, value := range contributions {
		if absent[p] {
			failed.add(p)
		}
		words := wordsOf(value)
		if len(words) != contributedSets+2*len(failed) {
			continue
		}
		switch call {
		case -1:
			call = words[contributedCall]
		case words[contributedCall]:
		default:
			call = mixedCalls
		}
		flag &= words[contributedFlag]
		for i := range failed {
			failed[i] |= words[contributedSets+i]
			acked[i] &= words[contributedSets+len(failed)+i]
		}
	}
	d := make([]int64, decidedFailed, decidedFailed+len(failed))
	d[decidedCall], d[decidedFlag], d[decidedDrawer], d[decidedBlock] = call, flag, int64(c.coll.Chan.Rank), -1
	for i := range failed {
		if failed[i]&^acked[i] != 0 {
			d[decidedUnacked] = 1
		}
	}
	if call == callShrink {
		local, remote := c.remaining(failed)
		left := c.worldGroup(slices.Concat(local, remote)).ranks
		d[decidedContext] = offerCtx(left)
		if c.remote == nil {
			d[decidedBlock] = takeBlock(left)
		}
	}
	return valueOf(append(d, failed...))
}

// remaining returns the processes of both groups that have not failed; those of an intracommunicator have one.
func (c *Comm) remaining(failed set) (local, remote []int) {
	both := [2][]int{places(len(c.union()), 0)}
	if s := c.coll.Sides; s != nil {
		both = [2][]int{slices.Clone(s.Local), slices.Clone(s.Remote)}
	}
	for i := range both {
		both[i] = slices.DeleteFunc(both[i], failed.has)
	}
	return both[0], both[1]
}

// decide takes the decision, under faults.mu.
func (a *agreeing) decide(value []byte) {
	words := wordsOf(value)
	a.decision.Store(&words)
}

// Advance implements operation.
func (a *agreeing) Advance() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.over:
	case a.decision.Load() != nil:
		a.over = true
		a.conclude(*a.decision.Load())
	default:
		a.err = a.c.pt.Dropped(a.gen)
		a.over = a.err != nil
	}
	return a.over
}

// conclude makes the result of the decision, under mu.
func (a *agreeing) conclude(d []int64) {
	c := a.c
	failed := set(d[decidedFailed:])
	var names []string
	c.faults.mu.Lock()
	for p, world := range c.union() {
		if failed.has(p) {
			c.noteFailed(p) // so that it can be acknowledged, even if this process has not noticed yet
			names = append(names, proc.eng.Name(world))
		}
	}
	c.faults.mu.Unlock()
	switch {
	case d[decidedCall] != a.call:
		a.err = errs.New(errs.Other, "%s: the ranks of the communicator have not all made the same call: some have called Agree, others Shrink", a.name())
	case a.call == callAgree:
		a.result = d[decidedFlag]
		if a.flag != 0 {
			if fault := sys.Touch(func() { *(*int32)(pointer(a.flag)) = int32(a.result) }); fault != nil {
				a.err = errs.New(errs.Buffer, "Iagree: %v", fault)
			}
		}
		if d[decidedUnacked] != 0 && a.err == nil {
			a.err = errs.New(errs.ProcFailed, "Agree: not all ranks of the communicator have acknowledged, by Ack_failed, that %s failed", strings.Join(names, " and "))
		}
	default:
		a.shrink(d, failed)
	}
}

// shrink makes the new communicator.
func (a *agreeing) shrink(d []int64, failed set) {
	c := a.c
	local, remote := c.remaining(failed)
	made, e := takeCtx(d[decidedContext], c.union()[d[decidedDrawer]])
	if e == nil && c.remote != nil && (len(remote) == 0 || len(local) == 0) {
		e = errs.New(errs.ProcFailed, "Shrink: all processes of one of the groups have failed, and no intercommunicator has an empty group")
	}
	if a.err = e; e != nil {
		if a.result != 0 {
			comms.take(a.result)
		}
		return
	}
	group, me := c.worldGroup(local), slices.Index(local, c.coll.Chan.Rank)
	var n *Comm
	if c.remote != nil {
		n = newIntercomm(made, group, c.worldGroup(remote), me, c.coll.Sides.Local[0] > 0)
	} else {
		n = newComm(made, group, me, int(d[decidedBlock]))
	}
	a.result = n.publish(a.result)
}

// Check implements operation. An agreement never becomes impossible: who has ended is not waited for.
func (a *agreeing) Check() error {
	a.c.faults.mu.Lock()
	defer a.c.faults.mu.Unlock()
	a.c.lookForAbsent()
	if a.c.faults.closed && a.decision.Load() == nil {
		return errs.New(errs.Comm, "%s can't complete: the communicator has been freed", a.name())
	}
	return nil
}

// Abandon implements operation. The others still get this process's contribution.
func (a *agreeing) Abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.over, a.err = true, errs.New(errs.Other, "%s was given up", a.name())
	}
}

// Err implements operation.
func (a *agreeing) Err() *errs.Error { return a.err }

func (a *agreeing) handle() int64 { return a.result }

func (a *agreeing) name() string {
	if a.call == callAgree {
		return "Agree"
	}
	return "Shrink"
}

func (a *agreeing) describe(why *engine.Reason) {
	why.Call, why.Ctx, why.Info = job.CallCollective, uint64(a.c.ctx), a.name()
}
