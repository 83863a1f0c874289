package mpi

import (
	"slices"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
)

// Intercommunicators. Both groups have one context. In its first channel a rank is its rank in its own group, and
// the ranks of World are those of the other group, so that messages go from one group to the other. In its second channel the
// ranks are those of the union: first one group, then the other, in an order on which all agree. It
// carries collectives (coll.Sides), and what makes communicators of this one.

// newIntercomm makes the intercommunicator with context d on this process, which is the given rank of the local group.
// remoteFirst reports whether the remote group is the first one of the union.
func newIntercomm(d drawn, local, remote *Group, rank int, remoteFirst bool) *Comm {
	c := &Comm{ctx: d.ctx, serial: d.serial, group: local, remote: remote, rank: rank, size: len(local.ranks), block: -1}
	low, high := local, remote
	if remoteFirst {
		low, high = remote, local
	}
	s := &coll.Sides{Local: places(len(local.ranks), 0), Remote: places(len(remote.ranks), len(local.ranks)), Me: rank}
	if low == remote {
		s.Local, s.Remote = places(len(local.ranks), len(remote.ranks)), places(len(remote.ranks), 0)
	}
	union, me := slices.Concat(low.ranks, high.ranks), s.Local[rank]
	c.pt = proc.p2p.Open(channelOf(d.ctx, channelMessages), rank, remote.ranks)
	c.pt.Acknowledge(c.acknowledged)
	c.pt.Name(func(r int) string { return s.Name(s.Remote[r]) })
	c.coll = &coll.Comm{Chan: proc.p2p.Open(channelOf(d.ctx, channelInternal), me, union), Rank: me, Size: len(union), Sides: s}
	c.coll.Chan.SetInternal()
	c.coll.Chan.Name(s.Name)
	c.coll.Listen()
	inUse.add(c)
	return c
}

// places returns n numbers from first on.
func places(n, first int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = first + i
	}
	return list
}

// peers returns the number of ranks that this one sends messages to.
func (c *Comm) peers() int {
	if c.remote != nil {
		return len(c.remote.ranks)
	}
	return c.size
}

// union returns the world ranks of those that take part in collectives.
func (c *Comm) union() []int { return c.coll.Chan.World }

// CommTestInter returns 1 for an intercommunicator, else 0.
func CommTestInter(h int64) int {
	c, e := getComm(h)
	switch {
	case e != nil:
		return -CodeOf(e)
	case c.remote != nil:
		return 1
	}
	return 0
}

func getIntercomm(h int64) (*Comm, *errs.Error) {
	c, e := getComm(h)
	if e == nil && c.remote == nil {
		e = errs.New(errs.Comm, "this is an intracommunicator, which has no remote group")
	}
	return c, e
}

// getIntracomm returns the communicator of a handle for a call that intercommunicators don't have.
func getIntracomm(h int64, call string) (*Comm, *errs.Error) {
	c, e := getUsableComm(h)
	if e == nil && c.remote != nil {
		e = errs.New(errs.Comm, "%s: this is an intercommunicator; an intracommunicator is needed (Merge makes one)", call)
	}
	return c, e
}

// CommRemoteSize returns the number of ranks of an intercommunicator's remote group.
func CommRemoteSize(h int64) int {
	c, e := getIntercomm(h)
	if e != nil {
		return -CodeOf(e)
	}
	return c.peers()
}

// CommRemoteGroup makes the remote group of an intercommunicator.
func CommRemoteGroup(h int64) int64 {
	c, e := getIntercomm(h)
	if e != nil {
		return -int64(CodeOf(e))
	}
	return addGroup(c.remote.ranks)
}
