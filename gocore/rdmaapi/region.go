package rdmaapi

import (
	"fmt"

	"gormapy/gocore/fabric"
	"gormapy/gocore/rdmaapi/backend"
)

// memory is a memory region.
type memory struct {
	domain *domain
	addr   uint64 // here
	n      int64
	region backend.Region
}

// Register registers n bytes at addr.
func Register(pd, addr, n, access int64) (h int64) {
	const op = "register"
	defer contain(op, &h)
	d, parent, e := get[*domain](pd, "ProtectionDomain", op)
	if e != nil {
		return code(e)
	}
	s := sizes{"length": n}
	most := d.dev.ctx.Device().Limits.MaxMRSize
	a := backend.Access(access)
	switch {
	case addr == 0 || n <= 0:
		return code(refuse("EINVAL", op, s, "a region of %d bytes at %#x can't be registered: it must have at least one byte", n, addr))
	case most > 0 && n > most:
		return code(refuse("EINVAL", op, sizes{"length": n, "limit": most}, "the device registers %d bytes at most", most))
	case access&^int64(backend.AllAccess) != 0:
		return code(refuse("EINVAL", op, s, "access is %#x; it is a sum of LOCAL_WRITE 1, REMOTE_WRITE 2, REMOTE_READ 4, REMOTE_ATOMIC 8", access))
	case a&(backend.RemoteWrite|backend.RemoteAtomic) != 0 && a&backend.LocalWrite == 0:
		return code(refuse("EINVAL", op, s, "access %v: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE, too", a))
	}
	region, err := d.pd.Register(fabric.Pointer(uint64(addr)), int(n), a)
	if err != nil {
		return code(from(err, op, s))
	}
	made, e := add("MemoryRegion", &memory{d, uint64(addr), n, region}, region.Close, op, parent)
	if e != nil {
		region.Close()
		return code(e)
	}
	return made.handle
}

// RegionInfo is "addr length lkey rkey access", the address and access as peers
// have it; "" if there is no such region.
func RegionInfo(h int64) string {
	m, _, e := get[*memory](h, "MemoryRegion", "query region")
	if e != nil {
		return ""
	}
	r := m.region
	return fmt.Sprintf("%d %d %d %d %d", r.Addr(), m.n, r.LKey(), r.RKey(), r.Access())
}
