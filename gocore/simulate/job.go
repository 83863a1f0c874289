//go:build interleave

package simulate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/coll"
	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
	"gormapy/gocore/ranktest"
	"gormapy/gocore/rma"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

// Options are the parameters of a run besides its seed.
type Options struct {
	Ranks int
	Steps int          // length of the program
	Copy  bool         // over shared memory: also by copies of the kernel
	Net   *fabric.Caps // not nil: over a network
	Kill  bool         // one rank dies at some moment
	Stops bool         // ranks are stopped for a while
	Reset bool         // the program has collective resets
}

// Result is the result of a run.
type Result struct {
	Trace   uint64 // the same for the same seed
	Steps   int
	Failure string
	Killed  bool
	Counts  map[string]int // what the program did
}

// world is a job in a simulation.
type world struct {
	o         Options
	seed      uint64
	s         *scheduler
	seg       *job.Segment
	net       *ranktest.Net
	ranks     []*rank
	pages     [][]byte // all memory of the programs
	reclaimed [][]byte // memory that programs have reclaimed, filled with poison
	segs      map[uint32]*sys.Segment
	taken     map[string][]int64 // results of fetching operations, by epoch and counter
	count     map[string]int
}

// poison is the value of bytes that the program has reclaimed.
const poison = 0xdb

// rank is one process of the job.
type rank struct {
	w     *world
	n     int
	eng   *engine.Engine
	p2p   *p2p.P2P
	rma   *rma.RMA
	all   []int
	chan1 *p2p.Channel
	coll  *coll.Comm
	win   *window
	step  int // of the program
	doing string
	gone  bool // it has ended, by an error or killed

	plan *rand.Rand // the same on all ranks
	own  *rand.Rand
}

// errEnded is the panic of a rank whose peer has ended.
type errEnded struct{ error }

// Run makes one run.
func Run(seed uint64, o Options) (res Result) {
	w := &world{o: o, seed: seed, s: newScheduler(seed), segs: map[uint32]*sys.Segment{}, taken: map[string][]int64{}, count: map[string]int{}}
	job.Clock = w.s.now
	atom.Explorer = nil // accesses of the setup are no steps
	sys.Caught = func(f *sys.Fault) {
		w.s.fail("memory that the program had reclaimed was touched: %v\n%s", f, debug.Stack())
	}
	defer func() { job.Clock, atom.Explorer, sys.Caught = nil, nil, nil }()
	var err error
	if w.seg, err = job.Create(o.Ranks); err != nil {
		return Result{Failure: err.Error()}
	}
	defer w.seg.Close()
	if o.Net != nil {
		w.net = ranktest.NewSeededNet(o.Ranks, *o.Net, rand.NewPCG(seed, 2))
	}
	for i := range o.Ranks {
		w.ranks = append(w.ranks, w.rank(i))
	}
	killAt, victim := -1, w.s.rand.IntN(o.Ranks)
	if o.Kill {
		killAt = 200 + w.s.rand.IntN(4000)
	}
	w.s.event = func(step int) {
		if step == killAt {
			res.Killed = true
			w.end(victim)
		}
		if o.Stops && w.s.rand.IntN(400) == 0 {
			w.s.stopped[w.s.rand.IntN(o.Ranks)] = w.s.rand.IntN(600)
		}
	}
	w.s.where = w.where
	atom.Explorer = w.s
	w.s.run(3_000_000)
	atom.Explorer = nil
	if w.s.failure == "" {
		w.checkReclaimed()
	}
	for _, seg := range w.segs {
		seg.Close()
	}
	for _, mem := range w.pages {
		_ = unix.Munmap(mem)
	}
	res.Trace, res.Steps, res.Failure, res.Counts = w.s.trace, w.s.steps, w.s.failure, w.count
	return res
}

// where returns a description of what each rank does.
func (w *world) where() string {
	var lines []string
	for i, r := range w.ranks {
		lines = append(lines, fmt.Sprintf("rank %d, gone %t, in step %d (%s):", i, r.gone, r.step, r.doing))
		lines = append(lines, w.seg.Describe(i)...)
	}
	return strings.Join(lines, "\n")
}

func (w *world) rank(i int) *rank {
	if _, ok := w.seg.Claim(i); !ok {
		panic("claim")
	}
	o := engine.Options{OneCopy: w.o.Copy}
	if w.net != nil {
		o = engine.Options{Net: w.net.Node(i), NetOnly: true}
	}
	r := &rank{w: w, n: i, eng: engine.New(w.seg, i, o), plan: rand.New(rand.NewPCG(w.seed, 3)), own: rand.New(rand.NewPCG(w.seed, uint64(10+i)))}
	r.p2p, r.rma = p2p.New(r.eng), rma.New(r.eng)
	for k := range w.o.Ranks {
		r.all = append(r.all, k)
	}
	r.chan1 = r.p2p.Open(1, i, r.all)
	r.coll = &coll.Comm{Chan: r.p2p.Open(2, i, r.all), Rank: i, Size: w.o.Ranks}
	if r.eng.AllLocal(r.all) {
		r.coll.UseBlock(r.eng, 0)
		if w.seed%3 == 0 {
			r.coll.DivideBoard(job.LeastBarrierGroup)
		}
	}
	atomic.StoreUint32(&w.seg.Ranks[i].State, job.StateReady)
	w.s.thread(i, false, r.main)
	w.s.thread(i, true, func() { // the progress engine
		for {
			r.eng.PollSure()
			atom.Yield()
		}
	})
	return r
}

// main runs the program to its end, or to the first error that the end of a rank explains.
func (r *rank) main() {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case errEnded:
			r.w.count["ended by an error"]++
			r.w.end(r.n) // the others may wait for it
		default:
			panic(p)
		}
	}()
	r.program()
}

// end ends a rank's process: all others see it gone.
func (w *world) end(n int) {
	r := w.ranks[n]
	if r.gone {
		return
	}
	r.gone = true
	w.s.kill(n)
	if w.net != nil {
		w.net.End(n)
	}
	atomic.StoreUint32(&w.seg.Ranks[n].Exit, 1)
	for _, other := range w.ranks {
		if !other.gone {
			other.eng.NoteGone(n)
		}
	}
}

// anyGone reports whether any rank has ended, which may explain an error.
func (w *world) anyGone() bool {
	for _, r := range w.ranks {
		if r.gone {
			return true
		}
	}
	return false
}

// must ends the rank's program if err is an error.
func (r *rank) must(err error) {
	var e *errs.Error
	if errors.As(err, &e) && e == nil || err == nil {
		return
	}
	if r.w.anyGone() {
		panic(errEnded{err})
	}
	panic(fmt.Sprintf("error: %v", err))
}

func (r *rank) check(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Sprintf(format, args...))
	}
}

// until waits until done returns true.
func (r *rank) until(done func() bool, check func() error) {
	why := &engine.Reason{Call: job.CallWait, Peer: -2, Tag: -1}
	for {
		switch err := r.eng.Wait(why, done, check); err {
		case engine.ErrInterrupted:
		case nil:
			return
		default:
			r.must(err)
		}
	}
}

// compute lets the other threads run for a while.
func (r *rank) compute() {
	for range r.own.IntN(4) {
		atom.Yield()
	}
}

// memory returns n bytes outside Go's heap, where programs have theirs.
func (w *world) memory(n int) []byte {
	mem, err := unix.Mmap(-1, 0, max(n, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		panic(err)
	}
	w.pages = append(w.pages, mem)
	return mem[:n:n]
}

// reclaim poisons and protects the memory of an operation that is over or was dropped.
func (w *world) reclaim(mem []byte) {
	for i := range mem {
		mem[i] = poison
	}
	w.reclaimed = append(w.reclaimed, mem)
	w.protect(mem, unix.PROT_NONE)
}

// protect sets the protection of the pages of memory.
func (w *world) protect(mem []byte, how int) {
	whole := unsafe.Slice(unsafe.SliceData(mem), (max(len(mem), 1)+4095)/4096*4096)
	if err := unix.Mprotect(whole, how); err != nil {
		panic(err)
	}
}

// checkReclaimed fails the run if reclaimed memory was written to.
func (w *world) checkReclaimed() {
	for _, mem := range w.reclaimed {
		w.protect(mem, unix.PROT_READ)
		for i, b := range mem {
			if b != poison && w.s.failure == "" {
				w.s.fail("byte %d of %d bytes that the program had reclaimed was written: %#x", i, len(mem), b)
			}
		}
	}
}

var byteType, longType = dtype.ByName("BYTE"), dtype.ByName("INT64_T")

func bytesBuf(b []byte) p2p.Buf {
	return p2p.Buf{Addr: unsafe.Pointer(unsafe.SliceData(b)), Count: len(b), Type: byteType}
}

func longsBuf(b []byte) p2p.Buf {
	return p2p.Buf{Addr: unsafe.Pointer(unsafe.SliceData(b)), Count: len(b) / 8, Type: longType}
}

func longs(b []byte) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}
