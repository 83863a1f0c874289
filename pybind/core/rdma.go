package core

import "gormapy/gocore/rdmaapi"

// RdmaDevices returns a JSON list of the back ends with their devices. The functions of
// package rdmaapi describe this and the following.
func RdmaDevices() string { return rdmaapi.Devices() }

// RdmaError returns the error for a negative code, a JSON object.
func RdmaError(code int64) string { return rdmaapi.ErrorOf(code) }

// RdmaClose closes what a handle names and all that depends on it.
func RdmaClose(h int64) int64 { return rdmaapi.Close(h) }

// RdmaAlive returns 1 if a handle names an object, else 0.
func RdmaAlive(h int64) int64 { return rdmaapi.Alive(h) }

// RdmaOpen opens a device and returns a context.
func RdmaOpen(backend, device string) int64 { return rdmaapi.Open(backend, device) }

// RdmaContextInfo returns the device of a context, a JSON object.
func RdmaContextInfo(ctx int64) string { return rdmaapi.ContextInfo(ctx) }

// RdmaAllocPD makes a protection domain.
func RdmaAllocPD(ctx int64) int64 { return rdmaapi.AllocPD(ctx) }

// RdmaRegister registers memory.
func RdmaRegister(pd, addr, n, access int64) int64 { return rdmaapi.Register(pd, addr, n, access) }

// RdmaRegionInfo returns "addr length lkey rkey access".
func RdmaRegionInfo(mr int64) string { return rdmaapi.RegionInfo(mr) }

// RdmaCreateCQ makes a completion queue.
func RdmaCreateCQ(ctx, depth int64) int64 { return rdmaapi.CreateCQ(ctx, depth) }

// RdmaPoll writes at most n completions to addr and returns how many.
func RdmaPoll(cq, addr, n int64) int64 { return rdmaapi.Poll(cq, addr, n) }

// RdmaWait waits for completions, some microseconds at most.
func RdmaWait(cq, us int64) int64 { return rdmaapi.Wait(cq, us) }

// RdmaCreateQP makes a queue pair.
func RdmaCreateQP(pd, scq, rcq, maxSend, maxRecv, maxInline int64) int64 {
	return rdmaapi.CreateQP(pd, scq, rcq, maxSend, maxRecv, maxInline)
}

// RdmaPairInfo returns "number max_send_wr max_recv_wr max_inline".
func RdmaPairInfo(qp int64) string { return rdmaapi.PairInfo(qp) }

// RdmaPairState returns the state of a queue pair.
func RdmaPairState(qp int64) int64 { return rdmaapi.PairState(qp) }

// RdmaPairReset brings a queue pair back to INIT.
func RdmaPairReset(qp int64) int64 { return rdmaapi.PairReset(qp) }

// RdmaPairExchange writes to addr what the peer needs to connect.
func RdmaPairExchange(qp, addr, n int64) int64 { return rdmaapi.PairExchange(qp, addr, n) }

// RdmaPairConnect connects to the queue pair whose info lies at addr.
func RdmaPairConnect(qp, addr, n, timeoutUS, rnrRetry, rnrTimerUS int64) int64 {
	return rdmaapi.PairConnect(qp, addr, n, timeoutUS, rnrRetry, rnrTimerUS)
}

// RdmaPostSend posts n work requests at addr.
func RdmaPostSend(qp, addr, n int64) int64 { return rdmaapi.PostSend(qp, addr, n) }

// RdmaPostRecv posts n receives at addr.
func RdmaPostRecv(qp, addr, n int64) int64 { return rdmaapi.PostRecv(qp, addr, n) }
