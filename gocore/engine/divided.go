package engine

import (
	"math/bits"
	"time"
	"unsafe"

	"gormapy/gocore/choice"
	"gormapy/gocore/fabric"
	"gormapy/gocore/workers"
)

// What is long is copied by several threads of a rank if the others of the node leave cores idle: see package workers.
// A rank can't know whether they do, so it measures both ways.
//
// The copying argument of these functions is how many ranks of the node copy at the same time.

// The kinds of copies that are measured.
const (
	copyGet = iota
	copyPut
	copyMapped
	CopyGather // to the root of a gather, from all other ranks
	FoldReduce // at the root of a reduction, of what the others have
	copyKinds
)

// copies has the choices between one thread and several, by kind and for each power of two of the size.
type copies [copyKinds][48]choice.Choice

// Pairs is the number of ranks that copy if each one copies from one that waits.
func (e *Engine) Pairs() int { return (len(e.local) + 1) / 2 }

// helpers returns how many other threads of this rank find a core.
func (e *Engine) helpers(copying int) int {
	return max(0, min(int(e.Job.Head.Cores)/max(copying, 1), e.allowed)-1)
}

// Divides reports whether several threads may copy n bytes.
func (e *Engine) Divides(n, copying int) bool { return n >= workers.Least && e.helpers(copying) > 0 }

// Fastest has piece called for all n bytes at once, or for all pieces of them by several threads (see workers.Copy), which
// is chosen by the times of earlier copies of the kind.
func (e *Engine) Fastest(kind, n, copying int, piece func(at, n int) error) error {
	c := &e.copies[kind][bits.Len(uint(n))]
	way, begin := c.Choose(2), time.Now()
	var err error
	if way == 0 {
		err = piece(0, n)
	} else {
		err = workers.Copy(n, e.helpers(copying), piece)
	}
	if err == nil {
		c.Learn(way, int64(time.Since(begin)))
	}
	return err
}

// getter returns a function that reads a piece of dst's memory.
func (e *Engine) getter(dst int, local unsafe.Pointer, remote fabric.RemoteKey) func(at, n int) error {
	return func(at, n int) error {
		_, err := e.Get(dst, unsafe.Add(local, at), fabric.RemoteKey{Addr: remote.Addr + uint64(at), Key: remote.Key}, n, 0)
		return err
	}
}

// GetByThreads reads n bytes of memory of dst, another rank of the node, as Get does, by several threads.
func (e *Engine) GetByThreads(dst int, local unsafe.Pointer, remote fabric.RemoteKey, n, copying int) error {
	return workers.Copy(n, e.helpers(copying), e.getter(dst, local, remote))
}

// GetFastest reads n bytes of memory of dst likewise, by one thread or several.
func (e *Engine) GetFastest(dst int, local unsafe.Pointer, remote fabric.RemoteKey, n, copying int) error {
	if !e.Divides(n, copying) {
		_, err := e.Get(dst, local, remote, n, 0)
		return err
	}
	return e.Fastest(copyGet, n, copying, e.getter(dst, local, remote))
}

// PutFastest writes n bytes to memory of dst, likewise.
func (e *Engine) PutFastest(dst int, local unsafe.Pointer, remote fabric.RemoteKey, n, copying int) error {
	if !e.Divides(n, copying) {
		_, err := e.Put(dst, local, remote, n, 0)
		return err
	}
	return e.Fastest(copyPut, n, copying, func(at, n int) error {
		_, err := e.Put(dst, unsafe.Add(local, at), fabric.RemoteKey{Addr: remote.Addr + uint64(at), Key: remote.Key}, n, 0)
		return err
	})
}

// CopyFastest copies n bytes of memory that this process maps, as fabric.Copy does. A fault is a panic of the caller.
func (e *Engine) CopyFastest(to, from unsafe.Pointer, n, copying int) {
	if !e.Divides(n, copying) {
		fabric.Copy(to, from, n)
		return
	}
	err := e.Fastest(copyMapped, n, copying, func(at, n int) error {
		fabric.Copy(unsafe.Add(to, at), unsafe.Add(from, at), n)
		return nil
	})
	if err != nil {
		panic(err)
	}
}
