//go:build interleave && model

package cachemodel

// Machine is what a machine takes for the events that are counted, in nanoseconds.
type Machine struct {
	Transfer float64 // of a cache line
	Byte     float64 // to copy or to fold, beyond the first line
	Call     float64 // of the kernel
	Parallel bool    // all copies of a line are served at once
}

// Unit counts transfers only.
var Unit = Machine{Transfer: 1}

// Cost is a time, and the events on the longest chain that led to it.
type Cost struct {
	Time             float64
	Transfers, Bytes int
	Calls            int
}

func (c Cost) minus(d Cost) Cost {
	return Cost{c.Time - d.Time, c.Transfers - d.Transfers, c.Bytes - d.Bytes, c.Calls - d.Calls}
}

// later returns the cost with the later time.
func later(a, b Cost) Cost {
	if b.Time > a.Time {
		return b
	}
	return a
}

// Traffic is what a rank has done.
type Traffic struct {
	Transfers     int // of cache lines to this rank
	Invalidations int // of copies that others had
	Read, Written int // bytes of data
	Calls         int // of the kernel: copies and wake-ups
	Woken         int // ranks that this one has woken
}

func (t *Traffic) add(u Traffic, sign int) {
	t.Transfers += sign * u.Transfers
	t.Invalidations += sign * u.Invalidations
	t.Read += sign * u.Read
	t.Written += sign * u.Written
	t.Calls += sign * u.Calls
	t.Woken += sign * u.Woken
}
