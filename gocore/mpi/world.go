package mpi

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"gormapy/gocore/boot"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/registry"
	"gormapy/gocore/home"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/monitor"
	"gormapy/gocore/mpiio"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
	"gormapy/gocore/settings"
	"gormapy/gocore/sys"
)

// process is the state of a process that has been initialized.
type process struct {
	place    *boot.Place
	seg      *job.Segment
	rank     int
	size     int
	eng      *engine.Engine
	p2p      *p2p.P2P
	rma      *rma.RMA
	pointers *mpiio.Pointers
	me       *job.Rank
	agent    nodeAgent

	contexts contexts
	spawned  spawned
	parent   int64 // the intercommunicator with the processes that have spawned this job; 0: none have

	monitor *monitor.Monitor // nil under gormapy's launcher, which monitors the job
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
	proc   *process
	failed atomic.Bool // MarkFailed was called

	comms  = newTable[Comm](8)
	groups = newTable[Group](8)
	types  typeTable
	reqs   = newRequests()
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
	if err := sys.PrepareRuntime(); err != nil {
		return CodeOf(errs.New(errs.Other, "%v", err))
	}
	// Container limits can make this 1. The progress engine and callers that wait in
	// the kernel must not wait for each other's processor.
	runtime.GOMAXPROCS(max(8, runtime.NumCPU()))
	addBallast()
	at := home.Given()
	place, err := boot.Find()
	if err != nil {
		return CodeOf(errs.New(errs.Other, "%v", err))
	}
	oneCopy := settings.OneCopy.On()
	if oneCopy {
		sys.AllowPeers()
	}
	n := &process{place: place, seg: place.Segment, rank: place.Rank, size: len(place.Segment.Ranks)}
	n.me = &n.seg.Ranks[n.rank]
	n.logPlace()
	options := engine.Options{OneCopy: oneCopy, Move: settings.MoveThreads.On()}
	if options.Net, options.NetOnly, err = n.network(); err != nil {
		return CodeOf(errs.New(errs.Other, "%v", err))
	}
	n.eng = engine.New(n.seg, n.rank, options)
	n.logTransports()
	n.p2p = p2p.New(n.eng)
	n.rma = rma.New(n.eng)
	n.pointers = mpiio.NewPointers(n.eng)
	n.contexts.init(n.rank, n.size)
	n.eng.Handle(fabric.KindFault, onFault)
	n.eng.OnGone(onGone)
	all := make([]int, n.size)
	for i := range all {
		all[i] = i
	}
	proc = n
	comms.set(CommWorld, newComm(drawn{}, &Group{all}, n.rank, job.WorldBlock))
	comms.set(CommSelf, newComm(drawn{ctx: n.contexts.self()}, &Group{[]int{n.rank}}, 0, -1))
	for _, c := range inUse.all() {
		c.openFaults()
	}
	groups.set(GroupEmpty, &Group{})
	setTypes()
	n.agent.agent = place.Agent
	if n.seg.Nodes() > 1 {
		n.eng.OnNodeChange(n.nodesChanged)
	}
	n.watchOver(at)
	if err := n.eng.Start(); err != nil {
		return CodeOf(errs.New(errs.Intern, "start the progress engine: %v", err))
	}
	if place.Watch != nil {
		place.Watch(n.onEvent)
	}
	n.eng.OnUsed(names)
	n.monitor.AwaitHome()
	n.seg.SetState(n.rank, job.StateReady)
	state.Store(stateReady)
	if port := n.seg.Parent(); port != "" {
		return n.meetParent(port)
	}
	return 0
}

// network opens the network transport that the settings select, nil for none. It
// returns an error if ranks of the job select different ones. only reports whether it
// reaches the ranks of this node, too.
func (n *process) network() (net fabric.Transport, only bool, err error) {
	name := settings.Fabric.Value()
	if first := n.seg.AgreeFabric(registry.Token(name)); first != registry.Token(name) {
		return nil, false, fmt.Errorf("this rank has GORMAPY_FABRIC=%s and another one of the job has %s: all must have the same", name, registry.Named(first))
	}
	only = name != "auto"
	if n.seg.Nodes() > 1 {
		switch name {
		case "auto":
			name = registry.Named(n.seg.Across())
		case "shm":
			return nil, false, fmt.Errorf("GORMAPY_FABRIC=shm, but the job is on %d nodes, which share no memory: leave it unset, or choose a network", n.seg.Nodes())
		}
	}
	net, err = registry.Open(name, n.seg.Directory(n.rank))
	return net, only && net != nil, err
}

// Join gives this process its place in a job that Init joins. It returns an error after Init.
func Join(rank, size int, address, secret string) Code {
	if state.Load() != stateNone {
		return classError(errs.Other, "join: MPI is initialized already: call gormapy.join before gormapy.MPI is imported")
	}
	boot.Give(rank, size, address, secret)
	return 0
}

// EnvironmentChanges returns how Init has changed the environment, a line each: NAME was taken
// out, NAME=VALUE was set. Python has a copy of the environment.
func EnvironmentChanges() string {
	if proc == nil {
		return ""
	}
	return strings.Join(proc.place.Environ, "\n")
}

// Initialized reports whether Init has been called.
func Initialized() bool { return state.Load() != stateNone }

// Finalized reports whether Finalize has been called.
func Finalized() bool { return state.Load() == stateFinalized }

// ready returns an error before Init and after Finalize. Since every call comes
// through here, it also makes a fault on memory that Go did not allocate a panic,
// which Contain turns into an error; that is a setting of each goroutine.
func ready() *errs.Error {
	debug.SetPanicOnFault(true)
	switch state.Load() {
	case stateReady:
		return proc.eng.Damage()
	case stateFinalized:
		return errs.New(errs.Other, "MPI was finalized: no communication is possible any more")
	}
	return errs.New(errs.Other, "MPI is not initialized: call MPI.Init() first")
}

// singletonHint returns, for errors about missing ranks, a hint that this process is the whole
// job because it was not started by a launcher; else "".
func singletonHint() string {
	if proc.size > 1 || proc.place.Launcher != "none" {
		return ""
	}
	return " (this process is the whole job: start more by mpiexec -n 4 python ...)"
}

// rankRange returns, for errors about missing ranks, which ranks a communicator has.
func (c *Comm) rankRange() string {
	whose, n := "its", c.peers()
	if c.remote != nil {
		whose = "the remote group's"
	}
	switch {
	case n > 1:
		return fmt.Sprintf("%s ranks are 0 to %d", whose, n-1)
	case c.remote != nil:
		return "the remote group's only rank is 0"
	}
	return "its only rank is 0" + singletonHint()
}

// hintFor returns the Hint of a window made on a communicator.
func hintFor(comm int64) string {
	if comm == CommSelf {
		return "; it was made on COMM_SELF, the default, which is this process alone: give comm=MPI.COMM_WORLD to the call that makes it" + singletonHint()
	}
	return singletonHint()
}

// MarkFailed records that an unhandled exception ends this process: Finalize then does
// not wait for other ranks, and asks a foreign launcher to stop them.
func MarkFailed() { failed.Store(true) }

// finalizing is the wait of Finalize, kept while it is interrupted.
var finalizing struct {
	why      *engine.Reason
	start    int64
	handOver int64 // when this rank asks for another agent of its node, see awaitNode
}

// Finalize ends communication of this rank. If wait is set and the rank has not
// failed, it waits until all ranks that can still receive its messages have got them.
// After Interrupted the caller calls it again.
func Finalize(wait bool) (code Code) {
	defer Contain(&code)
	initMu.Lock()
	defer initMu.Unlock()
	if state.Load() != stateReady {
		return 0
	}
	if finalizing.why == nil {
		wins.each(func(_ int64, win *Window) { win.WriteBundles() })
		finalizing.why = &engine.Reason{Call: job.CallFinalize, Peer: -2, Tag: -1}
		finalizing.start = job.Now()
		endSends()
	}
	if wait && !failed.Load() {
		err := proc.eng.Wait(finalizing.why, func() bool { return proc.eng.Backlog() == 0 && proc.p2p.PendingSends() == 0 }, func() error {
			if proc.p2p.SendsHopeless() && proc.eng.BacklogHopeless() {
				return errs.New(errs.ProcFailed, "ended")
			}
			return nil
		})
		if err == nil {
			proc.eng.Disconnect()
			err = proc.eng.Wait(finalizing.why, proc.eng.Disconnected, nil)
		}
		if _, _, aborted := proc.seg.Aborted(); err == engine.ErrInterrupted && !aborted && job.Now()-finalizing.start < finalizeLimit {
			return Interrupted
		}
	}
	if failed.Load() {
		proc.fails("ended with exit status 1", 1)
	}
	proc.seg.SetState(proc.rank, job.StateFinalized)
	if wait && !failed.Load() && proc.eng.Wait(finalizing.why, proc.spawned.ended, nil) == engine.ErrInterrupted {
		return Interrupted
	}
	proc.spawned.end()
	if a := proc.agent.take(); a != nil && (failed.Load() || !exitReported.Load()) {
		if wait && !failed.Load() && proc.awaitNode() == engine.ErrInterrupted {
			return Interrupted
		}
		a.Leave()
	}
	state.Store(stateFinalized)
	wins.each(func(_ int64, win *Window) {
		win.Desc.Handle = 0 // the only check of the hot calls
		win.EndBundles()
	})
	proc.eng.CloseNet()
	log.Debugf("mpi", "finalized; %d sends are left that nobody received", proc.p2p.PendingSends())
	switch {
	case failed.Load() && proc.place.Abort != nil:
		proc.place.Abort(1)
	case exitReported.Load():
		proc.monitor.Finalized()
	default:
		proc.monitor.Ends()
		if proc.place.Finalize != nil {
			proc.place.Finalize()
		}
	}
	return 0
}

// exitReported is set if Exiting will be called.
var exitReported atomic.Bool

// TellExit announces that Exiting will be called.
func TellExit() { exitReported.Store(true) }

// Exiting reports the end of this process to a foreign launcher; exit(3) was called
// with status. A launcher that has got a rank's finalize ignores its status, and would
// leave the other ranks waiting for one that failed. So Finalize leaves that message
// to Exiting, where the status is known.
//
// So does the agent: it stays until the other ranks of its node have finalized, but not
// if this rank has failed, because the launcher does not hear of that before the process ends.
func Exiting(status int) {
	if state.Load() == stateNone {
		return
	}
	if status &= 0xff; status != 0 {
		proc.fails(fmt.Sprintf("ended with exit status %d", status), status)
	}
	if a := proc.agent.take(); a != nil && state.Load() == stateFinalized {
		for status == 0 && !failed.Load() && proc.awaitNode() == engine.ErrInterrupted {
			if _, _, aborted := proc.seg.Aborted(); aborted {
				break
			}
		}
		a.Leave()
	}
	if status == 0 {
		proc.leaves()
	}
	switch {
	case proc.place.Finalize == nil:
	case status != 0:
		proc.place.Abort(status)
	default:
		proc.place.Finalize()
	}
}

// finalizeLimit bounds the wait for receivers that live but never receive.
const finalizeLimit = 60e9

// Abort ends the job with exit status code. It does not return.
func Abort(code int) {
	if code &= 0xff; code == 0 {
		code = 1 // an aborted job has not succeeded, and an exit status has 8 bits
	}
	if proc != nil {
		log.Infof("mpi", "Abort: the job is to end with status %d", code)
		proc.fails(fmt.Sprintf("called Abort(%d)", code), code)
		proc.seg.Abort(proc.rank, code)
		if proc.place.Abort != nil {
			proc.place.Abort(code)
		}
	}
	os.Stdout.Sync()
	os.Exit(code)
}

// Reset is the collective reset: every living rank calls it. Afterwards no earlier
// operation is outstanding: unfinished requests have failed, epochs are closed, locks
// are free, barriers are in step. It has two phases. The first ends all use of the old
// state, the second publishes the new one:
//
//	gen g+1: this rank is in Reset, and no longer uses shared state
//	(all living ranks at g+1 or above)  -> each resets its own part
//	gen g+2: this rank has done so
//	(all living ranks at g+2 or above)  -> communication continues
//
// Messages carry the generation of their sender, which is always even.
func Reset() (code Code) {
	defer Contain(&code)
	if e := ready(); e != nil {
		return CodeOf(e)
	}
	resetting.Lock()
	defer resetting.Unlock()
	if resetting.to == 0 {
		wins.each(func(_ int64, win *Window) { win.WriteBundles() }) // the others use their memory for something else afterwards
		resetting.to = proc.p2p.Generation() + 2
		log.Infof("mpi", "reset to generation %d begun: waiting for every living rank to call it", resetting.to)
		atomic.StoreUint32(&proc.me.Gen, resetting.to-1)
		proc.seg.RingAll()
	}
	to := resetting.to
	if c := waitGeneration(to - 1); c != 0 {
		return c // interrupted: the next call continues this reset
	}
	if atomic.LoadUint32(&proc.me.Gen) == to-1 {
		proc.p2p.Reset(to)
		proc.rma.Reset(to)
		comms.each(func(_ int64, c *Comm) { c.reset() })
		wins.each(func(_ int64, win *Window) { win.reset() })
		atomic.StoreUint32(&proc.me.Gen, to)
		proc.seg.RingAll()
	}
	code = waitGeneration(to)
	if code == 0 {
		resetting.to = 0
		proc.p2p.Settle()
		proc.me.Ring() // threads that wait for it
		log.Infof("mpi", "reset to generation %d done", to)
	}
	return code
}

// resetting is the reset that this process has begun and not finished: its new
// generation, 0 if there is none.
var resetting struct {
	sync.Mutex
	to uint32
}

func waitGeneration(gen uint32) Code {
	why := &engine.Reason{Call: job.CallReset, Peer: -2, Tag: -1}
	err := proc.eng.Wait(why, func() bool {
		for r := range proc.seg.Ranks {
			if int32(atomic.LoadUint32(&proc.seg.Ranks[r].Gen)-gen) < 0 && !proc.eng.Gone(r) {
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

// ClaimTraceback reports whether this rank prints a traceback whose text has this
// hash. It returns false if another rank has printed the same text.
func ClaimTraceback(hash uint64) bool {
	if proc == nil {
		return true
	}
	yes := proc.seg.ClaimError(hash &^ (3 << 62))
	repeated.Store(!yes)
	return yes
}

// SetStacks announces that job.StackSignal makes this process print its stacks.
func SetStacks() {
	if proc != nil {
		atomic.OrUint32(&proc.me.Flags, job.FlagStacks)
	}
}

// ProcessorName returns the name of the host.
func ProcessorName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
