package mpiio

import (
	"math"

	"gormapy/gocore/errs"
)

// Limits of a piece of work on the file, so that signals are handled in between.
const (
	pieceBytes = 4 << 20
	pieceRuns  = 4096
)

// sieve limits data sieving: a read of many runs reads all bytes from the first to the
// last if at least one byte in sieve is requested. A system call costs as much as copying
// some KiB.
const sieve = 16

const noEOF = math.MaxInt64

// transfer returns the work of an access without aggregators; done counts the bytes.
func (a *access) transfer(done *int64) func() bool {
	if a.n == 0 {
		return func() bool { return true }
	}
	var scratch, file []byte
	return func() bool {
		p := *done
		n := min(pieceBytes, a.n-p)
		if a.kind&Write != 0 {
			m := a.memory(p, n)
			if m == nil {
				scratch = room(scratch, n)
				m = scratch
				if !a.load(m, p) {
					return true
				}
			}
			*done += a.put(m, p)
			return a.err != nil || *done == a.n
		}
		// Runs that are far apart are not read together.
		at := a.at + p
		lo, hi := a.v.span(at, n)
		if hi-lo > pieceBytes && hi-lo > n && !a.v.overlaps {
			if n = min(n, a.v.Before(lo+pieceBytes)-at); n <= 0 {
				n = min(pieceBytes, a.n-p)
			}
			lo, hi = a.v.span(at, n)
		}
		m := a.memory(p, n)
		direct := m != nil
		if !direct {
			scratch = room(scratch, n)
			m = scratch
		}
		var got int64
		if hi-lo > n && n*sieve >= hi-lo && !a.v.overlaps {
			file = room(file, hi-lo)
			got = a.sift(m, file, at, lo)
		} else {
			got = a.get(m, at)
		}
		if !direct && !a.store(m[:got], p) {
			return true
		}
		*done += got
		return a.err != nil || a.eof != noEOF || *done == a.n
	}
}

// room returns b, or new memory, with a length of n bytes.
func room(b []byte, n int64) []byte {
	if int64(cap(b)) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// put writes m, which is the data from p on, run by run, and returns how many bytes were
// written.
func (a *access) put(m []byte, p int64) int64 {
	done, runs := int64(0), 0
	a.v.Runs(a.at+p, int64(len(m)), func(off, n int64) bool {
		if err := writeAt(a.f.fd, m[done:done+n], off); err != nil {
			a.err = a.failed("at byte", off, err)
			return false
		}
		done += n
		runs++
		return runs < pieceRuns
	})
	return done
}

// get reads into m, run by run, and returns how many bytes were read.
func (a *access) get(m []byte, at int64) int64 {
	done, runs := int64(0), 0
	a.v.Runs(at, int64(len(m)), func(off, n int64) bool {
		got, err := readAt(a.f.fd, m[done:done+n], off)
		done += int64(got)
		if err != nil {
			a.err = a.failed("at byte", off, err)
			return false
		}
		if int64(got) < n {
			a.eof = off + int64(got)
			return false
		}
		runs++
		return runs < pieceRuns
	})
	return done
}

// sift reads the part of the file that m's runs span into file, and copies them from
// there.
func (a *access) sift(m, file []byte, at, lo int64) int64 {
	got, err := readAt(a.f.fd, file, lo)
	if err != nil {
		a.err = a.failed("at byte", lo, err)
		return 0
	}
	n := int64(len(m))
	if got < len(file) {
		a.eof = lo + int64(got)
		n = max(0, min(n, a.v.Before(a.eof)-at))
	}
	done := int64(0)
	if !a.touch(func() {
		a.v.Runs(at, n, func(off, n int64) bool {
			done += int64(copy(m[done:done+n], file[off-lo:]))
			return true
		})
	}) {
		return 0
	}
	return done
}

// failed returns the error of an access.
func (a *access) failed(where string, off int64, err error) *errs.Error {
	e := failure(a.kind.String(), a.f.name(), err)
	return errs.New(e.Class, "%s (%s %d)", e.Detail, where, off)
}
