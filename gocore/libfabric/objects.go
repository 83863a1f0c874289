//go:build cgo

package libfabric

/*
#include <stdlib.h>
#include "glue.h"
*/
import "C"

import (
	"unsafe"
)

// Fabric is a network. Objects are closed from the inside out: endpoints, regions,
// queue, vector, domain, fabric. An object that is closed too early returns FI_EBUSY and
// stays open.
type Fabric struct{ c *C.struct_fid_fabric }

// OpenFabric opens the network of i.
func OpenFabric(i *Info) (*Fabric, error) {
	f := &Fabric{}
	if err := check("fi_fabric", C.gm_fi_fabric(i.info, &f.c)); err != nil {
		return nil, err
	}
	return f, nil
}

// Close closes it.
func (f *Fabric) Close() error { return closeFid("fi_close(fabric)", unsafe.Pointer(f.c)) }

func closeFid(what string, fid unsafe.Pointer) error {
	return check(what, C.gm_fi_close(fid))
}

// TryWait prepares to sleep on the descriptor of q. It returns EAGAIN if q has
// completions already.
func (f *Fabric) TryWait(q *CQ) error { return check("fi_trywait", C.gm_fi_trywait(f.c, q.c)) }

// Domain is a device or interface.
type Domain struct{ c *C.struct_fid_domain }

// OpenDomain opens the domain of i.
func (f *Fabric) OpenDomain(i *Info) (*Domain, error) {
	d := &Domain{}
	if err := check("fi_domain", C.gm_fi_domain(f.c, i.info, &d.c)); err != nil {
		return nil, err
	}
	return d, nil
}

// Close closes it.
func (d *Domain) Close() error { return closeFid("fi_close(domain)", unsafe.Pointer(d.c)) }

// AV holds addresses of peers.
type AV struct{ c *C.struct_fid_av }

// Addr is a peer in an AV.
type Addr uint64

// AddrUnspec is any peer, for receives.
const AddrUnspec = Addr(1<<64 - 1)

// OpenAV makes an AV for about count peers.
func (d *Domain) OpenAV(i *Info, count int) (*AV, error) {
	kind := C.int(i.AVType)
	if kind == C.FI_AV_UNSPEC {
		kind = C.FI_AV_TABLE
	}
	a := &AV{}
	if err := check("fi_av_open", C.gm_fi_av_open(d.c, kind, C.size_t(count), &a.c)); err != nil {
		return nil, err
	}
	return a, nil
}

// Insert adds an endpoint's name.
func (a *AV) Insert(name []byte) (Addr, error) {
	p := address(name)
	defer C.free(p)
	var got C.fi_addr_t
	if err := check("fi_av_insert", C.gm_fi_av_insert(a.c, p, &got)); err != nil {
		return 0, err
	}
	return Addr(got), nil
}

// Remove removes a peer.
func (a *AV) Remove(peer Addr) error {
	return check("fi_av_remove", C.gm_fi_av_remove(a.c, C.fi_addr_t(peer)))
}

// Text returns a name in readable form.
func (a *AV) Text(name []byte) string {
	p := address(name)
	defer C.free(p)
	var buf [256]C.char
	if C.gm_fi_av_straddr(a.c, p, &buf[0], C.size_t(len(buf)-1)) != 0 {
		return ""
	}
	return C.GoString(&buf[0])
}

// Close closes it.
func (a *AV) Close() error { return closeFid("fi_close(av)", unsafe.Pointer(a.c)) }

// MR is registered memory.
type MR struct {
	c *C.struct_fid_mr
	// Key names the memory to peers, Desc to local operations.
	Key  uint64
	Desc uintptr
}

// Access is a set of allowed uses of registered memory.
type Access uint64

// Kinds of access.
const (
	AccessSend        = Access(C.FI_SEND)
	AccessRecv        = Access(C.FI_RECV)
	AccessRead        = Access(C.FI_READ)  // target of reads posted here
	AccessWrite       = Access(C.FI_WRITE) // source of writes posted here
	AccessRemoteRead  = Access(C.FI_REMOTE_READ)
	AccessRemoteWrite = Access(C.FI_REMOTE_WRITE)
	AccessAll         = AccessSend | AccessRecv | AccessRead | AccessWrite | AccessRemoteRead | AccessRemoteWrite
)

// Register registers n bytes at addr, memory that is not Go's. key is used if the provider
// does not choose keys (MRProvKey). ep is the endpoint that may use the memory, needed with
// MREndpoint.
func (d *Domain) Register(addr uintptr, n int, access Access, key uint64, i *Info, ep *Endpoint) (*MR, error) {
	m := &MR{}
	rc := C.gm_fi_mr_reg(d.c, C.uint64_t(addr), C.size_t(n), C.uint64_t(access), C.uint64_t(key), &m.c)
	if err := check("fi_mr_reg", rc); err != nil {
		return nil, err
	}
	if i.MRMode&MREndpoint != 0 {
		err := check("fi_mr_bind", C.gm_fi_bind(unsafe.Pointer(m.c), unsafe.Pointer(ep.c), 0))
		if err == nil {
			err = check("fi_mr_enable", C.gm_fi_enable(unsafe.Pointer(m.c)))
		}
		if err != nil {
			_ = m.Close()
			return nil, err
		}
	}
	m.Key, m.Desc = uint64(m.c.key), uintptr(m.c.mem_desc)
	return m, nil
}

// Close ends the registration.
func (m *MR) Close() error { return closeFid("fi_close(mr)", unsafe.Pointer(m.c)) }

// Endpoint sends to and receives from any number of peers.
type Endpoint struct{ c *C.struct_fid_ep }

// OpenEndpoint makes and enables an endpoint whose completions go to q.
func (d *Domain) OpenEndpoint(i *Info, a *AV, q *CQ) (*Endpoint, error) {
	e := &Endpoint{}
	if err := check("fi_endpoint", C.gm_fi_endpoint(d.c, i.info, &e.c)); err != nil {
		return nil, err
	}
	err := check("fi_ep_bind(av)", C.gm_fi_bind(unsafe.Pointer(e.c), unsafe.Pointer(a.c), 0))
	if err == nil {
		err = check("fi_ep_bind(cq)", C.gm_fi_bind(unsafe.Pointer(e.c), unsafe.Pointer(q.c), C.FI_SEND|C.FI_RECV))
	}
	if err == nil {
		err = check("fi_enable", C.gm_fi_enable(unsafe.Pointer(e.c)))
	}
	if err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

// Name returns the address that peers insert.
func (e *Endpoint) Name() ([]byte, error) {
	var buf [1024]byte
	n := C.size_t(len(buf))
	if err := check("fi_getname", C.gm_fi_getname(e.c, unsafe.Pointer(&buf[0]), &n)); err != nil {
		return nil, err
	}
	return append([]byte(nil), buf[:n]...), nil
}

// HasAtomics reports whether fetch-add and compare-swap on 8 bytes work.
func (e *Endpoint) HasAtomics() bool { return C.gm_fi_has_atomics(e.c) != 0 }

// Close closes it. Operations under way are dropped.
func (e *Endpoint) Close() error { return closeFid("fi_close(ep)", unsafe.Pointer(e.c)) }
