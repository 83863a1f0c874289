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

// Options are what a run is besides its seed.
type Options struct {
	Ranks int
	Steps int          // of the program
	Copy  bool         // over shared memory: by copies of the kernel, too
	Net   *fabric.Caps // not nil: over a network
	Kill  bool         // one rank dies at some moment
	Stops bool         // ranks are stopped for a while
	Reset bool         // the program has collective resets
}

// Result is what came of a run.
type Result struct {
	Trace   uint64 // the same for the same seed
	Steps   int
	Failure string
	Killed  bool
	Counts  map[string]int // what the program did
}

// world is a job in a simulation.
type world struct {
	o     Options
	seed  uint64
	s     *scheduler
	seg   *job.Segment
	net   *ranktest.Net
	ranks []*rank
	pages [][]byte // all memory of the programs
	grave [][]byte // what programs have taken back, filled with soil
	segs  map[uint32]*sys.Segment
	taken map[string][]int64 // what fetching operations returned, by epoch and counter
	count map[string]int
}

const soil = 0xdb

// rank is one of its processes.
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

// Run makes one.
func Run(seed uint64, o Options) (res Result) {
	w := &world{o: o, seed: seed, s: newScheduler(seed), segs: map[uint32]*sys.Segment{}, taken: map[string][]int64{}, count: map[string]int{}}
	job.Clock = w.s.now
	atom.Explorer = nil // what is made here is no step
	sys.Caught = func(f *sys.Fault) {
		w.s.fail("memory that the program had taken back was touched: %v\n%s", f, debug.Stack())
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
		w.dig()
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

// where says what each rank does.
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
		o = engine.Options{Net: w.net.Node(i)}
	}
	r := &rank{w: w, n: i, eng: engine.New(w.seg, i, o), plan: rand.New(rand.NewPCG(w.seed, 3)), own: rand.New(rand.NewPCG(w.seed, uint64(10+i)))}
	r.p2p, r.rma = p2p.New(r.eng), rma.New(r.eng)
	for k := range w.o.Ranks {
		r.all = append(r.all, k)
	}
	r.chan1 = r.p2p.Open(1, i, r.all)
	r.coll = &coll.Comm{Chan: r.p2p.Open(2, i, r.all), Rank: i, Size: w.o.Ranks}
	r.coll.Attach(r.eng, 0)
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

// end has a rank's process be gone for all others.
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

// anyGone reports whether an error may be that of a rank's end.
func (w *world) anyGone() bool {
	for _, r := range w.ranks {
		if r.gone {
			return true
		}
	}
	return false
}

// must ends the rank's program by an error.
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

// until waits.
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

// compute has the others go on for a while.
func (r *rank) compute() {
	for range r.own.IntN(4) {
		atom.Yield()
	}
}

// memory is n bytes that are not Go's, as the programs' are not.
func (w *world) memory(n int) []byte {
	mem, err := unix.Mmap(-1, 0, max(n, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		panic(err)
	}
	w.pages = append(w.pages, mem)
	return mem[:n:n]
}

// bury takes memory back from an operation that is over or was dropped.
func (w *world) bury(mem []byte) {
	for i := range mem {
		mem[i] = soil
	}
	w.grave = append(w.grave, mem)
	w.protect(mem, unix.PROT_NONE)
}

// protect sets what may be done with the pages of memory.
func (w *world) protect(mem []byte, how int) {
	whole := unsafe.Slice(unsafe.SliceData(mem), (max(len(mem), 1)+4095)/4096*4096)
	if err := unix.Mprotect(whole, how); err != nil {
		panic(err)
	}
}

// dig looks whether somebody has written to what is buried.
func (w *world) dig() {
	for _, mem := range w.grave {
		w.protect(mem, unix.PROT_READ)
		for i, b := range mem {
			if b != soil && w.s.failure == "" {
				w.s.fail("byte %d of %d bytes that the program had taken back was written: %#x", i, len(mem), b)
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
