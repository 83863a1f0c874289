package mpi

import (
	"slices"

	"gormapy/gocore/coll"
)

// starter starts the operation of a persistent request and returns the handle of a
// request for it.
type starter func() (req int64, code Code)

// persist makes a persistent request of a starter. The starter checks the arguments
// again, since the buffers may have changed.
func persist(start starter) int64 {
	r := &Request{persistent: true, start: start}
	r.inactive.Store(true)
	return reqs.add(r)
}

// renew starts the operation of a persistent request that has a starter.
func (r *Request) renew() Code {
	h, code := r.start()
	if code != 0 {
		return code
	}
	r.op = reqs.take(h).op
	return 0
}

// CollInit makes a persistent request of a collective with equal counts.
func CollInit(kind int, comm, saddr, scount, stype, raddr, rcount, rtype, oph int64, root int) (req int64, code Code) {
	defer Contain(&code)
	c, e := getComm(comm)
	if e != nil {
		return 0, CodeOf(e)
	}
	if e := c.args(new(coll.Args), kind, saddr, scount, stype, raddr, rcount, rtype, oph, root); e != nil {
		return 0, CodeOf(e)
	}
	return persist(func() (int64, Code) {
		return Coll(kind, comm, saddr, scount, stype, raddr, rcount, rtype, oph, root)
	}), 0
}

// CollvInit makes a persistent request of a collective with a count for each
// rank. It keeps copies of the counts and displacements.
func CollvInit(kind int, comm int64, s, r Side, root int) (req int64, code Code) {
	defer Contain(&code)
	if _, e := getComm(comm); e != nil {
		return 0, CodeOf(e)
	}
	for _, side := range []*Side{&s, &r} {
		if len(side.Counts) > 0 && side.Addr != InPlace {
			if _, e := committedType(side.Type); e != nil {
				return 0, CodeOf(e)
			}
		}
		side.Counts, side.Displs = slices.Clone(side.Counts), slices.Clone(side.Displs)
	}
	return persist(func() (int64, Code) { return Collv(kind, comm, &s, &r, root, true) }), 0
}

// SideAt returns the side whose n counts and m displacements lie at addresses.
func SideAt(addr, n, counts, m, displs, typ int64) Side {
	return Side{Addr: addr, Counts: longs(counts, n), Displs: longs(displs, m), Type: typ}
}
