// Package core is the flat package that gopy exports to Python. Its functions take and
// return integers and strings, and do not wait: the shim beside it exports the calls that
// do. A negative result -c stands for the error code c.
//
// It may import gocore/mpi, gocore/rdmaapi, gocore/mt19937 and gocore/fabric (for
// foreign memory), nothing else of gocore.
package core

import (
	"encoding/hex"
	"fmt"
	"os"

	"gormapy/gocore/mpi"
)

// version is the version of the package. The build sets it.
var version = "dev"

// Version returns the version of the core.
func Version() string { return version }

// LibraryVersion returns the name and version of this MPI library.
func LibraryVersion() string { return "gormapy " + version }

// SetVariable sets an environment variable, before Init, as the program has set it. The Go
// runtime has the environment with which the process was started.
func SetVariable(name, value string) int {
	if os.Getenv(name) != value {
		_ = os.Setenv(name, value) // it comes from the environment: it can be there
	}
	return 0
}

// Init makes this process a rank of its job.
func Init() int { return -mpi.Init() }

// Initialized reports whether Init has been called.
func Initialized() bool { return mpi.Initialized() }

// Finalized reports whether Finalize has been called.
func Finalized() bool { return mpi.Finalized() }

// MarkFailed records that an unhandled exception ends this process. (gopy gives a function
// without a result another argument, so every function here has a result.)
func MarkFailed() int {
	mpi.MarkFailed()
	return 0
}

// ClaimTraceback reports by 1 or 0 whether to print a traceback whose text has this hash.
func ClaimTraceback(hash int64) int {
	if mpi.ClaimTraceback(uint64(hash)) {
		return 0
	}
	return 1
}

// SetStacks records that the stack signal makes this process print its stacks.
func SetStacks(int) int {
	mpi.SetStacks()
	return 0
}

// NewError makes an error code of a class and a text.
func NewError(class int, text string) int { return mpi.NewError(class, text) }

// ErrorText returns the sentence for an error code.
func ErrorText(code int) string { return mpi.ErrorText(code) }

// ErrorClass returns the class of an error code.
func ErrorClass(code int) int { return code & 0xff }

// Runtime returns a JSON object about the Go that built the core.
func Runtime() string { return mpi.Runtime() }

// WorldInfo returns a JSON object: launcher, job, rank, size; null before Init.
func WorldInfo() string { return mpi.WorldInfo() }

// Program returns the number of this process's program on the launcher's command line.
func Program() int { return mpi.Program() }

// Join gives this process its place in a job that Init joins.
func Join(rank, size int, address, secret string) int {
	return -mpi.Join(rank, size, address, secret)
}

// EnvironmentChanges returns how Init has changed the environment.
func EnvironmentChanges() string { return mpi.EnvironmentChanges() }

// Hosts returns the number of hosts that the ranks are on.
func Hosts() int { return mpi.Hosts() }

// ArenaProblem returns why the memory of shared_empty and Alloc_mem is not shared,
// "" if it is.
func ArenaProblem() string { return mpi.ArenaProblem() }

// SharedArrays returns 1 if the user has all of NumPy's arrays made in memory that other ranks map, else 0.
func SharedArrays() int {
	if mpi.SharedArrays() {
		return 1
	}
	return 0
}

// Transports returns a JSON list of the transports, used here or not, and why.
func Transports() string { return mpi.Transports() }

// PeerInfo returns a JSON object: how this process reaches a rank of COMM_WORLD.
func PeerInfo(rank int) string { return mpi.PeerInfo(rank) }

// Settings returns a JSON object: the settings and their values in effect.
func Settings() string { return mpi.Settings() }

// Describe returns what every rank waits for, a line for each wait.
func Describe() string { return mpi.Describe() }

// Waits returns a JSON object: what the threads of this process wait for.
func Waits() string { return mpi.Waits() }

// ProcessorName returns the name of the host.
func ProcessorName() string { return mpi.ProcessorName() }

// CommRank and the following: see the functions of package mpi.
func CommRank(comm int64) int { return mpi.CommRank(comm) }

// CommSize returns the number of ranks.
func CommSize(comm int64) int { return mpi.CommSize(comm) }

// CommGroup makes the group of a communicator.
func CommGroup(comm int64) int64 { return mpi.CommGroup(comm) }

// CommCompare compares two communicators.
func CommCompare(a, b int64) int { return mpi.CommCompare(a, b) }

// CommTestInter, and the following for intercommunicators: see the functions of package mpi.
func CommTestInter(comm int64) int { return mpi.CommTestInter(comm) }

// CommRemoteSize returns the number of ranks of the remote group.
func CommRemoteSize(comm int64) int { return mpi.CommRemoteSize(comm) }

// CommRemoteGroup makes the remote group.
func CommRemoteGroup(comm int64) int64 { return mpi.CommRemoteGroup(comm) }

// CommCreateIntercomm begins to make an intercommunicator.
func CommCreateIntercomm(comm int64, localLeader int, peer int64, remoteLeader, tag int) int64 {
	return handle(mpi.CommCreateIntercomm(comm, localLeader, peer, remoteLeader, tag))
}

// CommAccept begins to accept another group at a port of the root.
func CommAccept(comm int64, root int, port string) int64 {
	return handle(mpi.CommAccept(comm, root, port))
}

// CommConnect begins to connect to the group that accepts at a port.
func CommConnect(comm int64, root int, port string) int64 {
	return handle(mpi.CommConnect(comm, root, port))
}

// CommJoin begins to connect this process and the one at the other end of a socket.
func CommJoin(fd int) int64 { return handle(mpi.CommJoin(fd)) }

// CommSpawn begins to spawn n processes. At the root, args is the command line of mpiexec that starts them, and environ their
// environment: strings that end with a NUL, all in hexadecimal digits.
func CommSpawn(comm int64, root, n int, args, environ string) int64 {
	a, _ := hex.DecodeString(args)
	e, _ := hex.DecodeString(environ)
	return handle(mpi.CommSpawn(comm, root, n, string(a), string(e)))
}

// CommParent returns the intercommunicator with the processes that have spawned this one, 0 if there is none.
func CommParent() int64 { return mpi.CommParent() }

// OpenPort opens a port and returns its name, or "error CODE".
func OpenPort() string { return text(mpi.OpenPort()) }

// ClosePort closes a port.
func ClosePort(name string) int { return -mpi.ClosePort(name) }

// PublishName makes a port known by a name.
func PublishName(service, port string) int { return -mpi.PublishName(service, port) }

// UnpublishName ends that.
func UnpublishName(service string) int { return -mpi.UnpublishName(service) }

// LookupName returns the port of a published name in hexadecimal digits, or "error CODE".
func LookupName(service string) string {
	port, code := mpi.LookupName(service)
	return text(hex.EncodeToString([]byte(port)), code)
}

// CommSettle begins to wait until no operation of this rank in a communicator is under way.
func CommSettle(comm int64) int64 { return handle(mpi.CommSettle(comm)) }

// CommDrop forgets a communicator at this rank, which the program has never got.
func CommDrop(comm int64) int { return mpi.CommDrop(comm) }

// CommRevoke revokes a communicator.
func CommRevoke(comm int64) int { return -mpi.CommRevoke(comm) }

// CommIsRevoked returns whether a communicator is revoked, 1 or 0.
func CommIsRevoked(comm int64) int { return mpi.CommIsRevoked(comm) }

// CommGetFailed makes the group of the processes of a communicator that are known to have failed.
func CommGetFailed(comm int64) int64 { return handle(mpi.CommGetFailed(comm)) }

// CommAckFailed acknowledges the first n of these, and returns how many are acknowledged.
func CommAckFailed(comm, n int64) int64 {
	acked, code := mpi.CommAckFailed(comm, int(n))
	return handle(int64(acked), code)
}

// CommAgree begins an agreement; the result of its request is the flag.
func CommAgree(comm, flag int64) int64 { return handle(mpi.CommAgree(comm, int32(flag))) }

// CommIagree begins an agreement of the C int at an address.
func CommIagree(comm, flag int64) int64 { return handle(mpi.CommIagree(comm, flag)) }

// CommShrink begins to make a communicator of the processes that have not failed.
func CommShrink(comm int64) int64 { return handle(mpi.CommShrink(comm)) }

// CommIshrink is CommShrink, and returns the handle at once: "handle request".
func CommIshrink(comm int64) string { return pair(mpi.CommIshrink(comm)) }

// CommIdup begins to duplicate a communicator: "handle request".
func CommIdup(comm int64) string { return pair(mpi.CommIdup(comm)) }

// CommCreateGroup begins to make a communicator of a group's ranks alone; the
// result is a request for the shim's result(), 0 on a process that is not in the group.
func CommCreateGroup(comm, group, tag int64) int64 {
	return handle(mpi.CommCreateGroup(comm, group, int(tag)))
}

// CollInit makes a persistent request of a collective.
func CollInit(kind int, comm, saddr, scount, stype, raddr, rcount, rtype, op int64, root int) int64 {
	return handle(mpi.CollInit(kind, comm, saddr, scount, stype, raddr, rcount, rtype, op, root))
}

// CollvInit makes a persistent request of a collective with a count for each
// rank: for each side address, counts, displacements (their numbers and
// addresses of int64s) and type.
func CollvInit(kind int, comm, saddr, sn, scounts, sm, sdispls, stype, raddr, rn, rcounts, rm, rdispls, rtype int64, root int) int64 {
	s := mpi.SideAt(saddr, sn, scounts, sm, sdispls, stype)
	r := mpi.SideAt(raddr, rn, rcounts, rm, rdispls, rtype)
	return handle(mpi.CollvInit(kind, comm, s, r, root))
}

// PsendInit makes a partitioned send.
func PsendInit(comm, addr, partitions, count, typ int64, dest, tag int) int64 {
	return handle(mpi.PsendInit(comm, addr, partitions, count, typ, dest, tag))
}

// PrecvInit makes a partitioned receive.
func PrecvInit(comm, addr, partitions, count, typ int64, source, tag int) int64 {
	return handle(mpi.PrecvInit(comm, addr, partitions, count, typ, source, tag))
}

// Pready sends the partitions first to last of a partitioned send.
func Pready(req int64, first, last int) int { return -mpi.Pready(req, first, last) }

// PreadyList sends n partitions, whose numbers are int64s at addr.
func PreadyList(req, addr, n int64) int { return -mpi.PreadyList(req, addr, n) }

// Parrived returns 1 if a partition of a partitioned receive has arrived, 0 if it has not.
func Parrived(req int64, partition int) int {
	arrived, code := mpi.Parrived(req, partition)
	if code != 0 {
		return -code
	}
	return arrived
}

// GrequestStart makes a generalized request.
func GrequestStart() int64 { return handle(mpi.GrequestStart()) }

// GrequestComplete completes a generalized request.
func GrequestComplete(req int64) int { return -mpi.GrequestComplete(req) }

func handle(h int64, code mpi.Code) int64 {
	if code != 0 {
		return -int64(code)
	}
	return h
}

func text(s string, code mpi.Code) string {
	if code != 0 {
		return fmt.Sprintf("error %d", code)
	}
	return s
}

func pair(a, b int64, code mpi.Code) string {
	if code != 0 {
		return fmt.Sprintf("error %d", code)
	}
	return fmt.Sprintf("%d %d", a, b)
}

// GroupSize returns the number of ranks.
func GroupSize(g int64) int { return mpi.GroupSize(g) }

// GroupRank returns this process's rank, MPI_UNDEFINED if it is not in the group.
// A code and MPI_UNDEFINED are both negative, but differ in size.
func GroupRank(g int64) int {
	r, code := mpi.GroupRank(g)
	if code != 0 {
		return -(code | 1<<30)
	}
	return r
}

// GroupExcl makes the group of all members but n C ints at an address.
func GroupExcl(g, addr, n int64) int64 { return mpi.GroupExcl(g, addr, n) }

// GroupRangeIncl takes n triples of C ints.
func GroupRangeIncl(g, addr, n int64) int64 { return mpi.GroupRangeIncl(g, addr, n) }

// GroupRangeExcl leaves them out.
func GroupRangeExcl(g, addr, n int64) int64 { return mpi.GroupRangeExcl(g, addr, n) }

// GroupUnion makes a group.
func GroupUnion(a, b int64) int64 { return mpi.GroupUnion(a, b) }

// GroupIntersection makes a group.
func GroupIntersection(a, b int64) int64 { return mpi.GroupIntersection(a, b) }

// GroupDifference makes a group.
func GroupDifference(a, b int64) int64 { return mpi.GroupDifference(a, b) }

// GroupCompare compares two groups.
func GroupCompare(a, b int64) int { return mpi.GroupCompare(a, b) }

// GroupTranslate translates n ranks.
func GroupTranslate(a, in, n, b, out int64) int { return -mpi.GroupTranslate(a, in, n, b, out) }

// GroupDup copies a group.
func GroupDup(g int64) int64 { return mpi.GroupDup(g) }

// DatatypeTable lists the predefined datatypes.
func DatatypeTable() string { return mpi.DatatypeTable() }

// TypeDup duplicates a datatype. Most others are made by gm_make_type (gocore/mpi/recipe.go).
func TypeDup(t int64) int64 { return mpi.TypeDup(t) }

// TypePart returns a new handle of the i-th datatype that a datatype was made of.
func TypePart(t, i int64) int64 { return mpi.TypePart(t, i) }

// TypeDarray makes the type of a process's part of a distributed array; lists is the address of
// gsizes, distribs, dargs and psizes, one after the other.
func TypeDarray(t, size, rank, dims, lists, order int64) int64 {
	return mpi.TypeDarray(t, size, rank, dims, lists, order)
}

// TypePack packs items and returns the new position.
func TypePack(t, in, count, out, outSize, position int64) int64 {
	return mpi.TypePack(t, in, count, out, outSize, position)
}

// TypeUnpack unpacks items and returns the new position.
func TypeUnpack(t, in, inSize, position, out, count int64) int64 {
	return mpi.TypeUnpack(t, in, inSize, position, out, count)
}

// TypeExternalSize returns the bytes of an item in external32.
func TypeExternalSize(t int64) int64 { return mpi.TypeExternalSize(t) }

// TypePackExternal packs items in external32 and returns the new position.
func TypePackExternal(t, in, count, out, outSize, position int64) int64 {
	return mpi.TypePackExternal(t, in, count, out, outSize, position)
}

// TypeUnpackExternal unpacks items from external32 and returns the new position.
func TypeUnpackExternal(t, in, inSize, position, out, count int64) int64 {
	return mpi.TypeUnpackExternal(t, in, inSize, position, out, count)
}

// TypeF90 returns Fortran's integer (class 0), real (1) or complex type (2) of a precision
// and range.
func TypeF90(class int, p, r int64) int64 { return mpi.TypeF90(class, p, r) }

// OpApply makes inout = in op inout.
func OpApply(op, t, in, inout, count int64) int { return -mpi.OpApply(op, t, in, inout, count) }

// WinShared returns "addr nbytes disp_unit" of a rank's part.
func WinShared(win int64, rank int) string { return mpi.WinShared(win, rank) }

// NetworkKeys reports whether the network wants memory to be registered.
func NetworkKeys() bool { return mpi.NetworkKeys() }

// KeepMemory registers n bytes at addr until ReleaseKept is called with the returned
// handle. It returns 0 if they can't be registered.
func KeepMemory(addr, n int64) int64 { return mpi.KeepMemory(addr, n) }

// ReleaseKept ends what KeepMemory began, before the memory is freed; it returns 0.
func ReleaseKept(h int64) int {
	mpi.ReleaseKept(h)
	return 0
}

// WinGone returns how a rank of a window has ended, "" if it has not.
func WinGone(win int64, rank int) string { return mpi.WinGone(win, rank) }

// WinPath names the path to a target: direct, copy, rdma or message.
func WinPath(win int64, rank int) string { return mpi.WinPath(win, rank) }

// WinLater reports whether operations on a target may use their origin's memory after
// the call that starts them.
func WinLater(win int64, rank int) bool { return mpi.WinLater(win, rank) }

// WinCheck returns 0 if the handle names a window, else a negative code.
func WinCheck(win int64) int { return -mpi.WinCheck(win) }

// WinNoLocks says whether this rank locks nothing of a window and returns 0 or a negative code.
func WinNoLocks(win int64, on bool) int { return -mpi.WinNoLocks(win, on) }

// WinAttach makes n bytes at addr part of a dynamic window and returns 0 or a negative code.
func WinAttach(win, addr, n int64) int { return -mpi.WinAttach(win, addr, n) }

// WinDetach ends what WinAttach began with memory at addr. It returns 0 or a negative code.
func WinDetach(win, addr int64) int { return -mpi.WinDetach(win, addr) }

// WinGroup makes the group of a window.
func WinGroup(win int64) int64 { return mpi.WinGroup(win) }

// RMACheck returns 0 or the negative code of the error that an operation has whenever it is done: kinds as in mpi.Access, 5 for
// Compare_and_swap; disp, count and datatype of the target, counts and datatypes of origin and result.
func RMACheck(win int64, kind, rank int, disp, count, datatype, origin, originType, result, resultType, op int64) int {
	return -mpi.RMACheck(&mpi.Access{
		Kind: mpi.AccessKind(kind), Win: win, Rank: int64(rank), Op: op,
		Target: mpi.TargetSpec{Disp: disp, Count: count, Type: datatype},
		Origin: mpi.Operand{Count: origin, Type: originType},
		Result: mpi.Operand{Count: result, Type: resultType},
	})
}

// WinNotify adds 1 to a counter of a rank and returns 0 or a negative code.
func WinNotify(win int64, rank, slot int) int { return -mpi.WinNotify(win, rank, slot) }

// WinCheckNotify reports whether a rank can be notified now.
func WinCheckNotify(win int64, rank, slot int) int { return -mpi.WinCheckNotify(win, rank, slot) }

// WinNotified begins to wait for notifications; the result of its request is 1 if they came within so many nanoseconds
// (below 0: there is no limit).
func WinNotified(win, slot, count, wait int64) int64 {
	return handle(mpi.WinNotified(win, slot, count, wait))
}

// WinNotifiedDrop ends a wait for notifications, which takes none, and returns 0.
func WinNotifiedDrop(req int64) int {
	mpi.WinNotifiedDrop(req)
	return 0
}

// WinPending returns how many notifications of a slot have not been taken, or a negative code.
func WinPending(win int64, slot int) int { return mpi.WinPending(win, slot) }

// Progress lets the transports handle what has come, and returns 0.
func Progress() int {
	mpi.Progress()
	return 0
}

// WakerOpen makes a waker for an event loop.
func WakerOpen() int64 { return handle(mpi.WakerOpen()) }

// WakerFD returns its descriptor, -1 if there is no such waker.
func WakerFD(h int64) int64 { return int64(mpi.WakerFD(h)) }

// WakerClose closes it and returns 0.
func WakerClose(h int64) int {
	mpi.WakerClose(h)
	return 0
}

// WakerWatch tells a waker the number when a request has ended, and returns 0 or a negative code.
func WakerWatch(h, req, number int64) int { return -mpi.WakerWatch(h, req, number) }

// WakerForget ends that, and returns 0.
func WakerForget(h, number int64) int {
	mpi.WakerForget(h, number)
	return 0
}

// WakerTake writes at most n numbers of what has ended to addr, and returns how many.
func WakerTake(h, addr, n int64) int64 { return int64(mpi.WakerTake(h, addr, int(n))) }
