package core

import "gormapy/gocore/rdmaapi"

// RdmaEngineOpen makes a transfer engine. The functions of package rdmaapi describe this
// and the following.
func RdmaEngineOpen(options string) int64 { return rdmaapi.EngineOpen(options) }

// RdmaEngineInfo returns the descriptor of an engine.
func RdmaEngineInfo(h int64) string { return rdmaapi.EngineInfo(h) }

// RdmaEngineAdd makes another engine known.
func RdmaEngineAdd(h int64, descriptor string) int64 { return rdmaapi.EngineAdd(h, descriptor) }

// RdmaEngineRemove deregisters another engine.
func RdmaEngineRemove(h int64, name string) int64 { return rdmaapi.EngineRemove(h, name) }

// RdmaEngineRegister registers memory.
func RdmaEngineRegister(h, addr, n, writable int64) int64 {
	return rdmaapi.EngineRegister(h, addr, n, writable)
}

// RdmaEngineMemory returns "addr rkey access" of memory.
func RdmaEngineMemory(h, id int64) string { return rdmaapi.EngineMemory(h, id) }

// RdmaEngineDeregister ends the registration of memory.
func RdmaEngineDeregister(h, id int64) int64 { return rdmaapi.EngineDeregister(h, id) }

// RdmaEngineSession pairs local memory with that of another engine.
func RdmaEngineSession(h, local int64, name, id string, addr, rkey, n, access int64) int64 {
	return rdmaapi.EngineSession(h, local, name, id, addr, rkey, n, access)
}

// RdmaEngineSessionAlive returns 1 if transfers of a session can be tried.
func RdmaEngineSessionAlive(h int64) int64 { return rdmaapi.EngineSessionAlive(h) }

// RdmaEngineTransfer begins a transfer.
func RdmaEngineTransfer(session, read, local, remote, n, uid int64) int64 {
	return rdmaapi.EngineTransfer(session, read, local, remote, n, uid)
}

// RdmaEngineBatch begins a transfer of n entries at addr.
func RdmaEngineBatch(session, read, addr, n, uid int64) int64 {
	return rdmaapi.EngineBatch(session, read, addr, n, uid)
}

// RdmaEngineArrived takes the arrival of a transfer.
func RdmaEngineArrived(h int64, name string, uid, us int64) int64 {
	return rdmaapi.EngineArrived(h, name, uid, us)
}

// RdmaEngineUID returns a number for a transfer.
func RdmaEngineUID(h int64) int64 { return rdmaapi.EngineUID(h) }

// RdmaStatusFree forgets a status.
func RdmaStatusFree(h int64) int64 { return rdmaapi.StatusFree(h) }

// RdmaStatusWait waits for a transfer and returns its code.
func RdmaStatusWait(h, us int64) int64 { return rdmaapi.StatusWait(h, us) }

// RdmaStatusText returns why a transfer has failed.
func RdmaStatusText(h int64) string { return rdmaapi.StatusText(h) }

// RdmaWakerOpen makes a waker.
func RdmaWakerOpen() int64 { return rdmaapi.WakerOpen() }

// RdmaWakerFD returns its descriptor.
func RdmaWakerFD(h int64) int64 { return rdmaapi.WakerFD(h) }

// RdmaWakerWatch makes a waker report the end of a transfer.
func RdmaWakerWatch(h, status int64) int64 { return rdmaapi.WakerWatch(h, status) }

// RdmaWakerTake writes the numbers of statuses that have ended to addr.
func RdmaWakerTake(h, addr, n int64) int64 { return rdmaapi.WakerTake(h, addr, n) }
