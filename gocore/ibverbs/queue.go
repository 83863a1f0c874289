//go:build cgo

package ibverbs

// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"
)

func ptrOf[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

// scratch is C memory for the linked list that the verbs take as a batch.
type scratch struct {
	mem unsafe.Pointer
	n   int
}

func newScratch(n int, size C.size_t) scratch { return scratch{C.calloc(C.size_t(n), size), n} }

func (s *scratch) free() {
	C.free(s.mem)
	s.mem, s.n = nil, 0
}

// SRQ is a receive queue that queue pairs share.
type SRQ struct {
	pd  *PD
	mu  sync.Mutex
	ptr *C.struct_ibv_srq
	scr scratch
}

// maxRecvBatch bounds the requests of one PostRecv.
const maxRecvBatch = 256

// CreateSRQ makes a shared receive queue of at least depth requests.
func (p *PD) CreateSRQ(depth int) (*SRQ, error) {
	unlock, err := p.lock("ibv_create_srq")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if depth < 1 || depth > 1<<30 {
		return nil, &Error{"ibv_create_srq", syscall.EINVAL, fmt.Sprintf("a queue of %d requests", depth)}
	}
	s := &SRQ{pd: p}
	if errno := C.gmv_create_srq(p.ctx.lib.calls, p.ptr, C.int(depth), &s.ptr); errno != 0 {
		return nil, failed("ibv_create_srq", errno, "%d requests on %s", depth, p.ctx.name)
	}
	s.scr = newScratch(maxRecvBatch, C.sizeof_struct_gmv_recv_slot)
	return s, nil
}

// PostRecv posts receives with one doorbell for each 256, and returns how many the device
// took. The error is for the next one.
func (s *SRQ) PostRecv(wrs []RecvWR) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ptr == nil {
		return 0, closed("ibv_post_srq_recv", "the shared receive queue")
	}
	for done := 0; done < len(wrs); {
		n := min(len(wrs)-done, maxRecvBatch)
		r := C.gmv_post_srq(s.ptr, (*C.struct_gmv_recv)(ptrOf(&wrs[done])), C.int(n), (*C.struct_gmv_recv_slot)(s.scr.mem))
		posted, errno := result(r)
		done += posted
		if errno != 0 {
			return done, failed("ibv_post_srq_recv", errno, "request %d of %d", done+1, len(wrs))
		}
	}
	return len(wrs), nil
}

// result splits the result of the posting functions.
func result(r C.int64_t) (posted int, errno C.int) { return int(uint32(r)), C.int(r >> 32) }

// Close frees the queue.
func (s *SRQ) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ptr == nil {
		return nil
	}
	if errno := C.gmv_destroy_srq(s.pd.ctx.lib.calls, s.ptr); errno != 0 {
		return failed("ibv_destroy_srq", errno, "queue pairs are closed before their shared receive queue")
	}
	s.ptr = nil
	s.scr.free()
	return nil
}

// QPOptions describes a queue pair to make. The device may give larger sizes.
type QPOptions struct {
	SendCQ, RecvCQ *CQ
	SRQ            *SRQ // nil: a receive queue of its own
	MaxSend        int
	MaxRecv        int
	MaxInline      int
}

// QP is a queue pair of a reliable connection.
type QP struct {
	pd         *PD
	mu         sync.Mutex
	ptr        *C.struct_ibv_qp
	num        uint32
	cap        QPOptions // sizes as the device gave them
	send, recv scratch
}

// CreateQP makes a queue pair in state Reset.
func (p *PD) CreateQP(o QPOptions) (*QP, error) {
	unlock, err := p.lock("ibv_create_qp")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if o.SendCQ == nil || o.RecvCQ == nil || o.MaxSend < 1 || o.MaxSend > 1<<20 || o.MaxRecv < 0 || o.MaxRecv > 1<<20 || o.MaxInline < 0 {
		return nil, &Error{"ibv_create_qp", syscall.EINVAL, fmt.Sprintf("two completion queues, %d requests to send (at "+
			"least 1), %d to receive, %d bytes inline", o.MaxSend, o.MaxRecv, o.MaxInline)}
	}
	defer lockBoth(o.SendCQ, o.RecvCQ)()
	if o.SendCQ.ptr == nil || o.RecvCQ.ptr == nil {
		return nil, closed("ibv_create_qp", "the completion queue")
	}
	var srq *C.struct_ibv_srq
	if o.SRQ != nil {
		o.SRQ.mu.Lock()
		defer o.SRQ.mu.Unlock()
		if srq = o.SRQ.ptr; srq == nil {
			return nil, closed("ibv_create_qp", "the shared receive queue")
		}
	}
	q := &QP{pd: p}
	limits := C.struct_ibv_qp_cap{
		max_send_wr: C.uint32_t(o.MaxSend), max_recv_wr: C.uint32_t(o.MaxRecv), max_send_sge: 1, max_recv_sge: 1,
		max_inline_data: C.uint32_t(o.MaxInline),
	}
	if errno := C.gmv_create_qp(p.ctx.lib.calls, p.ptr, o.SendCQ.ptr, o.RecvCQ.ptr, srq, &limits, &q.ptr); errno != 0 {
		return nil, failed("ibv_create_qp", errno, "%d requests to send, %d to receive, %d bytes inline on %s",
			o.MaxSend, o.MaxRecv, o.MaxInline, p.ctx.name)
	}
	o.MaxSend, o.MaxRecv = max(o.MaxSend, int(limits.max_send_wr)), max(o.MaxRecv, int(limits.max_recv_wr))
	o.MaxInline = int(limits.max_inline_data)
	q.cap, q.num = o, uint32(q.ptr.qp_num)
	q.send = newScratch(min(o.MaxSend, maxSendBatch), C.sizeof_struct_gmv_send_slot)
	if o.SRQ == nil {
		q.recv = newScratch(maxRecvBatch, C.sizeof_struct_gmv_recv_slot)
	}
	return q, nil
}

// lockBoth locks two queues, always in the same order. They may be the same queue.
func lockBoth(a, b *CQ) (unlock func()) {
	if uintptr(unsafe.Pointer(a)) > uintptr(unsafe.Pointer(b)) {
		a, b = b, a
	}
	a.mu.Lock()
	if a == b {
		return a.mu.Unlock
	}
	b.mu.Lock()
	return func() { b.mu.Unlock(); a.mu.Unlock() }
}

// maxSendBatch bounds the memory for a batch of requests.
const maxSendBatch = 4096

// Num returns the number of the queue pair, which peers connect to.
func (q *QP) Num() uint32 { return q.num }

// MaxSend returns how many requests the send queue has room for.
func (q *QP) MaxSend() int { return q.cap.MaxSend }

// MaxRecv returns how many requests the receive queue has room for.
func (q *QP) MaxRecv() int { return q.cap.MaxRecv }

// MaxInline returns how many bytes of inline data a request may have.
func (q *QP) MaxInline() int { return q.cap.MaxInline }

// Remote is the other end of a connection and how to reach it.
type Remote struct {
	QPNum uint32
	PSN   uint32 // the first one that it sends
	MTU   int    // enum
	LID   uint16
	GID   [16]byte
	// Global: the peer is reached by GID, from entry SGIDIndex of the own port. On
	// Ethernet it always is.
	Global    bool
	SGIDIndex int
}

// Timers has the timers and limits of a connection.
type Timers struct {
	Timeout   int // 4.096 us * 2^Timeout, 0: none
	Retries   int // how often a request without an answer is sent again
	RNRRetry  int // the same when the peer has no receive; 7: for ever
	MinRNR    int // how long the peer waits before that, a code of the specification
	RDAtomic  int // reads and atomics under way
	DestRDAto int // reads and atomics answered at a time
}

func (q *QP) modify(step string, a *C.struct_ibv_qp_attr, mask int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ptr == nil {
		return closed("ibv_modify_qp", "the queue pair")
	}
	errno := C.gmv_modify_qp(q.pd.ctx.lib.calls, q.ptr, a, C.int(mask))
	return failed("ibv_modify_qp", errno, "queue pair %d of %s to %s", q.num, q.pd.ctx.name, step)
}

// ToInit brings the queue pair to INIT: it has a port, and receives may be posted.
func (q *QP) ToInit(port int, access Access) error {
	a := C.struct_ibv_qp_attr{qp_state: C.IBV_QPS_INIT, port_num: C.uint8_t(port), qp_access_flags: C.uint(access)}
	return q.modify("INIT", &a, C.IBV_QP_STATE|C.IBV_QP_PKEY_INDEX|C.IBV_QP_PORT|C.IBV_QP_ACCESS_FLAGS)
}

// ToRTR connects the queue pair. It can receive from then on.
func (q *QP) ToRTR(port int, r *Remote, t *Timers) error {
	a := C.struct_ibv_qp_attr{
		qp_state: C.IBV_QPS_RTR, path_mtu: C.int(r.MTU), dest_qp_num: C.uint32_t(r.QPNum), rq_psn: C.uint32_t(r.PSN & 0xffffff),
		max_dest_rd_atomic: C.uint8_t(t.DestRDAto), min_rnr_timer: C.uint8_t(t.MinRNR),
	}
	a.ah_attr.port_num, a.ah_attr.dlid = C.uint8_t(port), C.uint16_t(r.LID)
	if r.Global {
		a.ah_attr.is_global = 1
		a.ah_attr.grh.sgid_index, a.ah_attr.grh.hop_limit = C.uint8_t(r.SGIDIndex), 64
		*(*[16]byte)(unsafe.Pointer(&a.ah_attr.grh.dgid)) = r.GID
	}
	return q.modify("RTR", &a, C.IBV_QP_STATE|C.IBV_QP_AV|C.IBV_QP_PATH_MTU|C.IBV_QP_DEST_QPN|C.IBV_QP_RQ_PSN|
		C.IBV_QP_MAX_DEST_RD_ATOMIC|C.IBV_QP_MIN_RNR_TIMER)
}

// ToRTS lets the queue pair send, from sequence number psn.
func (q *QP) ToRTS(psn uint32, t *Timers) error {
	a := C.struct_ibv_qp_attr{
		qp_state: C.IBV_QPS_RTS, timeout: C.uint8_t(t.Timeout), retry_cnt: C.uint8_t(t.Retries), rnr_retry: C.uint8_t(t.RNRRetry),
		sq_psn: C.uint32_t(psn & 0xffffff), max_rd_atomic: C.uint8_t(t.RDAtomic),
	}
	return q.modify("RTS", &a, C.IBV_QP_STATE|C.IBV_QP_TIMEOUT|C.IBV_QP_RETRY_CNT|C.IBV_QP_RNR_RETRY|C.IBV_QP_SQ_PSN|
		C.IBV_QP_MAX_QP_RD_ATOMIC)
}

// ToErr ends the requests under way. All of them complete with an error.
func (q *QP) ToErr() error {
	a := C.struct_ibv_qp_attr{qp_state: C.IBV_QPS_ERR}
	return q.modify("ERR", &a, C.IBV_QP_STATE)
}

// ToReset drops the requests under way.
func (q *QP) ToReset() error {
	a := C.struct_ibv_qp_attr{qp_state: C.IBV_QPS_RESET}
	return q.modify("RESET", &a, C.IBV_QP_STATE)
}

// State asks the device for the state of the queue pair.
func (q *QP) State() (State, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ptr == nil {
		return Err, closed("ibv_query_qp", "the queue pair")
	}
	var a C.struct_ibv_qp_attr
	if errno := C.gmv_query_qp(q.pd.ctx.lib.calls, q.ptr, &a); errno != 0 {
		return Err, failed("ibv_query_qp", errno, "queue pair %d", q.num)
	}
	return State(a.qp_state), nil
}

// PostSend posts work requests with one doorbell (for each 4096), and returns how many of
// them the device took. The error is for the next one. There may be at most MaxSend.
func (q *QP) PostSend(wrs []SendWR) (int, error) {
	if len(wrs) == 0 {
		return 0, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ptr == nil {
		return 0, closed("ibv_post_send", "the queue pair")
	}
	if len(wrs) > q.cap.MaxSend {
		return 0, &Error{"ibv_post_send", syscall.ENOMEM,
			fmt.Sprintf("%d requests at once, queue pair %d takes %d", len(wrs), q.num, q.cap.MaxSend)}
	}
	for done := 0; done < len(wrs); {
		n := min(len(wrs)-done, q.send.n)
		posted, errno := result(C.gmv_post_send(q.ptr, (*C.struct_gmv_send)(ptrOf(&wrs[done])), C.int(n),
			(*C.struct_gmv_send_slot)(q.send.mem)))
		done += posted
		if errno != 0 {
			bad := &wrs[min(done, len(wrs)-1)]
			return done, failed("ibv_post_send", errno, "%v of %d bytes, request %d of %d, queue pair %d", bad.Opcode, bad.Len,
				done+1, len(wrs), q.num)
		}
	}
	return len(wrs), nil
}

// PostRecv posts receives with one doorbell for each 256, and returns how many the device
// took. The error is for the next one.
func (q *QP) PostRecv(wrs []RecvWR) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ptr == nil:
		return 0, closed("ibv_post_recv", "the queue pair")
	case q.cap.SRQ != nil:
		return 0, &Error{"ibv_post_recv", syscall.EINVAL, "the queue pair receives from a shared receive queue"}
	}
	for done := 0; done < len(wrs); {
		n := min(len(wrs)-done, maxRecvBatch)
		r := C.gmv_post_recv(q.ptr, (*C.struct_gmv_recv)(ptrOf(&wrs[done])), C.int(n), (*C.struct_gmv_recv_slot)(q.recv.mem))
		posted, errno := result(r)
		done += posted
		if errno != 0 {
			return done, failed("ibv_post_recv", errno, "request %d of %d, queue pair %d", done+1, len(wrs), q.num)
		}
	}
	return len(wrs), nil
}

// Close frees the queue pair. Requests under way do not complete. When Close returns, the
// device has stopped.
func (q *QP) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ptr == nil {
		return nil
	}
	if errno := C.gmv_destroy_qp(q.pd.ctx.lib.calls, q.ptr); errno != 0 {
		return failed("ibv_destroy_qp", errno, "queue pair %d", q.num)
	}
	q.ptr = nil
	q.send.free()
	if q.recv.mem != nil {
		q.recv.free()
	}
	return nil
}
