package ibverbs

import "math/bits"

// Access is a set of accesses that a memory region or a queue pair allows.
type Access uint32

// The access flags of memory regions.
const (
	LocalWrite   Access = 1 << 0
	RemoteWrite  Access = 1 << 1
	RemoteRead   Access = 1 << 2
	RemoteAtomic Access = 1 << 3
	OnDemand     Access = 1 << 6 // pages are pinned when they are used, see DeviceAttr.OnDemand
)

// Opcode is the operation of a work request.
type Opcode uint32

// The work requests of a send queue.
const (
	RDMAWrite Opcode = iota
	RDMAWriteImm
	Send
	SendImm
	RDMARead
	CompareSwap
	FetchAdd
)

// The flags of work requests.
const (
	Fence     = 1 << 0 // it begins after earlier reads and atomics
	Signaled  = 1 << 1 // it has a completion even if it succeeds
	Solicited = 1 << 2
	Inline    = 1 << 3 // Addr is read before the call returns, and LKey is not used
)

// SendWR is a work request for a send queue: Len bytes at Addr in this process,
// to or from RemoteAddr of the peer. For the atomics Len is 8 and Addr receives the
// former value. FetchAdd adds Add. CompareSwap stores Swap if the value equals Add.
type SendWR struct {
	ID         uint64
	Opcode     Opcode
	Flags      uint32
	Addr       uint64
	Len        uint32
	LKey       uint32
	RemoteAddr uint64
	RKey       uint32
	Imm        uint32
	Add        uint64
	Swap       uint64
}

// RecvWR is a work request for a receive queue: Len bytes at Addr.
type RecvWR struct {
	ID   uint64
	Addr uint64
	Len  uint32
	LKey uint32
}

// WC is a work completion. If Status is not Success, only ID, Status, QPNum and VendorErr
// are valid.
type WC struct {
	ID        uint64
	Status    WCStatus
	Opcode    WCOpcode
	VendorErr uint32
	Bytes     uint32 // received, or read
	imm       uint32
	QPNum     uint32
	SrcQP     uint32
	Flags     uint32
	PKeyIndex uint16
	SLID      uint16
	SL        uint8
	DLIDBits  uint8
	_         [2]byte
}

// Imm returns the immediate data, and reports whether there is any.
func (c *WC) Imm() (uint32, bool) {
	// The field is in network byte order; every supported machine is little-endian.
	return bits.ReverseBytes32(c.imm), c.Flags&wcWithImm != 0
}

const wcWithImm = 1 << 1

// WCStatus is how a work request ended.
type WCStatus uint32

// Statuses that programs compare with.
const (
	Success        WCStatus = 0
	LocLenErr      WCStatus = 1
	LocProtErr     WCStatus = 4
	WRFlushErr     WCStatus = 5
	RemInvReqErr   WCStatus = 9
	RemAccessErr   WCStatus = 10
	RemOpErr       WCStatus = 11
	RetryExcErr    WCStatus = 12
	RNRRetryExcErr WCStatus = 13
	GeneralErr     WCStatus = 21
)

var statuses = [...]struct{ name, means string }{
	{"SUCCESS", "done"},
	{"LOC_LEN_ERR", "a message is longer than the buffer for it, or than the device can send"},
	{"LOC_QP_OP_ERR", "the queue pair can't do such a request"},
	{"LOC_EEC_OP_ERR", "the end-to-end context can't do such a request"},
	{"LOC_PROT_ERR", "the local memory is not, or no longer, registered with this key and for this use"},
	{"WR_FLUSH_ERR", "the queue pair was in the error state already, and the request was not done"},
	{"MW_BIND_ERR", "a memory window can't be bound"},
	{"BAD_RESP_ERR", "the peer's answer makes no sense"},
	{"LOC_ACCESS_ERR", "the local memory is not registered for what a peer wanted to write"},
	{"REM_INV_REQ_ERR", "the peer's queue pair does not accept such a request, or not of this size or alignment"},
	{"REM_ACCESS_ERR", "the peer's memory is not, or no longer, registered with this key for this range and use"},
	{"REM_OP_ERR", "the peer's queue pair failed"},
	{"RETRY_EXC_ERR", "the peer does not answer: its process or host is gone, or the network is"},
	{"RNR_RETRY_EXC_ERR", "the peer had no receive posted"},
	{"LOC_RDD_VIOL_ERR", "the domain of the local queue pair is another one"},
	{"REM_INV_RD_REQ_ERR", "the peer refuses the datagram"},
	{"REM_ABORT_ERR", "the peer aborted"},
	{"INV_EECN_ERR", "no such end-to-end context"},
	{"INV_EEC_STATE_ERR", "the end-to-end context is not ready"},
	{"FATAL_ERR", "the device failed"},
	{"RESP_TIMEOUT_ERR", "the peer did not answer in time"},
	{"GENERAL_ERR", "the device says no more"},
	{"TM_ERR", "tag matching failed"},
	{"TM_RNDV_INCOMPLETE", "the rendezvous is left to software"},
}

func (s WCStatus) String() string {
	if int(s) < len(statuses) {
		return "IBV_WC_" + statuses[s].name
	}
	return "IBV_WC_status_" + utoa(uint32(s))
}

// Means returns what the status means for a program.
func (s WCStatus) Means() string {
	if int(s) < len(statuses) {
		return statuses[s].means
	}
	return "a status that this version does not know"
}

// WCOpcode is the kind of request that has completed with success.
type WCOpcode uint32

// The opcodes of completions.
const (
	WCSend       WCOpcode = 0
	WCRDMAWrite  WCOpcode = 1
	WCRDMARead   WCOpcode = 2
	WCCompSwap   WCOpcode = 3
	WCFetchAdd   WCOpcode = 4
	WCRecv       WCOpcode = 128
	WCRecvRDMAWI WCOpcode = 129
)

func (o WCOpcode) String() string {
	switch o {
	case WCSend:
		return "IBV_WC_SEND"
	case WCRDMAWrite:
		return "IBV_WC_RDMA_WRITE"
	case WCRDMARead:
		return "IBV_WC_RDMA_READ"
	case WCCompSwap:
		return "IBV_WC_COMP_SWAP"
	case WCFetchAdd:
		return "IBV_WC_FETCH_ADD"
	case WCRecv:
		return "IBV_WC_RECV"
	case WCRecvRDMAWI:
		return "IBV_WC_RECV_RDMA_WITH_IMM"
	}
	return "IBV_WC_opcode_" + utoa(uint32(o))
}

func (o Opcode) String() string {
	names := [...]string{
		"IBV_WR_RDMA_WRITE", "IBV_WR_RDMA_WRITE_WITH_IMM", "IBV_WR_SEND", "IBV_WR_SEND_WITH_IMM",
		"IBV_WR_RDMA_READ", "IBV_WR_ATOMIC_CMP_AND_SWP", "IBV_WR_ATOMIC_FETCH_AND_ADD",
	}
	if int(o) < len(names) {
		return names[o]
	}
	return "IBV_WR_opcode_" + utoa(uint32(o))
}

// State is the state of a queue pair.
type State uint32

// The states of queue pairs.
const (
	Reset State = iota
	Init
	RTR
	RTS
	SQD
	SQE
	Err
)

func (s State) String() string {
	names := [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}
	if int(s) < len(names) {
		return names[s]
	}
	return "state " + utoa(uint32(s))
}

// The states and link layers of ports.
const (
	PortActive         = 4
	LinkLayerIB        = 1
	LinkLayerEthernet  = 2
	AtomicNone         = 0
	AtomicHCA          = 1
	AtomicGlobal       = 2
	defaultLibraryName = "libibverbs.so.1"
)

// PortStateName returns the RDMA tools' name for the state of a port.
func PortStateName(state int) string {
	names := [...]string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}
	if state >= 0 && state < len(names) {
		return names[state]
	}
	return "state " + utoa(uint32(state))
}

// EventName returns the name of an asynchronous event's type.
func EventName(t int) string {
	names := [...]string{
		"CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED", "PATH_MIG", "PATH_MIG_ERR",
		"DEVICE_FATAL", "PORT_ACTIVE", "PORT_ERR", "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE", "SRQ_ERR",
		"SRQ_LIMIT_REACHED", "QP_LAST_WQE_REACHED", "CLIENT_REREGISTER", "GID_CHANGE", "WQ_FATAL",
	}
	if t >= 0 && t < len(names) {
		return "IBV_EVENT_" + names[t]
	}
	return "IBV_EVENT_" + utoa(uint32(t))
}

// MTUBytes returns the size for an enum ibv_mtu, 0 for any other number.
func MTUBytes(mtu int) int {
	if mtu < 1 || mtu > 5 {
		return 0
	}
	return 128 << mtu
}
