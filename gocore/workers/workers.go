// Package workers divides long copies between the calling thread and other threads of this process, which run on cores
// that would be idle.
//
// It may import sys and sys/atom.
package workers

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

const (
	// Least is how many bytes are worth the wake-up of a worker, which comes 5 to 50 us later: of data that lies in a
	// cache one thread copies 1 MiB in that time.
	Least = 2 << 20
	// Most is how many workers there are. More copy hardly faster: memory is the limit.
	Most = 3
	// PieceBytes is how much a thread takes at a time: some 10 us.
	PieceBytes = 128 << 10
)

// # How a copy is divided
//
// The copy is a task. Its next piece begins at next, which every thread that takes one moves on. A worker adds 1 to running
// before it takes a piece, and subtracts it when it has none any more. The caller takes pieces until there are none, and
// then waits until running is 0. So it never waits for a worker that has not begun: one that comes later finds no piece, and
// touches nothing but the task. When Copy returns no worker accesses the memory, also if a piece has failed or panicked.
//
// A worker shares its core with whatever runs there. The caller then waits for it, so that the copy may take longer than
// without workers: who calls Copy measures that.
type task struct {
	n       int64
	piece   func(at, n int) error
	next    atomic.Int64
	running atomic.Int32
	failed  atomic.Pointer[failure]
}

// failure is the first one of a task's pieces.
type failure struct {
	err      error
	panicked any
}

// Copy has piece called for all pieces of n bytes, by the caller and at most so many workers at the same time. It returns
// the first error of a piece; other pieces may have been copied then, before it and after it. A fault is an error. If piece
// panics otherwise, Copy does.
func Copy(n, workers int, piece func(at, n int) error) error {
	if workers <= 0 {
		return try(piece, 0, n)
	}
	t := &task{n: int64(n), piece: piece}
	call(t, min(workers, Most))
	t.work()
	for i := 0; t.running.Load() != 0; i++ {
		if i < 1000 {
			atom.Yield()
		} else {
			time.Sleep(20 * time.Microsecond) // its core has been given to something else
		}
	}
	f := t.failed.Load()
	switch {
	case f == nil:
		return nil
	case f.panicked != nil:
		panic(f.panicked)
	}
	return f.err
}

// work takes pieces until there are none.
func (t *task) work() {
	defer func() {
		if p := recover(); p != nil {
			t.fail(&failure{panicked: p})
		}
	}()
	for t.failed.Load() == nil {
		at := t.next.Add(PieceBytes) - PieceBytes
		if at >= t.n {
			return
		}
		if err := try(t.piece, int(at), int(min(PieceBytes, t.n-at))); err != nil {
			t.fail(&failure{err: err})
		}
	}
}

// try calls piece, and returns a fault as an error.
func try(piece func(at, n int) error, at, n int) (err error) {
	defer sys.CatchFault(&err)
	return piece(at, n)
}

func (t *task) fail(f *failure) { t.failed.CompareAndSwap(nil, f) }

// help is work by a worker.
func (t *task) help() {
	t.running.Add(1)
	defer t.running.Add(-1)
	t.work()
}

var (
	tasks   = make(chan *task)
	started atomic.Int32
)

// serve is a worker, which begins with a task. It keeps none, nor the memory of its copy, while it waits for the next one.
func serve(t *task) {
	debug.SetPanicOnFault(true)
	for {
		t.help()
		t = <-tasks
	}
}

// call hands a task to workers that have none.
func call(t *task, workers int) {
	for range workers {
		select {
		case tasks <- t:
			continue
		default:
		}
		if n := started.Load(); n < Most && started.CompareAndSwap(n, n+1) {
			go serve(t)
		}
	}
}
