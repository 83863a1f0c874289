//go:build cgo

package verbs

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"gormapy/gocore/device"
	"gormapy/gocore/ibverbs"
	"gormapy/gocore/rdmaapi/backend"
)

type domain struct {
	ctx *context
	pd  *ibverbs.PD
}

// Close is described with backend.PD.
func (d *domain) Close() error { return translate(d.pd.Close()) }

type region struct{ *ibverbs.MR }

func (r region) RKey() uint64 { return uint64(r.MR.RKey()) }

// Access leaves out flags that backend.Access lacks (on-demand paging).
func (r region) Access() backend.Access { return backend.Access(r.MR.Access()) & backend.AllAccess }
func (r region) Close() error           { return translate(r.MR.Close()) }

// Register is described with backend.PD.
func (d *domain) Register(p unsafe.Pointer, n int, access backend.Access) (backend.Region, error) {
	mr, err := d.ctx.port.Register(d.pd, uintptr(p), n, device.Access(access))
	if err != nil {
		return nil, translate(err)
	}
	return region{mr}, nil
}

// pair is a queue pair.
type pair struct {
	ctx   *context
	qp    *ibverbs.QP
	psn   uint32
	state atomic.Int32
}

// CreateQP is described with backend.PD.
func (d *domain) CreateQP(init backend.QPInit) (backend.QP, error) {
	send, ok := init.Send.(*queue)
	recv, also := init.Recv.(*queue)
	if !ok || !also {
		return nil, &backend.Errno{Name: "EINVAL", Text: "the completion queues are of another back end"}
	}
	qp, err := d.pd.CreateQP(ibverbs.QPOptions{SendCQ: send.cq, RecvCQ: recv.cq, MaxSend: init.MaxSend, MaxRecv: init.MaxRecv, MaxInline: init.MaxInline})
	if err != nil {
		return nil, translate(err)
	}
	p := &pair{ctx: d.ctx, qp: qp}
	if err := p.begin(); err != nil {
		qp.Close() //nolint:errcheck // there is another error to report
		return nil, err
	}
	return p, nil
}

// begin brings a queue pair from RESET to INIT.
func (p *pair) begin() error {
	var b [4]byte
	rand.Read(b[:]) //nolint:errcheck // it never returns an error
	p.psn = binary.LittleEndian.Uint32(b[:]) & 0xffffff
	if err := p.qp.ToInit(p.ctx.port.Num, p.ctx.port.QPAccess()); err != nil {
		return translate(err)
	}
	p.state.Store(int32(backend.StateInit))
	return nil
}

// Num is described with backend.QP.
func (p *pair) Num() uint32 { return p.qp.Num() }

// State returns the last known state, without asking the device.
func (p *pair) State() backend.State { return backend.State(p.state.Load()) }

// Query asks the device for the state.
func (p *pair) Query() (backend.State, error) {
	s, err := p.qp.State()
	if err != nil {
		return backend.StateErr, translate(err)
	}
	if s == ibverbs.Err || s == ibverbs.SQE {
		p.state.Store(int32(backend.StateErr))
	}
	return backend.State(s), nil
}

// The info, with integers in little-endian order:
//
//	offset  bytes
//	0       1      version
//	1       1      active MTU, as the enumeration of verbs
//	2       1      link layer
//	3       1      how many reads and atomics are answered at a time
//	4       4      queue pair number
//	8       4      first packet sequence number (PSN)
//	12      2      LID
//	14      2      zero
//	16      16     GID
const (
	infoVersion = 1
	infoBytes   = 32
)

// Info is described with backend.QP.
func (p *pair) Info() ([]byte, error) {
	port := p.ctx.port
	b := []byte{infoVersion, byte(port.Attr.ActiveMTU), byte(port.Attr.LinkLayer), byte(port.Depth())}
	b = binary.LittleEndian.AppendUint32(b, p.qp.Num())
	b = binary.LittleEndian.AppendUint32(b, p.psn)
	b = binary.LittleEndian.AppendUint16(b, port.Attr.LID)
	b = binary.LittleEndian.AppendUint16(b, 0)
	return append(b, port.GID.Addr[:]...), nil
}

// Connect is described with backend.QP.
func (p *pair) Connect(b []byte, c backend.Connection) error {
	if len(b) != infoBytes || b[0] != infoVersion {
		return &backend.Errno{Name: "EINVAL", Text: fmt.Sprintf("the connection info has %d bytes, version %d; this is version %d with %d bytes", len(b), b[0], infoVersion, infoBytes)}
	}
	if s := p.State(); s != backend.StateInit {
		return &backend.Errno{Name: "EINVAL", Text: fmt.Sprintf("queue pair %d is in state %s; it can be connected in INIT, once", p.Num(), s)}
	}
	port := p.ctx.port
	if int(b[2]) != port.Attr.LinkLayer {
		return &backend.Errno{Name: "EINVAL", Text: "one port is InfiniBand, the other one Ethernet"}
	}
	r := port.Peer(binary.LittleEndian.Uint16(b[12:]), [16]byte(b[16:]), int(b[1]))
	r.QPNum, r.PSN = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])&0xffffff
	depth := max(1, min(int(b[3]), port.Depth()))
	t := ibverbs.Timers{Timeout: timeout(c.Timeout), Retries: device.Retries, RNRRetry: c.RNRRetry, MinRNR: rnrCode(c.RNRTimer), RDAtomic: depth, DestRDAto: depth}
	if err := p.qp.ToRTR(port.Num, &r, &t); err != nil {
		return translate(err)
	}
	p.state.Store(int32(backend.StateRTR))
	if err := p.qp.ToRTS(p.psn, &t); err != nil {
		return translate(err)
	}
	p.state.Store(int32(backend.StateRTS))
	return nil
}

// timeout returns the exponent with which the first try and the retries take about d.
func timeout(d time.Duration) int {
	e := 8
	for ; e < 22 && (4096*time.Nanosecond)<<(e+1)*(1+device.Retries) <= d; e++ {
	}
	return e
}

// rnrMicroseconds are the times that the specification has codes for, from code 1 on.
var rnrMicroseconds = [...]int{
	10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480,
	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
}

// rnrCode returns the code of the shortest time that is not less than d.
func rnrCode(d time.Duration) int {
	for i, us := range rnrMicroseconds {
		if time.Duration(us)*time.Microsecond >= d {
			return i + 1
		}
	}
	return len(rnrMicroseconds)
}

// few is how many work requests are translated without an allocation.
const few = 8

// PostSend is described with backend.QP.
func (p *pair) PostSend(wrs []backend.SendWR) (int, error) {
	var short [few]ibverbs.SendWR
	out := short[:0]
	for i := range wrs {
		w := &wrs[i]
		s := ibverbs.SendWR{
			ID: w.Cookie, Opcode: ibverbs.Opcode(w.Op), Addr: uint64(uintptr(w.Local)), Len: uint32(w.N), RemoteAddr: w.Raddr, RKey: uint32(w.RKey),
			Imm: w.Imm, Add: w.Operand,
		}
		if w.RKey>>32 != 0 {
			s.RKey = 0 // no region has it
		}
		if w.Op == backend.OpCompareSwap {
			s.Add, s.Swap = w.Compare, w.Operand
		}
		if w.Signaled {
			s.Flags |= ibverbs.Signaled
		}
		if w.Inline {
			s.Flags |= ibverbs.Inline
		}
		if w.Fence {
			s.Flags |= ibverbs.Fence
		}
		if w.Region != nil {
			s.LKey = w.Region.LKey()
		}
		out = append(out, s)
	}
	n, err := p.qp.PostSend(out)
	return n, translate(err)
}

// PostRecv is described with backend.QP.
func (p *pair) PostRecv(wrs []backend.RecvWR) (int, error) {
	var short [few]ibverbs.RecvWR
	out := short[:0]
	for i := range wrs {
		w := ibverbs.RecvWR{ID: wrs[i].Cookie, Addr: uint64(uintptr(wrs[i].Local)), Len: uint32(wrs[i].N)}
		if wrs[i].Region != nil {
			w.LKey = wrs[i].Region.LKey()
		}
		out = append(out, w)
	}
	n, err := p.qp.PostRecv(out)
	return n, translate(err)
}

// Reset is described with backend.QP.
func (p *pair) Reset() error {
	if err := p.qp.ToReset(); err != nil {
		return translate(err)
	}
	return p.begin()
}

// Close is described with backend.QP.
func (p *pair) Close() error { return translate(p.qp.Close()) }
