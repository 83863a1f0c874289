package backend

import (
	"time"
	"unsafe"
)

// Backend is one way to carry out RDMA operations.
type Backend interface {
	// Name is what users choose it by: verbs, ofi, tcp, shm.
	Name() string
	// Devices lists the devices that can be opened. An error is a sentence that says why
	// there is none: what is not installed, which driver is missing.
	Devices() ([]Device, error)
	// Open opens a device by its name.
	Open(device string) (Context, error)
}

// Chooser is a back end whose device can be chosen by settings.
type Chooser interface {
	// Choose returns the name of the device for a program that names none, "" for the
	// first with an active port. An error means that there is no device that the
	// settings ask for.
	Choose() (device string, err error)
}

// Device describes a device. All sizes are in bytes.
type Device struct {
	Name    string `json:"name"`
	Backend string `json:"backend"`
	Detail  string `json:"detail"` // driver, provider, or network interface
	GUID    string `json:"guid"`   // "" if it has none
	Limits  Limits `json:"limits"`
	Ports   []Port `json:"ports"`
}

// Limits is the part of ibv_device_attr that programs read. Zero means that no limit is
// known.
type Limits struct {
	MaxQP         int   `json:"max_qp"`
	MaxQPWR       int   `json:"max_qp_wr"`
	MaxCQ         int   `json:"max_cq"`
	MaxCQE        int   `json:"max_cqe"`
	MaxMR         int   `json:"max_mr"`
	MaxMRSize     int64 `json:"max_mr_size"`
	MaxPD         int   `json:"max_pd"`
	MaxInline     int   `json:"max_inline"`
	MaxQPRdAtomic int   `json:"max_qp_rd_atom"`
	Atomics       bool  `json:"atomics"` // fetch-and-add, compare-and-swap
	Immediate     bool  `json:"immediate"`
	// Lingers reports whether a peer's write to a region may continue after the region
	// is closed, until the queue pairs of its protection domain are closed. The memory
	// must stay until then.
	Lingers bool `json:"lingers"`
}

// Port is the part of ibv_port_attr that programs read.
type Port struct {
	Num        int      `json:"num"`
	State      string   `json:"state"`     // ACTIVE, DOWN ...
	LinkLayer  string   `json:"link"`      // Ethernet, InfiniBand, TCP, memory
	MTU        int      `json:"mtu"`       // bytes
	MaxMessage int64    `json:"max_msg"`   // bytes
	Gbps       float64  `json:"gbps"`      // 0: not known
	Addresses  []string `json:"addresses"` // GIDs, or the addresses of the back end
}

// Context is an open device.
type Context interface {
	Device() Device
	AllocPD() (PD, error)
	// CreateCQ makes a completion queue with room for depth completions.
	CreateCQ(depth int) (CQ, error)
	Close() error
}

// PD is a protection domain.
type PD interface {
	// Register registers n bytes at p with the device, which does not access them once
	// the region is closed.
	Register(p unsafe.Pointer, n int, access Access) (Region, error)
	CreateQP(init QPInit) (QP, error)
	Close() error
}

// Access is a set of allowed accesses to a region, numbered as ibv_access_flags.
type Access uint32

// The kinds of access.
const (
	LocalWrite   Access = 1 << 0
	RemoteWrite  Access = 1 << 1
	RemoteRead   Access = 1 << 2
	RemoteAtomic Access = 1 << 3
	AllAccess           = LocalWrite | RemoteWrite | RemoteRead | RemoteAtomic
)

// Region is registered memory.
type Region interface {
	// Addr is the remote address of the first byte, usually its address.
	Addr() uint64
	LKey() uint32
	// RKey is 64 bits wide because libfabric's are.
	RKey() uint64
	// Access returns what was granted. It lacks what the device can't do
	// (REMOTE_ATOMIC).
	Access() Access
	// Close returns ErrBusy, and closes the region nevertheless, if a peer may
	// still be writing to the memory. The memory must then never be freed.
	Close() error
}

// QPInit describes a queue pair to make.
type QPInit struct {
	Send, Recv       CQ
	MaxSend, MaxRecv int // outstanding work requests
	MaxInline        int // bytes
}

// CQ is a completion queue.
type CQ interface {
	// Poll takes completions, at most len(out), and returns how many there were.
	Poll(out []Completion) (int, error)
	// Wait returns when Poll may have something, when Wake is called, or after d.
	Wait(d time.Duration) error
	// Wake ends the Waits that are under way.
	Wake()
	Close() error
}

// Connection has the timers of a connection.
type Connection struct {
	// Timeout is how long the peer may not answer, before that is RETRY_EXC_ERR.
	Timeout time.Duration
	// RNRRetry is how often a request is repeated for which the peer has posted
	// no receive; 7 means for ever, as in verbs. RNRTimer is the time between.
	RNRRetry int
	RNRTimer time.Duration
}

// QP is a queue pair, reliably connected.
type QP interface {
	Num() uint32
	// Info returns what the peer's Connect needs, at most 512 bytes.
	Info() ([]byte, error)
	// Connect brings the queue pair to RTS. It does not wait for the peer.
	Connect(info []byte, c Connection) error
	// PostSend posts requests in their order and returns how many it has posted. If
	// those are not all, the error says why.
	PostSend(wrs []SendWR) (int, error)
	PostRecv(wrs []RecvWR) (int, error)
	State() State
	// Reset brings it back to INIT and drops all posted requests, without completions.
	Reset() error
	// Close destroys it. Its requests do not complete from then on.
	Close() error
}

// State is the state of a queue pair, numbered as ibv_qp_state.
type State int

// The states that queue pairs have here.
const (
	StateReset State = 0
	StateInit  State = 1
	StateRTR   State = 2
	StateRTS   State = 3
	StateErr   State = 6
)

func (s State) String() string {
	switch s {
	case StateReset:
		return "RESET"
	case StateInit:
		return "INIT"
	case StateRTR:
		return "RTR"
	case StateRTS:
		return "RTS"
	case StateErr:
		return "ERR"
	}
	return "UNKNOWN"
}

// Op is the operation of a send work request, numbered as ibv_wr_opcode.
type Op int

// The operations.
const (
	OpWrite       Op = 0
	OpWriteImm    Op = 1
	OpSend        Op = 2
	OpSendImm     Op = 3
	OpRead        Op = 4
	OpCompareSwap Op = 5
	OpFetchAdd    Op = 6
)

func (op Op) String() string {
	switch op {
	case OpWrite:
		return "write"
	case OpWriteImm:
		return "write_imm"
	case OpSend:
		return "send"
	case OpSendImm:
		return "send_imm"
	case OpRead:
		return "read"
	case OpCompareSwap:
		return "compare_swap"
	case OpFetchAdd:
		return "fetch_add"
	}
	return "unknown"
}

// Valid reports whether there is such an operation.
func (op Op) Valid() bool { return op >= OpWrite && op <= OpFetchAdd }

// Remote reports whether the operation names remote memory.
func (op Op) Remote() bool { return op.Valid() && op != OpSend && op != OpSendImm }

// Atomic reports whether it reads, changes and fetches 8 bytes.
func (op Op) Atomic() bool { return op == OpCompareSwap || op == OpFetchAdd }

// Imm reports whether immediate data goes along.
func (op Op) Imm() bool { return op == OpWriteImm || op == OpSendImm }

// SendWR is a work request for the send queue.
type SendWR struct {
	Cookie   uint64 // comes back in the completion
	Op       Op
	Signaled bool
	Inline   bool // the data is taken at once; Region may be nil
	Fence    bool // it begins after all earlier reads and atomics are done
	Imm      uint32
	Region   Region
	Local    unsafe.Pointer // in Region; receives the former value of an atomic
	N        int
	Raddr    uint64
	RKey     uint64
	Compare  uint64 // of compare_swap
	Operand  uint64 // swap, add
}

// RecvWR is a work request for the receive queue.
type RecvWR struct {
	Cookie uint64
	Region Region // nil for a receive without memory
	Local  unsafe.Pointer
	N      int
}

// Completion is the end of a work request. If Status is not Success, only Cookie, Status
// and Detail are valid.
type Completion struct {
	Cookie uint64
	Status Status
	Recv   bool
	N      int // bytes received
	HasImm bool
	Imm    uint32
	Write  bool   // what was received came by write_imm
	Detail string // an explanation of the status, or ""
}
