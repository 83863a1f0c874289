package mpi

import (
	"slices"
	"sync"
	"unsafe"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
)

// Create_group: communicators that some of the ranks make without the others. The
// first rank of the group draws the context and sends it to the others, by messages
// in a channel of the parent's that has the program's tags.

// binding is the message of the first rank.
type binding struct{ ctx, block int64 }

// bind is Create_group as an operation.
type bind struct {
	ch      *p2p.Channel
	group   *Group
	rank    int
	binding []binding // one: sent or received
	msgs    []*p2p.Request

	mu   sync.Mutex
	err  *errs.Error
	made int64
}

// CommCreateGroup begins to make a communicator of the ranks of a group; only they
// call it. Calls that overlap have different tags. The request's result is the
// handle. If the process is not in the group, the request is 0.
func CommCreateGroup(h, group int64, tag int) (req int64, code Code) {
	defer Contain(&code)
	c, g, e := commAndGroup(h, group)
	if e == nil {
		_, e = getIntracomm(h, "Create_group")
	}
	if e != nil {
		return 0, CodeOf(e)
	}
	if tag < 0 || tag > tagUB {
		return 0, classError(errs.Tag, "Create_group: the tag %d is not between 0 and %d", tag, tagUB)
	}
	members, e := c.members(g)
	if e != nil {
		return 0, CodeOf(e)
	}
	b := &bind{ch: c.groups.get(func() *p2p.Channel { return c.sibling(channelGroups) }), group: g, rank: slices.Index(g.ranks, proc.rank), binding: make([]binding, 1)}
	if b.rank < 0 {
		return 0, 0
	}
	data := rawBytes(unsafe.Pointer(&b.binding[0]), int(unsafe.Sizeof(b.binding[0])))
	if b.rank > 0 {
		b.msgs = []*p2p.Request{new(p2p.Request)}
		b.ch.Recv(b.msgs[0], data, members[0], tag)
	} else {
		b.binding[0] = binding{ctx: offerCtx(g.ranks), block: takeBlock(g.ranks)}
		for _, m := range members[1:] {
			r := new(p2p.Request)
			b.msgs = append(b.msgs, r)
			b.ch.Send(r, p2p.Standard, data, m, tag)
		}
	}
	return reqs.add(&Request{op: b}), 0
}

// members returns the ranks in c of a group's processes.
func (c *Comm) members(g *Group) ([]int, *errs.Error) {
	var out []int
	for _, r := range g.ranks {
		i := slices.Index(c.group.ranks, r)
		if i < 0 {
			return nil, errs.New(errs.Group, "world rank %d of the group is not in the communicator", r)
		}
		out = append(out, i)
	}
	return out, nil
}

func (b *bind) Advance() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.made != 0 || b.err != nil {
		return true
	}
	for _, r := range b.msgs {
		if !r.Done() {
			return false
		}
		if e := r.Status().Err; e != nil {
			b.err = e
			return true
		}
	}
	var d drawn
	if d, b.err = takeCtx(b.binding[0].ctx, b.group.ranks[0]); b.err == nil {
		b.made = newComm(d, b.group, b.rank, int(b.binding[0].block)).publish(0)
	}
	return true
}

func (b *bind) Check() error {
	for _, r := range b.msgs {
		if !r.Done() {
			if err := b.ch.Check(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bind) Abandon() {
	for _, r := range b.msgs {
		b.ch.Abandon(r)
	}
	b.err = errs.New(errs.Other, "Create_group was given up")
}

func (b *bind) Err() *errs.Error { return b.err }
func (b *bind) handle() int64    { return b.made }

func (b *bind) describe(why *engine.Reason) {
	why.Call = job.CallCommCreate
	for _, r := range b.msgs {
		if !r.Done() {
			why.Peer = r.Peer()
			return
		}
	}
}
