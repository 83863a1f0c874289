package rma

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/dtype"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// batch gathers runs of a target's memory that are handled by one call.
type batch struct {
	runs   [sys.MaxRuns]fabric.Run // Addr is the offset in the target's part
	remote [sys.MaxRuns]fabric.Run // the same with addresses at the target
	data   []byte                  // buffer for their data where the origin's is not contiguous

	limit   limits
	handle  func(from, n int, runs []fabric.Run) *errs.Error
	from, n int
	used    int
	err     *errs.Error
}

// limits say how large a batch may become.
type limits struct {
	runs  int
	bytes int // of data, and perRun for each run
	// perRun is the size of a run's description where that is sent with the data.
	perRun int
	unit   int // runs are only cut at multiples of it
}

const (
	// batchPacked bounds what is packed at a time, so that it stays in the cache.
	batchPacked = 256 << 10
	// batchBytes bounds what one call copies from or to a contiguous origin.
	batchBytes = 4 << 20
)

var batches = sync.Pool{New: func() any { return new(batch) }}

// newBatch takes a batch from the pool; end returns it there. handle is called with
// runs of n bytes in all, whose data begins at offset from in the data of all runs.
func newBatch(limit limits, handle func(from, n int, runs []fabric.Run) *errs.Error) *batch {
	b := batches.Get().(*batch)
	limit.runs = min(limit.runs, len(b.runs))
	b.limit, b.handle, b.err, b.from, b.n, b.used = limit, handle, nil, 0, 0, 0
	return b
}

// add adds n bytes at off. It returns false after an error, when no more are needed.
func (b *batch) add(off, n int) bool {
	for n > 0 {
		room := (b.limit.bytes - b.n - (b.used+1)*b.limit.perRun) / b.limit.unit * b.limit.unit
		if b.used == b.limit.runs || room <= 0 {
			if !b.pass() {
				return false
			}
			continue
		}
		m := min(n, room)
		b.runs[b.used] = fabric.Run{Addr: uint64(off), N: m}
		b.used, b.n, off, n = b.used+1, b.n+m, off+m, n-m
	}
	return true
}

// pass has the runs of the batch handled, and empties it. It returns false after an error.
func (b *batch) pass() bool {
	if b.used > 0 && b.err == nil {
		b.err = b.handle(b.from, b.n, b.runs[:b.used])
		b.from, b.n, b.used = b.from+b.n, 0, 0
	}
	return b.err == nil
}

func (b *batch) end() *errs.Error {
	b.pass()
	err := b.err
	b.handle, b.err = nil, nil
	batches.Put(b)
	return err
}

// addRuns adds the data bytes that s describes, from offset at on.
func (b *batch) addRuns(s TargetSpec, at int) {
	s.Type.Runs(s.Count, func(off, n int) bool { return b.add(at+off, n) })
}

// addElements adds the basic elements that s describes, padding included.
func (b *batch) addElements(s TargetSpec, at int) {
	size := s.Type.ElemSize()
	s.Type.Elements(s.Count, func(off, elems int) bool { return b.add(at+off, elems*size) })
}

// transfer copies between local, where the runs' data is contiguous, and the runs of
// a target that is reached by copies.
func (w *Win) transfer(call string, put bool, rank int, local unsafe.Pointer, runs []fabric.Run, b *batch) *errs.Error {
	eng, peer := w.rma.eng, w.World[rank]
	_, caps := eng.Transport(peer)
	key := w.keys[rank]
	for len(runs) > 0 {
		remote := b.remote[:min(len(runs), caps.MaxRuns)]
		n := 0
		for i := range remote {
			remote[i] = fabric.Run{Addr: key.Addr + runs[i].Addr, N: runs[i].N}
			n += runs[i].N
		}
		var err error
		if put {
			_, err = eng.PutRuns(peer, local, key.Key, remote, 0)
		} else {
			_, err = eng.GetRuns(peer, local, key.Key, remote, 0)
		}
		if err != nil {
			return w.failed(call, rank, local, n, err)
		}
		runs = runs[len(remote):]
		if len(runs) > 0 {
			local = unsafe.Add(local, n)
		}
	}
	w.copied(rank)
	return nil
}

// copyRuns moves data between origin and s, whose target is reached by copies. One or
// both sides are derived types; one call of the transport moves many runs.
func (w *Win) copyRuns(call string, put bool, origin p2p.Buf, s TargetSpec, at location) *errs.Error {
	if done, err := w.copySpan(call, put, origin, s, at); done {
		return err
	}
	limit, dense := limits{runs: sys.MaxRuns, bytes: batchBytes, unit: 1}, origin.Type.Dense()
	if !dense {
		limit.bytes = batchPacked
	}
	var b *batch
	b = newBatch(limit, func(from, n int, runs []fabric.Run) *errs.Error {
		if dense {
			return w.transfer(call, put, s.Rank, unsafe.Add(origin.Addr, from), runs, b)
		}
		if b.data == nil {
			b.data = make([]byte, batchPacked)
		}
		if put {
			origin.Type.PackAt(b.data[:n], origin.Addr, origin.Count, from)
		}
		err := w.transfer(call, put, s.Rank, unsafe.Pointer(&b.data[0]), runs, b)
		if err == nil && !put {
			origin.Type.UnpackAt(origin.Addr, b.data[:n], origin.Count, from)
		}
		return err
	})
	b.addRuns(s, at.off)
	return b.end()
}

const (
	// spanBytes bounds the memory that copySpan allocates.
	spanBytes = 64 << 20
	// runCost is how many bytes the kernel copies in the time that it takes to look
	// up one run.
	runCost = 4096
)

// spans is the memory for copySpan. It is kept until a window is freed, since the
// kernel takes longer to allocate its pages than to copy their contents. It is not
// Go's memory, since copySpan computes pointers outside of it from its address.
var spans spanMemory

type spanMemory struct {
	sync.Mutex
	mem []byte
}

func (m *spanMemory) take(n int) []byte {
	if len(m.mem) < n {
		m.release()
		mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return nil
		}
		m.mem = mem
	}
	return m.mem[:n]
}

func (m *spanMemory) release() {
	if m.mem != nil {
		_ = unix.Munmap(m.mem)
		m.mem = nil
	}
}

// copySpan does what copyRuns does with one contiguous copy where that is faster. A
// get reads the gaps between short runs along with them. A put assembles the whole
// span here and writes it, which requires that it has no gaps (the target's matrix is
// transposed). copySpan returns false if it has done nothing.
func (w *Win) copySpan(call string, put bool, origin p2p.Buf, s TargetSpec, at location) (done bool, err *errs.Error) {
	lo, hi := s.Type.Span(s.Count)
	n := hi - lo
	if blocks := s.Type.Blocks(s.Count); n > spanBytes || blocks < 64 || n/runCost > blocks || put && !s.Type.Solid(s.Count) {
		return false, nil
	}
	if !spans.TryLock() {
		return false, nil // another thread uses it
	}
	defer spans.Unlock()
	buf := spans.take(n)
	if buf == nil {
		return false, nil
	}
	p := unsafe.Pointer(&buf[0])
	shifted := unsafe.Add(p, -lo)
	if put {
		dtype.Copy(shifted, s.Type, s.Count, origin.Addr, origin.Type, origin.Count)
		return true, w.write(call, at, lo, p, n)
	}
	if err = w.read(call, at, lo, p, n); err == nil {
		dtype.Copy(origin.Addr, origin.Type, origin.Count, shifted, s.Type, s.Count)
	}
	return true, err
}

// runBytes is the size of a run in a message. A message may have many: their number is
// the header's Tag, and the payload begins with them.
const runBytes = int(unsafe.Sizeof(fabric.Run{}))

func runsAsBytes(runs []fabric.Run) []byte {
	return engine.Bytes(unsafe.Pointer(unsafe.SliceData(runs)), len(runs)*runBytes)
}

// runsIn decodes used runs at the head of a payload and returns them and the rest. It
// returns false unless all lie in this process's part of the window and have n bytes
// in all; n < 0 stands for the length of the rest.
func (w *Win) runsIn(payload []byte, used, n int) (runs []fabric.Run, rest []byte, ok bool) {
	if used < 0 || used > len(payload)/runBytes {
		return nil, nil, false
	}
	runs = make([]fabric.Run, used) // a payload need not be aligned
	rest = payload[copy(runsAsBytes(runs), payload):]
	if n < 0 {
		n = len(rest)
	}
	for _, r := range runs {
		if r.N <= 0 || r.N > n || w.inside(r.Addr, uint64(r.N)) == nil {
			return nil, nil, false
		}
		n -= r.N
	}
	return runs, rest, n == 0
}

// sendPutRuns puts contiguous data to the runs that s describes, by messages.
func (w *Win) sendPutRuns(s TargetSpec, to location, data unsafe.Pointer) {
	peer := w.World[to.rank]
	b := newBatch(limits{runs: sys.MaxRuns, bytes: w.rma.eng.MaxShort(peer), perRun: runBytes, unit: 1},
		func(from, n int, runs []fabric.Run) *errs.Error {
			h := w.header(fabric.KindPut)
			h.Tag, h.Len = int32(len(runs)), uint64(len(runs)*runBytes+n)
			payload := append(append(make([]byte, 0, h.Len), runsAsBytes(runs)...), engine.Bytes(unsafe.Add(data, from), n)...)
			_ = w.ask(to.rank, &h, payload, nil) // the payload is this process's, it can't fault
			return nil
		})
	b.addRuns(s, to.off)
	b.end()
}

// scatter writes a message of sendPutRuns to the target's memory.
func (w *Win) scatter(payload []byte, used int) errs.Class {
	runs, data, ok := w.runsIn(payload, used, -1)
	if !ok {
		return errs.RMARange
	}
	for _, r := range runs {
		if class := w.arrived(r.Addr, data[:r.N]); class != errs.Success {
			return class
		}
		data = data[r.N:]
	}
	return errs.Success
}

// sendGetRuns requests the runs that s describes for the fetch f, by messages.
func (w *Win) sendGetRuns(f *fetch, s TargetSpec, from location) {
	peer := w.World[from.rank]
	b := newBatch(limits{runs: w.rma.eng.MaxShort(peer) / runBytes, bytes: batchPacked, unit: 1},
		func(at, n int, runs []fabric.Run) *errs.Error {
			if len(runs) == 1 {
				w.sendGet(f, int(runs[0].Addr), at, n)
				return nil
			}
			h := w.header(fabric.KindGet)
			h.B, h.Len = f.token, uint64(n)
			h.Aux, h.Tag = uint32(at), int32(at>>32)
			w.rma.eng.Send(peer, &h, append([]byte(nil), runsAsBytes(runs)...), w, nil)
			return nil
		})
	b.addRuns(s, from.off)
	b.end()
}

// gather returns the data that a message of sendGetRuns requests, or nil and a class
// if the request is wrong or the memory can't be read.
func (w *Win) gather(payload []byte, n uint64) ([]byte, errs.Class) {
	if n > batchPacked || len(payload)%runBytes != 0 {
		return nil, errs.RMARange
	}
	runs, _, ok := w.runsIn(payload, len(payload)/runBytes, int(n))
	if !ok {
		return nil, errs.RMARange
	}
	data := make([]byte, 0, n)
	if sys.Touch(func() {
		for _, r := range runs {
			data = append(data, engine.Bytes(w.inside(r.Addr, uint64(r.N)), r.N)...)
		}
	}) != nil {
		return nil, errs.Buffer
	}
	return data, errs.Success
}
