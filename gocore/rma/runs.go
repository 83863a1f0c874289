package rma

import (
	"sync"
	"unsafe"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// batch is the runs of a target's memory that one call of the transport copies,
// and room for their data where the origin's is not in one piece.
type batch struct {
	runs [sys.MaxRuns]fabric.Run
	data []byte
}

var batches = sync.Pool{New: func() any { return new(batch) }}

const (
	// batchPacked bounds what is packed at a time, so that it stays in the cache.
	batchPacked = 256 << 10
	// batchBytes bounds what one call copies from or to an origin in one piece.
	batchBytes = 4 << 20
)

// each goes through s, which starts at address at of the target's memory, in
// batches of runs; from is where in the packed data the batch of n bytes begins.
func (b *batch) each(s Spot, at uint64, most, limit int, f func(from, n int, runs []fabric.Run) error) (err error) {
	from, n, used := 0, 0, 0
	s.Type.Runs(s.Count, func(off, left int) bool {
		for left > 0 {
			m := min(left, limit-n)
			b.runs[used] = fabric.Run{Addr: at + uint64(off), N: m}
			used, n, off, left = used+1, n+m, off+m, left-m
			if used == most || n == limit {
				if err = f(from, n, b.runs[:used]); err != nil {
					return false
				}
				from, n, used = from+n, 0, 0
			}
		}
		return true
	})
	if err == nil && used > 0 {
		err = f(from, n, b.runs[:used])
	}
	return err
}

// copyRuns moves origin's data to or from s, whose place is reached by copies: where one side or both are derived types, many runs
// go by one call of the transport.
func (w *Win) copyRuns(call string, put bool, origin p2p.Buf, s Spot, at place) *errs.Error {
	peer := w.World[s.Rank]
	_, caps := w.rma.eng.Transport(peer)
	ep, _ := w.rma.eng.Endpoint(peer)
	key := w.keys[s.Rank]
	b := batches.Get().(*batch)
	defer batches.Put(b)
	limit, dense := batchBytes, origin.Type.Dense()
	if !dense {
		limit = batchPacked
		if b.data == nil {
			b.data = make([]byte, batchPacked)
		}
	}
	err := b.each(s, key.Addr+uint64(at.off), min(caps.MaxRuns, len(b.runs)), limit, func(from, n int, runs []fabric.Run) (err error) {
		local := unsafe.Pointer(unsafe.SliceData(b.data))
		if dense {
			local = unsafe.Add(origin.Addr, from)
		}
		if !put {
			if _, err = ep.GetRuns(local, key.Key, runs, 0); err == nil && !dense {
				origin.Type.UnpackAt(origin.Addr, b.data[:n], origin.Count, from)
			}
			return err
		}
		if !dense {
			origin.Type.PackAt(b.data[:n], origin.Addr, origin.Count, from)
		}
		_, err = ep.PutRuns(local, key.Key, runs, 0)
		return err
	})
	if err != nil {
		return w.failed(call, s.Rank, err)
	}
	return nil
}
