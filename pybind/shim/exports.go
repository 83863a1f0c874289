package main

// The calls that may wait, and the hot calls, for the C side of the shim. Each returns an
// error code, or mpi.Interrupted. After that the C side looks at signals, and then calls
// gm_wait with the pending request (BLOCKING in shim.h) or, if there is none, the same
// function again (RESTARTING).

/*
#include "gormapy.h"
*/
import "C"

import (
	"runtime/debug"
	"unsafe"

	"gormapy/gocore/dtype"
	"gormapy/gocore/mpi"
	"gormapy/gocore/op"
	"gormapy/gocore/rma"
)

type (
	i64 = C.int64_t
	i32 = C.int
)

func init() { rma.Forks = (*uint32)(unsafe.Pointer(&C.gm_forks)) }

func status(st *C.gm_status) *mpi.Status { return (*mpi.Status)(unsafe.Pointer(st)) }
func long(p *C.int64_t) *int64           { return (*int64)(unsafe.Pointer(p)) }

//export gm_wait
func gm_wait(req i64, st *C.gm_status) i32 { return i32(mpi.Wait(int64(req), status(st))) }

//export gm_await
func gm_await(reqs *C.int64_t, n C.int) i32 { return i32(mpi.Await(unsafe.Slice(long(reqs), int(n)))) }

//export gm_wait_each
func gm_wait_each(reqs *C.int64_t, n C.int, sts *C.gm_status, codes, done *C.int) i32 {
	return i32(mpi.WaitEach(unsafe.Slice(long(reqs), int(n)), statuses(sts, n), codesOf(codes, n), (*int32)(unsafe.Pointer(done))))
}

//export gm_result
func gm_result(req i64, out *C.int64_t) i32 { return i32(mpi.Result(int64(req), long(out))) }

//export gm_win_notified
func gm_win_notified(win, slot, count, wait i64, req *C.int64_t) i32 {
	h, code := mpi.WinNotified(int64(win), int64(slot), int64(count), int64(wait))
	*req = C.int64_t(h)
	return i32(code)
}

//export gm_win_notified_drop
func gm_win_notified_drop(req i64) { mpi.WinNotifiedDrop(int64(req)) }

//export gm_win_give_back
func gm_win_give_back(win, slot, count i64) {
	mpi.WinGiveBackNotified(int64(win), int(slot), int(count))
}

//export gm_test
func gm_test(req i64, st *C.gm_status, done *C.int) i32 {
	ok, code := mpi.Test(int64(req), status(st))
	if ok {
		*done = 1
	}
	return i32(code)
}

//export gm_request_status
func gm_request_status(req i64, st *C.gm_status, done *C.int) i32 {
	ok, code := mpi.RequestStatus(int64(req), status(st))
	if ok {
		*done = 1
	}
	return i32(code)
}

//export gm_testall
func gm_testall(reqs *C.int64_t, n C.int, sts *C.gm_status, codes, all *C.int) i32 {
	over, code := mpi.Testall(unsafe.Slice(long(reqs), int(n)), statuses(sts, n), codesOf(codes, n))
	*all = C.int(yes(over))
	return i32(code)
}

//export gm_waitany
func gm_waitany(reqs *C.int64_t, n C.int, st *C.gm_status, index *C.int) i32 {
	i, code := mpi.Waitany(unsafe.Slice(long(reqs), int(n)), status(st))
	*index = C.int(i)
	return i32(code)
}

//export gm_testany
func gm_testany(reqs *C.int64_t, n C.int, st *C.gm_status, index, flag *C.int) i32 {
	i, over, code := mpi.Testany(unsafe.Slice(long(reqs), int(n)), status(st))
	*index, *flag = C.int(i), C.int(yes(over))
	return i32(code)
}

// gm_some is Waitsome, or Testsome if wait is 0.
//
//export gm_some
func gm_some(reqs *C.int64_t, n C.int, indices *C.int, sts *C.gm_status, codes *C.int, wait C.int, count *C.int) i32 {
	some := mpi.Testsome
	if wait != 0 {
		some = mpi.Waitsome
	}
	k, code := some(unsafe.Slice(long(reqs), int(n)), codesOf(indices, n), statuses(sts, n), codesOf(codes, n))
	*count = C.int(k)
	return i32(code)
}

// statuses and codesOf make slices of n statuses, and of n codes or indices; nil for none.
func statuses(sts *C.gm_status, n C.int) []mpi.Status {
	if sts == nil {
		return nil
	}
	return unsafe.Slice(status(sts), int(n))
}

func codesOf(codes *C.int, n C.int) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(codes)), int(n))
}

//export gm_request_free
func gm_request_free(req i64) i32 { return i32(mpi.RequestFree(int64(req))) }

//export gm_abandon
func gm_abandon(req i64, waited i32) { mpi.RequestAbandon(int64(req), waited != 0) }

//export gm_blocks
func gm_blocks(req i64) { mpi.Blocks(int64(req)) }

//export gm_progress
func gm_progress() { mpi.Progress() }

//export gm_request_over
func gm_request_over(req i64) i32 { return yes(mpi.RequestOver(int64(req))) }

//export gm_request_complete
func gm_request_complete(req i64) i32 { return yes(mpi.RequestComplete(int64(req))) }

//export gm_request_inactive
func gm_request_inactive(req i64) i32 { return yes(mpi.RequestInactive(int64(req))) }

//export gm_cancel
func gm_cancel(req i64) i32 { return i32(mpi.RequestCancel(int64(req))) }

//export gm_start
func gm_start(req i64) i32 { return i32(mpi.Start(int64(req))) }

//export gm_p2p
func gm_p2p(kind i32, comm, addr, count, typ i64, peer, tag i64, req *C.int64_t) i32 {
	h, code := mpi.P2P(int(kind), int64(comm), int64(addr), int64(count), int64(typ), int(peer), int(tag))
	*req = C.int64_t(h)
	return i32(code)
}

//export gm_p2p_init
func gm_p2p_init(kind i32, comm, addr, count, typ i64, peer, tag i64, req *C.int64_t) i32 {
	h, code := mpi.P2PInit(int(kind), int64(comm), int64(addr), int64(count), int64(typ), int(peer), int(tag))
	*req = C.int64_t(h)
	return i32(code)
}

//export gm_blocking
func gm_blocking(kind i32, comm, addr, count, typ i64, peer, tag i64, st *C.gm_status, pending *C.int64_t) i32 {
	return i32(mpi.Blocking(int(kind), int64(comm), int64(addr), int64(count), int64(typ), int(peer), int(tag), status(st), long(pending)))
}

//export gm_send_now
func gm_send_now(kind i32, comm, addr, count, typ i64, peer, tag i64, pending *C.int64_t) i32 {
	return i32(mpi.SendNow(int(kind), int64(comm), int64(addr), int64(count), int64(typ), int(peer), int(tag), long(pending)))
}

//export gm_sendrecv
func gm_sendrecv(comm i64, s, r *C.int64_t, st *C.gm_status, pending *C.int64_t) i32 {
	return i32(mpi.Sendrecv(int64(comm), *(*[5]int64)(unsafe.Pointer(s)), *(*[5]int64)(unsafe.Pointer(r)), status(st),
		long(pending)))
}

//export gm_isendrecv
func gm_isendrecv(comm i64, s, r *C.int64_t, req *C.int64_t) i32 {
	h, code := mpi.Isendrecv(int64(comm), *(*[5]int64)(unsafe.Pointer(s)), *(*[5]int64)(unsafe.Pointer(r)))
	*req = C.int64_t(h)
	return i32(code)
}

//export gm_probe
func gm_probe(comm i64, source, tag i64, st *C.gm_status, msg, wait *C.int64_t) i32 {
	return i32(mpi.Probe(int64(comm), int(source), int(tag), status(st), long(msg), long(wait)))
}

//export gm_end_probe
func gm_end_probe(wait i64) { mpi.EndProbe(int64(wait)) }

//export gm_recv_object
func gm_recv_object(comm i64, source, tag i64, addr, room i64, st *C.gm_status, msg, wait *C.int64_t) i32 {
	return i32(mpi.RecvObject(int64(comm), int(source), int(tag), int64(addr), int64(room), status(st), long(msg), long(wait)))
}

//export gm_sendrecv_object
func gm_sendrecv_object(comm i64, send *C.int64_t, source, tag i64, addr, room i64, st *C.gm_status, msg, wait, sending *C.int64_t) i32 {
	s := (*[5]int64)(unsafe.Pointer(send))
	return i32(mpi.SendrecvObject(int64(comm), s[0], s[1], s[2], int(s[3]), int(s[4]), int(source), int(tag),
		int64(addr), int64(room), status(st), long(msg), long(wait), long(sending)))
}

//export gm_iprobe
func gm_iprobe(comm i64, source, tag i64, st *C.gm_status, msg *C.int64_t, found *C.int) i32 {
	ok, code := mpi.Iprobe(int64(comm), int(source), int(tag), status(st), long(msg))
	if ok {
		*found = 1
	}
	return i32(code)
}

// gm_sendrecv_replace takes address, count, datatype, destination, tag, source and tag.
//
//export gm_sendrecv_replace
func gm_sendrecv_replace(comm i64, x *C.int64_t, st *C.gm_status, pending *C.int64_t) i32 {
	a := (*[7]int64)(unsafe.Pointer(x))
	return i32(mpi.SendrecvReplace(int64(comm), a[0], a[1], a[2], int(a[3]), int(a[4]), int(a[5]), int(a[6]), status(st), long(pending)))
}

//export gm_mrecv
func gm_mrecv(msg, addr, count, typ i64, req *C.int64_t) i32 {
	h, code := mpi.Mrecv(int64(msg), int64(addr), int64(count), int64(typ))
	*req = C.int64_t(h)
	return i32(code)
}

//export gm_blocking_mrecv
func gm_blocking_mrecv(msg, addr, count, typ i64, st *C.gm_status, pending *C.int64_t, there *C.int) i32 {
	refused := false
	code := mpi.BlockingMrecv(int64(msg), int64(addr), int64(count), int64(typ), status(st), long(pending), &refused)
	*there = C.int(yes(refused))
	return i32(code)
}

//export gm_barrier
func gm_barrier(comm i64, pending *C.int64_t) i32 {
	return i32(mpi.Barrier(int64(comm), long(pending)))
}

//export gm_coll
func gm_coll(kind i32, comm, saddr, scount, stype, raddr, rcount, rtype, oph i64, root i64, req *C.int64_t) i32 {
	h, code := mpi.Coll(int(kind), int64(comm), int64(saddr), int64(scount), int64(stype), int64(raddr), int64(rcount), int64(rtype), int64(oph), int(root))
	*req = C.int64_t(h)
	return i32(code)
}

//export gm_coll_blocking
func gm_coll_blocking(kind i32, comm, saddr, scount, stype, raddr, rcount, rtype, oph i64, root i64, pending *C.int64_t) i32 {
	return i32(mpi.CollBlocking(int(kind), int64(comm), int64(saddr), int64(scount), int64(stype), int64(raddr), int64(rcount), int64(rtype), int64(oph), int(root), long(pending)))
}

//export gm_set_neighbors
func gm_set_neighbors(comm i64, in *C.int64_t, nin i64, out *C.int64_t, nout i64, order *C.int64_t, norder i64) i32 {
	return i32(mpi.SetNeighbors(int64(comm), unsafe.Slice(long(in), int(nin)), unsafe.Slice(long(out), int(nout)),
		unsafe.Slice(long(order), int(norder))))
}

func part(o C.gm_operand) mpi.Operand {
	return mpi.Operand{Addr: int64(o.addr), Count: int64(o.count), Type: int64(o.datatype)}
}
func partsAt(p *C.gm_operand, n i64) []mpi.Operand {
	return unsafe.Slice((*mpi.Operand)(unsafe.Pointer(p)), int(n))
}

//export gm_neighbor
func gm_neighbor(kind i32, comm i64, s, r C.gm_operand, nonblocking i32, req *C.int64_t) i32 {
	return i32(mpi.Neighbor(int(kind), int64(comm), part(s), part(r), nonblocking != 0, long(req)))
}

//export gm_neighbor_parts
func gm_neighbor_parts(kind i32, comm i64, s *C.gm_operand, ns i64, r *C.gm_operand, nr i64, nonblocking i32, req *C.int64_t) i32 {
	return i32(mpi.NeighborParts(int(kind), int64(comm), partsAt(s, ns), partsAt(r, nr), nonblocking != 0, long(req)))
}

//export gm_neighbor_init
func gm_neighbor_init(kind i32, comm i64, s *C.gm_operand, ns i64, r *C.gm_operand, nr i64, req *C.int64_t) i32 {
	h, code := mpi.NeighborInit(int(kind), int64(comm), partsAt(s, ns), partsAt(r, nr))
	*req = C.int64_t(h)
	return i32(code)
}

//export gm_make_type
func gm_make_type(recipe, n i64, shape *C.gm_type_shape) i64 {
	return i64(mpi.MakeType(int64(recipe), int64(n), (*mpi.TypeShape)(unsafe.Pointer(shape))))
}

//export gm_shape_of_type
func gm_shape_of_type(typ i64, shape *C.gm_type_shape) i32 {
	return i32(mpi.ShapeOfType(int64(typ), (*mpi.TypeShape)(unsafe.Pointer(shape))))
}

//export gm_commit_type
func gm_commit_type(typ i64) i32 { return i32(mpi.TypeCommit(int64(typ))) }

//export gm_drop_type
func gm_drop_type(typ i64) { mpi.TypeDrop(int64(typ)) }

//export gm_free_type
func gm_free_type(typ i64) i32 { return i32(mpi.TypeFree(int64(typ))) }

//export gm_group_incl
func gm_group_incl(group, ranks, n i64) i64 {
	return i64(mpi.GroupIncl(int64(group), int64(ranks), int64(n)))
}

//export gm_group_size
func gm_group_size(group i64) i64 { return i64(mpi.GroupSize(int64(group))) }

//export gm_group_rank
func gm_group_rank(group i64, rank *C.int64_t) i32 {
	r, code := mpi.GroupRank(int64(group))
	*rank = i64(r)
	return i32(code)
}

//export gm_group_translate
func gm_group_translate(group, ranks, n, other, found i64) i32 {
	return i32(mpi.GroupTranslate(int64(group), int64(ranks), int64(n), int64(other), int64(found)))
}

//export gm_comm_group
func gm_comm_group(comm i64) i64 { return i64(mpi.CommGroup(int64(comm))) }

//export gm_group_free
func gm_group_free(group i64) i32 { return i32(mpi.GroupFree(int64(group))) }

//export gm_shape_of
func gm_shape_of(comm i64, shape *C.gm_comm_shape) i32 {
	return i32(mpi.ShapeOf(int64(comm), (*mpi.CommShape)(unsafe.Pointer(shape))))
}

//export gm_exchange_heads
func gm_exchange_heads(h *C.gm_heads, pending *C.int64_t) i32 {
	return i32(mpi.ExchangeHeads((*mpi.Heads)(unsafe.Pointer(h)), long(pending)))
}

//export gm_settle_heads
func gm_settle_heads(h *C.gm_heads, failed i32) i32 {
	return i32(mpi.SettleHeads((*mpi.Heads)(unsafe.Pointer(h)), failed != 0))
}

//export gm_refuse_objects
func gm_refuse_objects(h *C.gm_heads) { mpi.RefuseObjects((*mpi.Heads)(unsafe.Pointer(h))) }

//export gm_finish_objects
func gm_finish_objects(h *C.gm_heads) { mpi.FinishObjects((*mpi.Heads)(unsafe.Pointer(h))) }

//export gm_long_objects
func gm_long_objects(h *C.gm_heads, s, r *C.gm_side, req *C.int64_t) i32 {
	send, recv := side(s), side(r)
	n, code := mpi.LongObjects((*mpi.Heads)(unsafe.Pointer(h)), &send, &recv)
	*req = C.int64_t(n)
	return i32(code)
}

//export gm_objects_differ
func gm_objects_differ(mine, theirs, rank i64) i32 {
	return i32(mpi.ObjectsDiffer(int64(mine), int64(theirs), int(rank)))
}

//export gm_fold_failed
func gm_fold_failed() i32 { return i32(mpi.FoldFailed()) }

//export gm_collv
func gm_collv(kind i32, comm i64, s, r *C.gm_side, root i64, req *C.int64_t) i32 {
	send, recv := side(s), side(r)
	h, code := mpi.Collv(int(kind), int64(comm), &send, &recv, int(root))
	*req = C.int64_t(h)
	return i32(code)
}

//export gm_collv_blocking
func gm_collv_blocking(kind i32, comm i64, s, r *C.gm_side, root i64, pending *C.int64_t) i32 {
	send, recv := side(s), side(r)
	return i32(mpi.CollvBlocking(int(kind), int64(comm), &send, &recv, int(root), long(pending)))
}

func side(s *C.gm_side) mpi.Side {
	out := mpi.Side{Addr: int64(s.addr), Type: int64(s._type)}
	if s.ncounts > 0 {
		out.Counts = unsafe.Slice(long(s.counts), int(s.ncounts))
	}
	if s.ndispls > 0 {
		out.Displs = unsafe.Slice(long(s.displs), int(s.ndispls))
	}
	return out
}

//export gm_comm_dup
func gm_comm_dup(comm i64, made, req *C.int64_t) i32 { return makes(mpi.Dup(int64(comm)), made, req) }

//export gm_comm_split
func gm_comm_split(comm i64, color, key i64, made, req *C.int64_t) i32 {
	return makes(mpi.Split(int64(comm), int(color), int(key)), made, req)
}

//export gm_comm_split_type
func gm_comm_split_type(comm, kind, key i64, made, req *C.int64_t) i32 {
	return makes(mpi.SplitType(int64(comm), int(kind), int(key)), made, req)
}

//export gm_comm_create
func gm_comm_create(comm, group i64, made, req *C.int64_t) i32 {
	return makes(mpi.Create(int64(comm), int64(group)), made, req)
}

//export gm_comm_merge
func gm_comm_merge(comm, high i64, made, req *C.int64_t) i32 {
	return makes(mpi.Merge(int64(comm), high != 0), made, req)
}

//export gm_comm_free
func gm_comm_free(comm i64, made, req *C.int64_t) i32 { return makes(mpi.Free(int64(comm)), made, req) }

//export gm_comm_disconnect
func gm_comm_disconnect(comm i64, made, req *C.int64_t) i32 {
	return makes(mpi.Disconnect(int64(comm)), made, req)
}

//export gm_win_create
func gm_win_create(flavor, addr, bytes, unit, comm, hints, align i64, made, req *C.int64_t) i32 {
	return makes(mpi.CreateWin(int(flavor), int64(addr), int64(bytes), int64(unit), int64(comm), int64(hints), int64(align)), made, req)
}

//export gm_file_open
func gm_file_open(comm, name, n, amode, buffer, aggregators, collective, perm i64, req *C.int64_t) i32 {
	return started(req)(mpi.FileOpen(int64(comm), int64(name), int64(n), int(amode), int64(buffer), int64(aggregators), int64(collective), int64(perm)))
}

//export gm_file_io
func gm_file_io(kind i32, file, offset, addr, count, typ i64, req *C.int64_t) i32 {
	return started(req)(mpi.FileIO(int(kind), int64(file), int64(offset), int64(addr), int64(count), int64(typ)))
}

//export gm_file_access
func gm_file_access(kind i32, file, offset, addr, count, typ i64, st *C.gm_status, req *C.int64_t) i32 {
	return i32(mpi.FileAccess(int(kind), int64(file), int64(offset), int64(addr), int64(count), int64(typ), status(st), long(req)))
}

//export gm_file_seek
func gm_file_seek(file, offset, whence i64) i64 {
	return i64(mpi.FileSeek(int64(file), int64(offset), int(whence)))
}

//export gm_file_position
func gm_file_position(file i64) i64 { return i64(mpi.FilePosition(int64(file))) }

//export gm_win_describe
func gm_win_describe(win i64, out *C.int64_t) i32 {
	return i32(mpi.WinDescribe(int64(win), (*mpi.WinDescription)(unsafe.Pointer(out))))
}

//export gm_win_check_free
func gm_win_check_free(win i64) i32 { return i32(mpi.WinCheckFree(int64(win))) }

//export gm_win_free
func gm_win_free(win i64, made, req *C.int64_t) i32 { return makes(mpi.FreeWin(int64(win)), made, req) }

func makes(begin mpi.Begin, made, req *C.int64_t) i32 {
	return i32(mpi.Make(begin, long(made), long(req)))
}

func started(req *C.int64_t) func(int64, mpi.Code) i32 {
	return func(h int64, code mpi.Code) i32 {
		*req = C.int64_t(h)
		return i32(code)
	}
}

//export gm_rma
func gm_rma(a *C.gm_access) i32 { return i32(mpi.RMA((*mpi.Access)(unsafe.Pointer(a)))) }

//export gm_rma_request
func gm_rma_request(a *C.gm_access, req *C.int64_t) i32 {
	return started(req)(mpi.RMARequest((*mpi.Access)(unsafe.Pointer(a))))
}

//export gm_compare_and_swap
func gm_compare_and_swap(win, origin, compare, result, datatype, rank, disp i64) i32 {
	return i32(mpi.CompareAndSwap(int64(win), int64(origin), int64(compare), int64(result), int64(datatype), int(rank), int64(disp)))
}

//export gm_fence
func gm_fence(win i64, assert i64, pending *C.int64_t) i32 {
	return i32(mpi.Fence(int64(win), int(assert), long(pending)))
}

//export gm_lock
func gm_lock(win i64, rank, kind, assert i64, pending *C.int64_t) i32 {
	return i32(mpi.Lock(int64(win), int(rank), int(kind), int(assert), long(pending)))
}

//export gm_lock_all
func gm_lock_all(win i64, assert i64, pending *C.int64_t) i32 {
	return i32(mpi.LockAll(int64(win), int(assert), long(pending)))
}

//export gm_unlock
func gm_unlock(win i64, rank i64, pending *C.int64_t) i32 {
	return i32(mpi.Unlock(int64(win), int(rank), long(pending)))
}

//export gm_unlock_all
func gm_unlock_all(win i64, pending *C.int64_t) i32 {
	return i32(mpi.UnlockAll(int64(win), long(pending)))
}

//export gm_flush
func gm_flush(win i64, rank i64, pending *C.int64_t) i32 {
	return i32(mpi.Flush(int64(win), int(rank), long(pending)))
}

//export gm_complete_at
func gm_complete_at(win i64, rank i64, pending *C.int64_t) i32 {
	return i32(mpi.CompleteAt(int64(win), int(rank), long(pending)))
}

//export gm_win_post
func gm_win_post(win, group, assert i64) i32 {
	return i32(mpi.WinPost(int64(win), int64(group), int(assert)))
}

//export gm_win_start
func gm_win_start(win, group, assert i64, pending *C.int64_t) i32 {
	return i32(mpi.WinStart(int64(win), int64(group), int(assert), long(pending)))
}

//export gm_win_complete
func gm_win_complete(win i64, pending *C.int64_t) i32 {
	return i32(mpi.WinComplete(int64(win), long(pending)))
}

//export gm_win_wait
func gm_win_wait(win i64, pending *C.int64_t) i32 { return i32(mpi.WinWait(int64(win), long(pending))) }

//export gm_win_test
func gm_win_test(win i64, done *C.int64_t) i32 { return i32(mpi.WinTest(int64(win), long(done))) }

//export gm_win_desc
func gm_win_desc(win i64) unsafe.Pointer { return mpi.WinDesc(int64(win)) }

// gm_win_bundle returns the bundle for short puts to a rank, and has it watched; NULL if there is none.
//
//export gm_win_bundle
func gm_win_bundle(win, rank i64) unsafe.Pointer {
	return unsafe.Pointer(mpi.WinBundle(int64(win), int(rank)))
}

//export gm_win_retain
func gm_win_retain(win, addr i64) i64 { return i64(mpi.WinRetain(int64(win), int64(addr))) }

//export gm_alloc_mem
func gm_alloc_mem(n, align i64, addr, h *C.int64_t) i32 {
	m, code := mpi.AllocMem(int64(n), int64(align), long(addr))
	*h = C.int64_t(m)
	return i32(code)
}

//export gm_release
func gm_release(h i64) { mpi.WinRelease(int64(h)) }

//export gm_reset
func gm_reset() i32 { return i32(mpi.Reset()) }

//export gm_finalize
func gm_finalize(wait i32) i32 { return i32(mpi.Finalize(wait != 0)) }

//export gm_tell_exit
func gm_tell_exit() { mpi.TellExit() }

//export gm_exiting
func gm_exiting(status i32) { mpi.Exiting(int(status)) }

//export gm_abort
func gm_abort(code i64) { mpi.Abort(int(code)) }

//export gm_ring
func gm_ring(win, rank i64) { mpi.WinRing(int64(win), int(rank)) }

// gm_hot_acc and gm_hot_cas return GM_DONE, 0 if the caller has to make the general call, or
// the code of an error: after a fault nothing may be done a second time.
//
//export gm_hot_acc
func gm_hot_acc(to unsafe.Pointer, f i32, typ i64, in, out unsafe.Pointer, n i64) (result i32) {
	defer contain(&result)
	t := dtype.ByID(int(typ))
	if t == nil {
		return 0
	}
	debug.SetPanicOnFault(true)
	return done(rma.HotAcc(to, op.Op(f), t.Kind(), t.ElemSize(), in, out, int(n)))
}

//export gm_hot_cas
func gm_hot_cas(to unsafe.Pointer, typ i64, origin, compare, swapped unsafe.Pointer) (result i32) {
	defer contain(&result)
	t := dtype.ByID(int(typ))
	if t == nil || !op.Bor.Valid(t.Kind()) {
		return 0
	}
	debug.SetPanicOnFault(true)
	return done(rma.HotCAS(to, t.Size(), origin, compare, swapped))
}

// gm_hot_update and gm_hot_swap are the same where the kernel copies.
//
//export gm_hot_update
func gm_hot_update(win, rank, at i64, f i32, typ i64, in, out unsafe.Pointer, n i64) (result i32) {
	defer contain(&result)
	t := dtype.ByID(int(typ))
	if t == nil {
		return 0
	}
	return doneOr(mpi.HotUpdate(int64(win), op.Op(f), t, in, out, int(n), int(rank), int64(at)))
}

//export gm_hot_swap
func gm_hot_swap(win, rank, at, typ i64, origin, compare, swapped unsafe.Pointer) (result i32) {
	defer contain(&result)
	t := dtype.ByID(int(typ))
	if t == nil {
		return 0
	}
	return doneOr(mpi.HotCompareAndSwap(int64(win), t, origin, compare, swapped, int(rank), int64(at)))
}

func doneOr(b bool, code mpi.Code) i32 {
	if code != 0 {
		return i32(code)
	}
	return done(b)
}

func done(b bool) i32 { return C.GM_DONE * yes(b) }

// contain turns a panic into the code of an error.
func contain(result *i32) {
	if p := recover(); p != nil {
		*result = i32(mpi.Panicked(p))
	}
}

//export gm_faulted
func gm_faulted(addr i64) i32 { return i32(mpi.Faulted(uintptr(addr))) }

func yes(b bool) i32 {
	if b {
		return 1
	}
	return 0
}

//export gm_word_wait
func gm_word_wait(win, addr, value, timeout i64, peers *C.int32_t, n C.int, label *C.char, pending *C.int64_t) i32 {
	list := append([]int32(nil), unsafe.Slice((*int32)(unsafe.Pointer(peers)), int(n))...)
	return i32(mpi.WordWait(int64(win), int64(addr), int64(value), int64(timeout), list, C.GoString(label), long(pending)))
}

//export gm_word_sleepers
func gm_word_sleepers(win i64, rank i32) unsafe.Pointer {
	return mpi.WordSleepers(int64(win), int(rank))
}

//export gm_word_ring
func gm_word_ring(win i64, rank i32) { mpi.WordRing(int64(win), int(rank)) }

//export gm_cores_shared
func gm_cores_shared() i32 { return yes(mpi.CoresShared()) }

//export gm_win_address
func gm_win_address(win i64, rank i32, disp, n i64, addr *C.int64_t) i32 {
	return i32(mpi.WinAddress(int64(win), int(rank), int64(disp), int64(n), long(addr)))
}

//export gm_comm_rank
func gm_comm_rank(comm i64) i32 { return i32(mpi.CommRank(int64(comm))) }

//export gm_comm_size
func gm_comm_size(comm i64) i32 { return i32(mpi.CommSize(int64(comm))) }

//export gm_initialized
func gm_initialized() i32 { return yes(mpi.Initialized()) }

//export gm_trace_head
func gm_trace_head() unsafe.Pointer { return mpi.TraceAddress() }

//export gm_mappable
func gm_mappable(addr unsafe.Pointer, n i64) i32 { return yes(mpi.Mappable(addr, int(n))) }

//export gm_check_stream
func gm_check_stream() unsafe.Pointer { return mpi.CheckStream() }

//export gm_trace_define
func gm_trace_define(handle i64, window i32) { mpi.TraceDefine(int64(handle), window != 0) }

//export gm_trace_span
func gm_trace_span(typ, count i64, span *C.int64_t) i64 {
	size, reach := mpi.TraceSpan(int64(typ), int64(count))
	*span = C.int64_t(reach)
	return i64(size)
}
