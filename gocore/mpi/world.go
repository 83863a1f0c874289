package mpi

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"gormapy/gocore/boot"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/registry"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
	"gormapy/gocore/settings"
	"gormapy/gocore/sys"
)

// world is what a process is once it is initialised.
type world struct {
	place *boot.Place
	seg   *job.Segment
	rank  int
	size  int
	eng   *engine.Engine
	p2p   *p2p.P2P
	rma   *rma.RMA
	me    *job.Rank

	nextCtx atomic.Uint32
}

// Process states.
const (
	stateNone int32 = iota
	stateReady
	stateFinalized
)

var (
	initMu sync.Mutex
	state  atomic.Int32
	w      *world
	failed atomic.Bool // an unhandled exception ends this process

	comms  = newTable[Comm](8)
	groups = newTable[Group](8)
	types  = newTable[datatype](0)
	reqs   = newTable[Request](1)
	wins   = newTable[Window](1)
	msgs   = newTable[p2p.Matched](1)
)

// Handles of predefined objects.
const (
	CommNull  = 0
	CommWorld = 1
	CommSelf  = 2

	GroupNull  = 0
	GroupEmpty = 1
)

// Init makes this process a rank. A second call does nothing.
func Init() (code Code) {
	defer Contain(&code)
	initMu.Lock()
	defer initMu.Unlock()
	switch state.Load() {
	case stateReady:
		return 0
	case stateFinalized:
		return classError(errs.Other, "MPI was finalized: a process can initialize it once only")
	}
	if err := sys.StartPoller(); err != nil {
		return CodeOf(errs.New(errs.Other, "%v", err))
	}
	// Container limits can make this 1; the progress engine and callers that
	// wait in the kernel must not wait for each other's turn.
	runtime.GOMAXPROCS(max(8, runtime.NumCPU()))
	place, err := boot.Find()
	if err != nil {
		return CodeOf(errs.New(errs.Other, "%v", err))
	}
	oneCopy := settings.OneCopy.On()
	if oneCopy {
		sys.AllowPeers()
	}
	n := &world{place: place, seg: place.Segment, rank: place.Rank, size: len(place.Segment.Ranks)}
	n.me = &n.seg.Ranks[n.rank]
	n.logPlace()
	net, err := n.network()
	if err != nil {
		return CodeOf(errs.New(errs.Other, "%v", err))
	}
	n.eng = engine.New(n.seg, n.rank, engine.Options{OneCopy: oneCopy, Net: net})
	n.logTransports()
	n.p2p = p2p.New(n.eng)
	n.rma = rma.New(n.eng)
	n.nextCtx.Store(2)
	all := make([]int, n.size)
	for i := range all {
		all[i] = i
	}
	w = n
	comms.set(CommWorld, newComm(0, &Group{all}, n.rank, job.WorldBlock))
	comms.set(CommSelf, newComm(selfCtx(n.rank), &Group{[]int{n.rank}}, 0, -1))
	groups.set(GroupEmpty, &Group{})
	setTypes()
	if err := n.eng.Start(); err != nil {
		return CodeOf(errs.New(errs.Intern, "start the progress engine: %v", err))
	}
	atomic.StoreUint32(&n.me.State, job.StateReady)
	state.Store(stateReady)
	return 0
}

// network makes the network transport that the settings ask for; nil if they ask
// for none. All ranks of a job must have been given the same.
func (n *world) network() (fabric.Transport, error) {
	name := settings.Fabric.Value()
	if first := n.seg.AgreeFabric(registry.Token(name)); first != registry.Token(name) {
		return nil, fmt.Errorf("this rank has GORMAPY_FABRIC=%s and another one of the job has %s: all must have the same", name, registry.Named(first))
	}
	return registry.Open(n.seg.Directory(n.rank))
}

// selfCtx is the context of a rank's COMM_SELF, newCtx of a communicator whose
// first rank is this one: the upper bits name the rank, so contexts are unique
// in the job without any agreement.
func selfCtx(rank int) uint32 { return uint32(rank)<<ctxBits | 1 }

const ctxBits = 21

func newCtx() uint32 {
	for {
		c := w.nextCtx.Add(1) & (1<<ctxBits - 1)
		if c < 2 {
			continue
		}
		ctx := uint32(w.rank)<<ctxBits | c
		used := false
		comms.each(func(_ int64, c *Comm) { used = used || c.ctx == ctx })
		if !used {
			return ctx
		}
	}
}

// Initialized reports whether Init has been called, Finalized whether Finalize.
func Initialized() bool { return state.Load() != stateNone }

// Finalized reports whether Finalize has been called.
func Finalized() bool { return state.Load() == stateFinalized }

// ready refuses calls before Init and after Finalize. Since every call comes by
// here, it also makes a fault on memory that Go did not allocate a panic, which
// Contain turns into an error; that is a setting of each goroutine.
func ready() *errs.Error {
	debug.SetPanicOnFault(true)
	switch state.Load() {
	case stateReady:
		return w.eng.Damage()
	case stateFinalized:
		return errs.New(errs.Other, "MPI was finalized: no communication is possible any more")
	}
	return errs.New(errs.Other, "MPI is not initialized: call MPI.Init() first")
}

// alone says, in errors about ranks that are not there, that this process is the
// whole job because nothing started more.
func alone() string {
	if w.size > 1 || w.place.Launcher != "none" {
		return ""
	}
	return " (this process is the whole job: start more by mpiexec -n 4 python ...)"
}

// there says which ranks a communicator has.
func (c *Comm) there() string {
	if c.size == 1 {
		return "its only rank is 0" + alone()
	}
	return fmt.Sprintf("its ranks are 0 to %d", c.size-1)
}

// hintFor is Hint of a window that was made on a communicator.
func hintFor(comm int64) string {
	if comm == CommSelf {
		return "; it was made on COMM_SELF, the default, which is this process alone: give comm=MPI.COMM_WORLD to the call that makes it" + alone()
	}
	return alone()
}

// MarkFailed says that an unhandled exception ends this process: Finalize will
// not wait for anybody, and a foreign launcher is asked to stop the others.
func MarkFailed() { failed.Store(true) }

// finalizing is the wait of Finalize, kept while it is interrupted.
var finalizing struct {
	why   *engine.Reason
	start int64
}

// Finalize says that this rank is done. It waits until its messages are with
// those who can still receive them, unless the rank has failed or is told not
// to wait. Interrupted: call it again.
func Finalize(wait bool) (code Code) {
	defer Contain(&code)
	initMu.Lock()
	defer initMu.Unlock()
	if state.Load() != stateReady {
		return 0
	}
	if finalizing.why == nil {
		finalizing.why = &engine.Reason{Call: job.CallFinalize, Peer: -2, Tag: -1}
		finalizing.start = job.Now()
		endSends()
	}
	if wait && !failed.Load() {
		err := w.eng.Wait(finalizing.why, func() bool { return w.eng.Backlog() == 0 && w.p2p.PendingSends() == 0 }, func() error {
			if w.p2p.SendsHopeless() && w.eng.BacklogHopeless() {
				return errs.New(errs.ProcFailed, "ended")
			}
			return nil
		})
		if _, _, aborted := w.seg.Aborted(); err == engine.ErrInterrupted && !aborted && job.Now()-finalizing.start < finalizeLimit {
			return Interrupted
		}
	}
	atomic.StoreUint32(&w.me.State, job.StateFinalized)
	state.Store(stateFinalized)
	wins.each(func(_ int64, win *Window) { win.Desc.Handle = 0 }) // the hot calls look only there
	w.eng.CloseNet()
	log.Debugf("mpi", "finalized; %d sends are left that nobody received", w.p2p.PendingSends())
	switch {
	case failed.Load() && w.place.Abort != nil:
		w.place.Abort(1)
	case !exitIsTold.Load() && w.place.Finalize != nil:
		w.place.Finalize()
	}
	return 0
}

var exitIsTold atomic.Bool

// TellExit says that Exiting will be called.
func TellExit() { exitIsTold.Store(true) }

// Exiting says that exit(3) was called with status. A foreign launcher that was
// told that a rank is done does not look at its status, and would leave the
// others waiting for one that failed; so it is told only now.
func Exiting(status int) {
	if state.Load() == stateNone || w.place.Finalize == nil {
		return
	}
	if status &= 0xff; status != 0 {
		w.place.Abort(status)
	} else {
		w.place.Finalize()
	}
}

// finalizeLimit bounds the wait for receivers that live but never receive.
const finalizeLimit = 60e9

// Abort ends the job with exit status code. It does not return.
func Abort(code int) {
	if code &= 0xff; code == 0 {
		code = 1 // an aborted job has not succeeded, and an exit status has 8 bits
	}
	if w != nil {
		log.Infof("mpi", "Abort: the job is to end with status %d", code)
		w.seg.Abort(w.rank, code)
		if w.place.Abort != nil {
			w.place.Abort(code)
		}
	}
	os.Stdout.Sync()
	os.Exit(code)
}

// Reset is the collective reset: every living rank calls it, and afterwards
// nothing of before is in flight: unfinished requests have failed, epochs are
// closed, locks free, barriers in step. It has the two phases of which the
// first ends all use of the old state, the second makes the new one known:
//
//	gen g+1: this rank is in Reset, and uses nothing shared any more
//	(all living ranks at g+1 or above)  -> each sets its own part back
//	gen g+2: this rank has done so
//	(all living ranks at g+2 or above)  -> communication goes on
//
// Messages carry the generation of their sender, always even.
func Reset() (code Code) {
	defer Contain(&code)
	if e := ready(); e != nil {
		return CodeOf(e)
	}
	resetting.Lock()
	defer resetting.Unlock()
	if resetting.to == 0 {
		resetting.to = w.p2p.Generation() + 2
		log.Infof("mpi", "reset to generation %d begun: waiting for every living rank to call it", resetting.to)
		atomic.StoreUint32(&w.me.Gen, resetting.to-1)
		w.seg.RingAll()
	}
	to := resetting.to
	if c := waitGeneration(to - 1); c != 0 {
		return c // interrupted: call again, and go on with this reset
	}
	if atomic.LoadUint32(&w.me.Gen) == to-1 {
		w.p2p.Reset(to)
		w.rma.Reset(to)
		comms.each(func(_ int64, c *Comm) { c.reset() })
		wins.each(func(_ int64, win *Window) { win.reset() })
		atomic.StoreUint32(&w.me.Gen, to)
		w.seg.RingAll()
	}
	code = waitGeneration(to)
	if code == 0 {
		resetting.to = 0
		log.Infof("mpi", "reset to generation %d done", to)
	}
	return code
}

// resetting is the reset that this process has begun and not finished: the
// generation it leads to, 0 if there is none.
var resetting struct {
	sync.Mutex
	to uint32
}

func waitGeneration(gen uint32) Code {
	why := &engine.Reason{Call: job.CallReset, Peer: -2, Tag: -1}
	err := w.eng.Wait(why, func() bool {
		for r := range w.seg.Ranks {
			if int32(atomic.LoadUint32(&w.seg.Ranks[r].Gen)-gen) < 0 && !w.eng.Gone(r) {
				return false
			}
		}
		return true
	}, nil)
	if err == engine.ErrInterrupted {
		return Interrupted
	}
	return codeOfErr(err)
}

// ClaimTraceback asks whether this rank is the one to print a traceback whose
// text has this hash: true, or false if another rank printed the same before.
func ClaimTraceback(hash uint64) bool {
	if w == nil {
		return true
	}
	if hash == 0 {
		hash = 1
	}
	return atomic.CompareAndSwapUint64(&w.seg.Head.ErrorHash, 0, hash) || atomic.LoadUint64(&w.seg.Head.ErrorHash) != hash
}

// SetStacks says that job.StackSignal makes this process print its stacks.
func SetStacks() {
	if w != nil {
		atomic.OrUint32(&w.me.Flags, job.FlagStacks)
	}
}

// ProcessorName is the name of the host.
func ProcessorName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
