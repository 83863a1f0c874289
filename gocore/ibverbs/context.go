//go:build cgo

package ibverbs

// #include "calls.h"
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Context is an opened device.
type Context struct {
	lib  *Library
	name string
	mu   sync.Mutex
	ptr  *C.struct_ibv_context
}

// DeviceAttr has the capabilities of a device.
type DeviceAttr struct {
	Firmware       string
	NodeGUID       uint64 // network byte order
	VendorID       uint32
	Ports          int
	MaxMRSize      uint64
	MaxQP          int
	MaxQPWR        int // requests of one queue
	MaxSGE         int
	MaxCQ, MaxCQE  int
	MaxMR, MaxPD   int
	MaxRDAtomic    int // reads and atomics that a queue pair answers at a time
	MaxInitAtomic  int // and that one may have asked for
	MaxSRQ         int
	MaxSRQWR       int
	AtomicCap      int // AtomicNone, AtomicHCA: atomic to each other, AtomicGlobal: and to processors
	OnDemand       bool
	OnDemandAtomic bool
}

// PortAttr is the state of a port.
type PortAttr struct {
	State     int
	MaxMTU    int // an enum, see MTUBytes
	ActiveMTU int
	GIDs      int // length of the table
	MaxMsg    uint32
	LID       uint16
	LinkLayer int
}

// Event is an asynchronous event of a device.
type Event struct {
	Type  int // see EventName
	QPNum uint32
	Port  int
}

// Name returns the device's name.
func (c *Context) Name() string { return c.name }

func (c *Context) lock(call string) (func(), error) {
	c.mu.Lock()
	if c.ptr == nil {
		c.mu.Unlock()
		return nil, closed(call, "the device "+c.name)
	}
	return c.mu.Unlock, nil
}

// Device asks for the capabilities of the device.
func (c *Context) Device() (DeviceAttr, error) {
	unlock, err := c.lock("ibv_query_device")
	if err != nil {
		return DeviceAttr{}, err
	}
	defer unlock()
	var ex C.struct_ibv_device_attr_ex
	if errno := C.gmv_query_device(c.lib.calls, c.ptr, &ex); errno != 0 {
		return DeviceAttr{}, failed("ibv_query_device", errno, "device %s", c.name)
	}
	a := &ex.orig_attr
	rc := uint32(ex.odp_caps.per_transport_caps.rc_odp_caps)
	const both = C.IBV_ODP_SUPPORT_WRITE | C.IBV_ODP_SUPPORT_READ
	odp := ex.odp_caps.general_caps&C.IBV_ODP_SUPPORT != 0 && rc&both == both
	return DeviceAttr{
		Firmware: C.GoString(&a.fw_ver[0]), NodeGUID: uint64(a.node_guid), VendorID: uint32(a.vendor_id),
		Ports: int(a.phys_port_cnt), MaxMRSize: uint64(a.max_mr_size), MaxQP: int(a.max_qp), MaxQPWR: int(a.max_qp_wr),
		MaxSGE: int(a.max_sge), MaxCQ: int(a.max_cq), MaxCQE: int(a.max_cqe), MaxMR: int(a.max_mr), MaxPD: int(a.max_pd),
		MaxRDAtomic: int(a.max_qp_rd_atom), MaxInitAtomic: int(a.max_qp_init_rd_atom), MaxSRQ: int(a.max_srq),
		MaxSRQWR: int(a.max_srq_wr), AtomicCap: int(a.atomic_cap), OnDemand: odp,
		OnDemandAtomic: odp && rc&C.IBV_ODP_SUPPORT_ATOMIC != 0,
	}, nil
}

// Port asks for the state of a port. Ports count from 1.
func (c *Context) Port(port int) (PortAttr, error) {
	unlock, err := c.lock("ibv_query_port")
	if err != nil {
		return PortAttr{}, err
	}
	defer unlock()
	if port < 1 || port > 255 {
		return PortAttr{}, &Error{"ibv_query_port", syscall.EINVAL, "ports count from 1"}
	}
	var a C.struct_ibv_port_attr
	if errno := C.gmv_query_port(c.lib.calls, c.ptr, C.int(port), &a); errno != 0 {
		return PortAttr{}, failed("ibv_query_port", errno, "port %d of %s", port, c.name)
	}
	return PortAttr{
		State: int(a.state), MaxMTU: int(a.max_mtu), ActiveMTU: int(a.active_mtu), GIDs: int(a.gid_tbl_len),
		MaxMsg: uint32(a.max_msg_sz), LID: uint16(a.lid), LinkLayer: int(a.link_layer),
	}, nil
}

// GID returns an entry of a port's table of addresses.
func (c *Context) GID(port, index int) ([16]byte, error) {
	var gid [16]byte
	unlock, err := c.lock("ibv_query_gid")
	if err != nil {
		return gid, err
	}
	defer unlock()
	errno := C.gmv_query_gid(c.lib.calls, c.ptr, C.int(port), C.int(index), (*C.uint8_t)(&gid[0]))
	return gid, failed("ibv_query_gid", errno, "entry %d of port %d of %s", index, port, c.name)
}

// AsyncFD is readable when there is an asynchronous event.
func (c *Context) AsyncFD() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ptr == nil {
		return -1
	}
	return int(c.ptr.async_fd)
}

// AsyncEvent returns the next asynchronous event, and false if there is none now.
func (c *Context) AsyncEvent() (Event, bool, error) {
	unlock, err := c.lock("ibv_get_async_event")
	if err != nil {
		return Event{}, false, err
	}
	defer unlock()
	var kind, port C.int
	var qp C.uint32_t
	errno := C.gmv_async_event(c.lib.calls, c.ptr, &kind, &qp, &port)
	if syscall.Errno(errno) == syscall.EAGAIN {
		return Event{}, false, nil
	}
	if errno != 0 {
		return Event{}, false, failed("ibv_get_async_event", errno, "device %s", c.name)
	}
	return Event{Type: int(kind), QPNum: uint32(qp), Port: int(port)}, true, nil
}

// Close closes the device.
func (c *Context) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ptr == nil {
		return nil
	}
	if errno := C.gmv_close_device(c.lib.calls, c.ptr); errno != 0 {
		return failed("ibv_close_device", errno, "device %s", c.name)
	}
	c.ptr = nil
	return nil
}

// PD is a protection domain.
type PD struct {
	ctx *Context
	mu  sync.Mutex
	ptr *C.struct_ibv_pd
}

// AllocPD makes a protection domain.
func (c *Context) AllocPD() (*PD, error) {
	unlock, err := c.lock("ibv_alloc_pd")
	if err != nil {
		return nil, err
	}
	defer unlock()
	pd := &PD{ctx: c}
	errno := C.gmv_alloc_pd(c.lib.calls, c.ptr, &pd.ptr)
	if errno != 0 {
		return nil, failed("ibv_alloc_pd", errno, "device %s", c.name)
	}
	return pd, nil
}

func (p *PD) lock(call string) (func(), error) {
	p.mu.Lock()
	if p.ptr == nil {
		p.mu.Unlock()
		return nil, closed(call, "the protection domain")
	}
	return p.mu.Unlock, nil
}

// Close frees the protection domain.
func (p *PD) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ptr == nil {
		return nil
	}
	if errno := C.gmv_dealloc_pd(p.ctx.lib.calls, p.ptr); errno != 0 {
		return failed("ibv_dealloc_pd", errno, "regions and queue pairs are closed before their protection domain")
	}
	p.ptr = nil
	return nil
}

// MR is a memory region.
type MR struct {
	pd         *PD
	mu         sync.Mutex
	ptr        *C.struct_ibv_mr
	addr       uint64
	n          int
	lkey, rkey uint32
	access     Access
}

// Register registers n bytes at addr. If the device refuses RemoteAtomic, it is left out;
// the region's Access shows what was granted.
func (p *PD) Register(addr uint64, n int, access Access) (*MR, error) {
	unlock, err := p.lock("ibv_reg_mr")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if n < 0 {
		return nil, &Error{"ibv_reg_mr", syscall.EINVAL, "a negative length"}
	}
	m := &MR{pd: p, addr: addr, n: n, access: access}
	errno := C.gmv_reg_mr(p.ctx.lib.calls, p.ptr, C.uint64_t(addr), C.size_t(n), C.int(m.access), &m.ptr)
	if errno != 0 && access&RemoteAtomic != 0 {
		m.access &^= RemoteAtomic
		errno = C.gmv_reg_mr(p.ctx.lib.calls, p.ptr, C.uint64_t(addr), C.size_t(n), C.int(m.access), &m.ptr)
	}
	if errno != 0 {
		return nil, refused(syscall.Errno(errno), addr, n, access)
	}
	m.lkey, m.rkey = uint32(m.ptr.lkey), uint32(m.ptr.rkey)
	return m, nil
}

// lockLimit returns what to do about the limit of locked memory, "" if there is none.
func lockLimit() string {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil || l.Cur == unix.RLIM_INFINITY {
		return ""
	}
	return fmt.Sprintf("; this process may lock %d KiB of memory (ulimit -l), which may be too little: unlimited is usual for RDMA", l.Cur>>10)
}

func refused(errno syscall.Errno, addr uint64, n int, access Access) error {
	why := ""
	switch {
	case errors.Is(errno, syscall.ENOMEM) || errors.Is(errno, syscall.EAGAIN) || errors.Is(errno, syscall.EPERM):
		why = lockLimit()
	case errors.Is(errno, syscall.EFAULT):
		why = "; that range is not memory of this process, or not writable"
	}
	return failed("ibv_reg_mr", C.int(errno), "register %d bytes at %#x with access %#x%s", n, addr, uint32(access), why)
}

// Addr returns the start of the region.
func (m *MR) Addr() uint64 { return m.addr }

// Len returns its length in bytes.
func (m *MR) Len() int { return m.n }

// LKey returns the key for local memory.
func (m *MR) LKey() uint32 { return m.lkey }

// RKey returns the key for peers.
func (m *MR) RKey() uint32 { return m.rkey }

// Access returns what the region allows.
func (m *MR) Access() Access { return m.access }

// Close deregisters the memory.
func (m *MR) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ptr == nil {
		return nil
	}
	if errno := C.gmv_dereg_mr(m.pd.ctx.lib.calls, m.ptr); errno != 0 {
		return failed("ibv_dereg_mr", errno, "the region of %d bytes at %#x", m.n, m.addr)
	}
	m.ptr = nil
	return nil
}
