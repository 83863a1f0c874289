package mpi

import (
	"slices"

	"gormapy/gocore/coll"
)

// starter starts the operation of a persistent request. That of a collective checks its arguments again, since the buffers may have
// changed.
type starter func() (operation, Code)

// persist makes a persistent request of the starter of a collective, which advances in any wait of this process.
func persist(start starter) int64 {
	r := &Request{persistent: true, start: func() (operation, Code) {
		o, code := start()
		if code == 0 {
			advanceInBackground(o)
		}
		return o, code
	}}
	r.inactive.Store(true)
	return reqs.add(r)
}

// renew starts the operation of a persistent request that has a starter.
func (r *Request) renew() (code Code) {
	op, code := r.start()
	if code == 0 {
		r.op = op
	}
	return code
}

// CollInit makes a persistent request of a collective with equal counts.
func CollInit(kind int, comm, saddr, scount, stype, raddr, rcount, rtype, oph int64, root int) (req int64, code Code) {
	defer Contain(&code)
	c, e := getUsableComm(comm)
	if e != nil {
		return 0, CodeOf(e)
	}
	if c.remote != nil {
		a := interArgs{coll.Kind(kind), saddr, scount, stype, raddr, rcount, rtype, oph, root, true}
		if _, e := c.interColl(&a); e != nil {
			return 0, CodeOf(e)
		}
	} else if e := c.args(new(coll.Args), kind, saddr, scount, stype, raddr, rcount, rtype, oph, root); e != nil {
		return 0, CodeOf(e)
	}
	return persist(func() (operation, Code) {
		return startColl(kind, comm, saddr, scount, stype, raddr, rcount, rtype, oph, root)
	}), 0
}

// CollvInit makes a persistent request of a collective with a count for each
// rank. It keeps copies of the counts and displacements.
func CollvInit(kind int, comm int64, s, r Side, root int) (req int64, code Code) {
	defer Contain(&code)
	if _, e := collv(kind, comm, &s, &r, root); e != nil {
		return 0, CodeOf(e)
	}
	for _, side := range []*Side{&s, &r} {
		side.Counts, side.Displs = slices.Clone(side.Counts), slices.Clone(side.Displs)
	}
	return persist(func() (operation, Code) { return startCollv(kind, comm, &s, &r, root) }), 0
}

// SideAt returns the side whose n counts and m displacements lie at addresses.
func SideAt(addr, n, counts, m, displs, typ int64) Side {
	return Side{Addr: addr, Counts: longs(counts, n), Displs: longs(displs, m), Type: typ}
}
