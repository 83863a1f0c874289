//go:build cgo

package libfabric

/*
#include <stdlib.h>
#include <string.h>
#include "glue.h"
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Capabilities, as in fi_getinfo(3).
const (
	CapMsg        = uint64(C.FI_MSG)
	CapRMA        = uint64(C.FI_RMA)
	CapAtomic     = uint64(C.FI_ATOMIC)
	CapLocalComm  = uint64(C.FI_LOCAL_COMM)
	CapRemoteComm = uint64(C.FI_REMOTE_COMM)
)

// Orders of messages.
const (
	OrderSAS = uint64(C.FI_ORDER_SAS) // a send after a send
	OrderSAW = uint64(C.FI_ORDER_SAW) // a send after a write
	OrderWAW = uint64(C.FI_ORDER_WAW) // a write after a write
)

// Memory registration modes: what a provider demands of its user.
const (
	MRLocal     = int(C.FI_MR_LOCAL)     // local buffers have to be registered, too
	MRVirtAddr  = int(C.FI_MR_VIRT_ADDR) // remote addresses are the peer's, not offsets
	MRAllocated = int(C.FI_MR_ALLOCATED) // pages have to exist when registered
	MRProvKey   = int(C.FI_MR_PROV_KEY)  // the provider chooses keys
	MREndpoint  = int(C.FI_MR_ENDPOINT)  // regions belong to an endpoint
)

// Hints are demands on a provider. A zero field demands nothing.
type Hints struct {
	Provider string // as in "tcp;ofi_rxm"
	Domain   string
	Caps     uint64
	TxFlags  uint64 // default flags of operations, such as DeliveryComplete; demands providers that have them
	Order    uint64 // of messages
	AutoOnly bool   // demands providers that progress without polls (FI_PROGRESS_AUTO)
}

// ErrNoProvider is the error if no provider matches the hints.
var ErrNoProvider = errors.New("no provider offers what was asked for")

// Info describes one way to use a provider.
type Info struct {
	Provider, Fabric, Domain string

	Caps          uint64
	Order         uint64 // of messages as transmitted
	MRMode        int
	MRKeySize     int
	CQDataSize    int // bytes of immediate data
	InjectSize    int
	MaxMsgSize    uint64
	TxSize        int // operations under way
	RxSize        int // receives posted
	CQSize        int // largest completion queue
	AVType        int
	AutoProgress  bool // of data
	SourceAddress []byte
	AddressFormat uint32

	// Of the network device, if the provider reports it.
	NIC       string
	LinkSpeed uint64 // bits per second
	MTU       int

	info *C.struct_fi_info
}

// GetInfo returns the Infos that match h, in the library's order of preference. Each has to
// be freed.
func GetInfo(h Hints) ([]*Info, error) {
	if loaded.Load() == nil {
		return nil, ErrMissing
	}
	hints := C.gm_fi_dupinfo(nil)
	if hints == nil {
		return nil, errors.New("fi_allocinfo: no memory")
	}
	defer C.gm_fi_freeinfo(hints) // frees the strings, too
	hints.caps = C.uint64_t(h.Caps)
	hints.mode = C.FI_CONTEXT | C.FI_CONTEXT2
	hints.ep_attr._type = C.FI_EP_RDM
	hints.domain_attr.threading = C.FI_THREAD_SAFE
	hints.domain_attr.resource_mgmt = C.FI_RM_ENABLED
	hints.domain_attr.mr_mode = C.FI_MR_LOCAL | C.FI_MR_VIRT_ADDR | C.FI_MR_ALLOCATED | C.FI_MR_PROV_KEY | C.FI_MR_ENDPOINT
	hints.tx_attr.op_flags = C.uint64_t(h.TxFlags)
	hints.tx_attr.msg_order = C.uint64_t(h.Order)
	hints.rx_attr.msg_order = C.uint64_t(h.Order)
	if h.AutoOnly {
		hints.domain_attr.data_progress = C.FI_PROGRESS_AUTO
	}
	if h.Provider != "" {
		hints.fabric_attr.prov_name = C.CString(h.Provider)
	}
	if h.Domain != "" {
		hints.domain_attr.name = C.CString(h.Domain)
	}
	var list *C.struct_fi_info
	rc := C.gm_fi_getinfo(apiVersion, nil, nil, 0, hints, &list)
	if Errno(-rc) == 61 { // FI_ENODATA
		return nil, ErrNoProvider
	}
	if err := check("fi_getinfo", rc); err != nil {
		return nil, err
	}
	defer C.gm_fi_freeinfo(list)
	var found []*Info
	for i := list; i != nil; i = i.next {
		if info := newInfo(i); info != nil {
			found = append(found, info)
		}
	}
	return found, nil
}

// Providers returns the names of the library's providers of reliable datagrams, each once.
func Providers() []string {
	infos, err := GetInfo(Hints{})
	if err != nil {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for _, i := range infos {
		if !seen[i.Provider] {
			seen[i.Provider] = true
			names = append(names, i.Provider)
		}
		i.Free()
	}
	return names
}

func newInfo(from *C.struct_fi_info) *Info {
	c := C.gm_fi_dupinfo(from) // this one alone, without the rest of the list
	if c == nil {
		return nil
	}
	d := c.domain_attr
	i := &Info{
		Provider:      C.GoString(c.fabric_attr.prov_name),
		Fabric:        C.GoString(c.fabric_attr.name),
		Domain:        C.GoString(d.name),
		Caps:          uint64(c.caps),
		Order:         uint64(c.tx_attr.msg_order & c.rx_attr.msg_order),
		MRMode:        int(d.mr_mode),
		MRKeySize:     int(d.mr_key_size),
		CQDataSize:    int(d.cq_data_size),
		InjectSize:    int(c.tx_attr.inject_size),
		MaxMsgSize:    uint64(c.ep_attr.max_msg_size),
		TxSize:        int(c.tx_attr.size),
		RxSize:        int(c.rx_attr.size),
		CQSize:        int(d.cq_cnt),
		AVType:        int(d.av_type),
		AutoProgress:  d.data_progress == C.FI_PROGRESS_AUTO,
		AddressFormat: uint32(c.addr_format),
		info:          c,
	}
	if c.src_addr != nil {
		i.SourceAddress = C.GoBytes(c.src_addr, C.int(c.src_addrlen))
	}
	if nic := c.nic; nic != nil {
		if nic.device_attr != nil {
			i.NIC = C.GoString(nic.device_attr.name)
		}
		if nic.link_attr != nil {
			i.LinkSpeed, i.MTU = uint64(nic.link_attr.speed), int(nic.link_attr.mtu)
		}
	}
	return i
}

// Free frees the library's memory of i. The fields stay valid.
func (i *Info) Free() {
	if i.info != nil {
		C.gm_fi_freeinfo(i.info)
		i.info = nil
	}
}

// SetSizes asks for queues of these sizes in endpoints made with i.
func (i *Info) SetSizes(tx, rx int) {
	i.info.tx_attr.size, i.info.rx_attr.size = C.size_t(tx), C.size_t(rx)
	i.TxSize, i.RxSize = tx, rx
}

// SetTxFlags sets the flags of operations that are posted without flags of their own.
func (i *Info) SetTxFlags(flags uint64) { i.info.tx_attr.op_flags = C.uint64_t(flags) }

// address copies a to C memory, which the caller frees.
func address(a []byte) unsafe.Pointer {
	// Strings (FI_ADDR_STR) may be read up to a zero byte.
	p := C.calloc(1, C.size_t(len(a)+1))
	copy(unsafe.Slice((*byte)(p), len(a)), a)
	return p
}
