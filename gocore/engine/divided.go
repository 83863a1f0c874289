package engine

import (
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/workers"
)

// What is long is copied by several threads of a rank if the others of the node leave cores idle: see package workers.
// The copying argument of these functions is how many ranks of the node copy at the same time.

// AllCores is that number if they need all cores.
const AllCores = 1 << 30

// Divides reports whether n bytes are divided.
func (e *Engine) Divides(n, copying int) bool { return n >= workers.Least && e.helpers(copying) > 0 }

// Pairs is the number of ranks that copy if each one copies from one that waits.
func (e *Engine) Pairs() int { return (len(e.local) + 1) / 2 }

// helpers returns how many other threads of this rank find a core.
func (e *Engine) helpers(copying int) int {
	return max(0, min(int(e.Job.Head.Cores)/max(copying, 1), e.allowed)-1)
}

// Divide has piece called for all pieces of n bytes, by this thread and others: see workers.Copy.
func (e *Engine) Divide(n, copying int, piece func(at, n int) error) error {
	return workers.Copy(n, e.helpers(copying), piece)
}

// GetDivided reads n bytes of memory of dst, another rank of the node, as Get does.
func (e *Engine) GetDivided(dst int, local unsafe.Pointer, remote fabric.RemoteKey, n, copying int) error {
	if !e.Divides(n, copying) {
		_, err := e.Get(dst, local, remote, n, 0)
		return err
	}
	return e.Divide(n, copying, func(at, n int) error {
		_, err := e.Get(dst, unsafe.Add(local, at), fabric.RemoteKey{Addr: remote.Addr + uint64(at), Key: remote.Key}, n, 0)
		return err
	})
}

// PutDivided writes n bytes to memory of dst, likewise.
func (e *Engine) PutDivided(dst int, local unsafe.Pointer, remote fabric.RemoteKey, n, copying int) error {
	if !e.Divides(n, copying) {
		_, err := e.Put(dst, local, remote, n, 0)
		return err
	}
	return e.Divide(n, copying, func(at, n int) error {
		_, err := e.Put(dst, unsafe.Add(local, at), fabric.RemoteKey{Addr: remote.Addr + uint64(at), Key: remote.Key}, n, 0)
		return err
	})
}

// CopyDivided copies n bytes of memory that this process maps, as fabric.Copy does. A fault is a panic of the caller.
func (e *Engine) CopyDivided(to, from unsafe.Pointer, n, copying int) {
	if !e.Divides(n, copying) {
		fabric.Copy(to, from, n)
		return
	}
	err := e.Divide(n, copying, func(at, n int) error {
		fabric.Copy(unsafe.Add(to, at), unsafe.Add(from, at), n)
		return nil
	})
	if err != nil {
		panic(err)
	}
}
