package mpi

import (
	"slices"
	"sync"
	"sync/atomic"

	"gormapy/gocore/agreement"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
)

// # Failures of processes
//
// Communication with a process that has ended ends with ERR_PROC_FAILED (engine/doc.go says how its end is found). With that
// a program can go on if its job does (mpiexec --enable-recovery). For this a communicator has
//
//   - the failed processes that its program has been told of, in an order that does not change, and how many
//     of them are acknowledged: a receive from any source ignores these;
//   - whether it is revoked;
//   - a member of agreements (package agreement), which Agree and Shrink use (agreeing.go).
//
// Revoke is a reliable broadcast: a process that learns that a communicator is revoked tells all others before it does anything
// else with it. So if a process that lives has learnt it, all that live do, whoever has died meanwhile. All waits
// in the communicator end, because their checks look at the channels (p2p.Channel.Revoke); the program's threads are woken.
//
// Messages of this kind (KindFault) are handled whatever the program does. They can arrive before the communicator is made here, and
// are kept then; and after it has been freed, as the forwarded ones of Revoke do, when another communicator has
// its context. So they carry its serial number.

// The kinds of messages, beside those of package agreement.
const (
	faultRevoke = agreement.Leave + 1 + iota
	faultFreed  // the sender has freed the communicator alone, and still takes part in agreements
)

// faults is what a communicator knows of failures. Processes are numbered as in the union.
type faults struct {
	revoked atomic.Bool
	left    atomic.Bool // another process has freed the communicator alone
	open    bool        // the communicator is made, under earlyFaults.mu

	mu     sync.Mutex
	closed bool   // this process takes no part any more
	known  []bool // by process: it is in failed
	failed []int
	acked  int                  // how many of failed are acknowledged
	member *agreement.Member    // nil: there has been no agreement
	calls  map[uint32]*agreeing // by instance
}

// fault is a message that has come for a communicator which is not made yet.
type fault struct {
	src     int
	head    fabric.Header
	payload []byte
}

// earlyFaults are the faults for communicators that are not made yet, and those that have come too late. They can't be
// told apart, so the oldest are dropped.
var earlyFaults struct {
	mu   sync.Mutex
	list []fault
}

const maxEarlyFaults = 4096

// openFaults handles what has come for a communicator while it was being made, and what will come.
func (c *Comm) openFaults() {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	early := &earlyFaults
	early.mu.Lock()
	c.faults.open = true
	var mine []fault
	early.list = slices.DeleteFunc(early.list, func(f fault) bool {
		yes := c.meant(&f.head)
		if yes {
			mine = append(mine, f)
		}
		return yes
	})
	early.mu.Unlock()
	for i := range mine {
		c.handleFault(&mine[i])
	}
}

// meant reports whether a fault is for this communicator.
func (c *Comm) meant(h *fabric.Header) bool { return h.Ctx == c.ctx && uint32(h.A) == c.serial }

// onFault handles a KindFault.
func onFault(src int, h *fabric.Header, payload []byte) {
	if h.Gen != proc.p2p.Generation() {
		return
	}
	f := fault{src, *h, slices.Clone(payload)}
	early := &earlyFaults
	early.mu.Lock()
	c := inUse.get(h.Ctx)
	if c == nil || !c.faults.open || !c.meant(h) {
		c = nil
		if early.list = append(early.list, f); len(early.list) > maxEarlyFaults {
			early.list = slices.Delete(early.list, 0, 1)
		}
	}
	early.mu.Unlock()
	if c != nil {
		c.faults.mu.Lock()
		defer c.faults.mu.Unlock()
		c.handleFault(&f)
	}
}

// handleFault handles a fault, under faults.mu.
func (c *Comm) handleFault(f *fault) {
	if c.faults.closed {
		return
	}
	from, kind := int(f.head.Src), agreement.Kind(f.head.Flags&^engine.FlagUrgent)
	if union := c.union(); from < 0 || from >= len(union) || union[from] != f.src || f.head.B > uint64(len(f.payload)) {
		return
	}
	switch kind {
	case faultRevoke:
		c.revoke()
		return
	case faultFreed:
		c.freedElsewhere()
		return
	}
	m := agreement.Message{Kind: kind, Instance: f.head.Aux, Value: f.payload[:f.head.B], By: int(f.head.Tag)}
	if m.By >= 0 {
		m.Accepted = f.payload[f.head.B:]
	}
	if kind == agreement.Leave {
		c.freedElsewhere()
	}
	c.agreements().Receive(from, &m)
}

// freedElsewhere records that another process has freed the communicator.
func (c *Comm) freedElsewhere() {
	c.faults.left.Store(true)
	proc.me.Ring()
}

// sendFault sends a fault to a process of the union.
func (c *Comm) sendFault(to int, m *agreement.Message) {
	h := fabric.Header{Kind: fabric.KindFault, Flags: uint8(m.Kind) | engine.FlagUrgent, Gen: proc.p2p.Generation(), Ctx: c.ctx, A: uint64(c.serial),
		Src: int32(c.coll.Chan.Rank), Aux: m.Instance, Tag: int32(m.By), B: uint64(len(m.Value))}
	payload := slices.Concat(m.Value, m.Accepted)
	h.Len = uint64(len(payload))
	_, _ = proc.eng.Send(c.union()[to], &h, payload, nil, nil)
}

// CommRevoke revokes a communicator: operations in it end with ERR_REVOKED at all processes.
func CommRevoke(h int64) (code Code) {
	defer Contain(&code)
	c, e := getComm(h)
	if e != nil {
		return CodeOf(e)
	}
	c.revoke()
	return 0
}

func (c *Comm) revoke() {
	if c.faults.revoked.Swap(true) {
		return
	}
	for p, world := range c.union() {
		if p != c.coll.Chan.Rank && !proc.eng.Absent(world) {
			c.sendFault(p, &agreement.Message{Kind: faultRevoke})
		}
	}
	c.pt.Revoke()
	c.coll.Chan.Revoke()
	for _, l := range []*lazyChannel{&c.partitions.lazyChannel, &c.groups, &c.meetings} {
		l.revoke()
	}
	proc.me.Ring()
}

// CommIsRevoked returns 1 if a communicator is revoked, else 0.
func CommIsRevoked(h int64) int {
	c, e := getComm(h)
	switch {
	case e != nil:
		return -CodeOf(e)
	case c.faults.revoked.Load():
		return 1
	}
	return 0
}

// usable returns an error if the communicator is revoked.
func (c *Comm) usable() *errs.Error {
	if c.faults.revoked.Load() {
		return errs.New(errs.Revoked, "the communicator has been revoked: only Shrink, Agree, Get_failed, Ack_failed and Free are possible")
	}
	return nil
}

// CommGetFailed makes the group of the processes of a communicator that are known to have failed.
func CommGetFailed(h int64) (group int64, code Code) {
	defer Contain(&code)
	c, e := getComm(h)
	if e != nil {
		return 0, CodeOf(e)
	}
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.lookForFailed()
	return addGroup(c.worldGroup(c.faults.failed).ranks), 0
}

// CommAckFailed acknowledges the first n of the processes that CommGetFailed returns, and returns how many are acknowledged.
func CommAckFailed(h int64, n int) (acked int, code Code) {
	defer Contain(&code)
	c, e := getComm(h)
	if e != nil {
		return 0, CodeOf(e)
	}
	if n < 0 {
		return 0, classError(errs.Arg, "Ack_failed: the number of processes to acknowledge, %d, is negative", n)
	}
	f := &c.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	c.lookForFailed()
	f.acked = max(f.acked, min(n, len(f.failed)))
	return f.acked, 0
}

// lookForFailed updates failed, under faults.mu.
func (c *Comm) lookForFailed() {
	for p, world := range c.union() {
		if proc.eng.Failed(world) {
			c.noteFailed(p)
		}
	}
}

// noteFailed records that a process has failed, under faults.mu.
func (c *Comm) noteFailed(p int) {
	f := &c.faults
	if f.known == nil {
		f.known = make([]bool, len(c.union()))
	}
	if !f.known[p] {
		f.known[p] = true
		f.failed = append(f.failed, p)
	}
}

// acknowledged reports whether the program has acknowledged the failure of a rank that it receives from.
func (c *Comm) acknowledged(rank int) bool {
	if c.remote != nil {
		rank = c.coll.Sides.Remote[rank]
	}
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	return slices.Contains(c.faults.failed[:c.faults.acked], rank)
}

// agreements returns the communicator's member, under faults.mu.
func (c *Comm) agreements() *agreement.Member {
	f := &c.faults
	if f.member == nil {
		f.calls = map[uint32]*agreeing{}
		f.member = agreement.New(c.coll.Chan.Rank, len(c.union()), c.sendFault, c.combine, func(instance uint32, value []byte) {
			if a := f.calls[instance]; a != nil {
				delete(f.calls, instance)
				a.decide(value)
				proc.me.Ring()
			}
		})
		c.lookForAbsent()
	}
	return f.member
}

// lookForAbsent tells the member, if there is one, which processes take no part any more, under faults.mu.
func (c *Comm) lookForAbsent() {
	if c.faults.member == nil || c.faults.closed {
		return
	}
	for p, world := range c.union() {
		if m := c.faults.member; world != proc.rank && !m.Absent(p) && proc.eng.Absent(world) {
			m.Gone(p)
		}
	}
}

// onGone tells the members of agreements that a process has ended.
func onGone(world int) {
	for _, c := range inUse.all() {
		if slices.Contains(c.union(), world) {
			c.faults.mu.Lock()
			c.lookForAbsent()
			c.faults.mu.Unlock()
		}
	}
}

// whoFailed returns an error that names a process of the communicator that has failed, nil if none has.
func (c *Comm) whoFailed() *errs.Error {
	for _, world := range c.union() {
		if proc.eng.Failed(world) {
			return errs.New(errs.ProcFailed, "the communicator can't be freed by all its processes together: %s", proc.eng.HowGone(world))
		}
	}
	return nil
}

// abandoned reports whether the processes can't free the communicator together any more.
func (c *Comm) abandoned() bool { return c.faults.revoked.Load() || c.faults.left.Load() }

// tellFreed tells the others, who might wait for this process in Free, that it has freed the communicator alone. Without agreements under way
// closeFaults does so.
func (c *Comm) tellFreed() {
	for p, world := range c.union() {
		if p != c.coll.Chan.Rank && !proc.eng.Absent(world) {
			c.sendFault(p, &agreement.Message{Kind: faultFreed})
		}
	}
}

// closeFaults tells the others that this process takes no part in agreements any more. If they have freed the communicator together,
// that is of use only to agreements that were under way: who has lost the coordinator of one asks for its decision.
func (c *Comm) closeFaults() {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	if c.faults.open && !c.faults.closed && (!c.met || c.faults.member != nil) {
		m := c.agreements()
		c.lookForAbsent()
		m.Leave()
	}
	c.faults.closed = true
}

// resetFaults forgets all agreements, within a collective reset.
func (c *Comm) resetFaults() {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.member, c.faults.calls = nil, nil
}
