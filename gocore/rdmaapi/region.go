package rdmaapi

import (
	"fmt"

	"gormapy/gocore/fabric"
	"gormapy/gocore/rdmaapi/backend"
)

// memory is a memory region.
type memory struct {
	domain *domain
	addr   uint64 // in this process
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
	maxSize := d.dev.ctx.Device().Limits.MaxMRSize
	a := backend.Access(access)
	switch {
	case addr == 0 || n <= 0:
		return code(refuse("EINVAL", op, s, "a region of %d bytes at %#x can't be registered: it must have at least one byte", n, addr))
	case maxSize > 0 && n > maxSize:
		return code(refuse("EINVAL", op, sizes{"length": n, "limit": maxSize}, "the device registers %d bytes at most", maxSize))
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

// RegionInfo returns "addr length lkey rkey access" of a region; "" if it is closed.
// The address is the one that peers use, the access is what was granted.
func RegionInfo(h int64) string {
	m, _, e := get[*memory](h, "MemoryRegion", "query region")
	if e != nil {
		return ""
	}
	r := m.region
	return fmt.Sprintf("%d %d %d %d %d", r.Addr(), m.n, r.LKey(), r.RKey(), r.Access())
}
