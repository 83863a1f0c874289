package check

import "slices"

// clock is a vector clock: how many steps of each thread are known.
type clock []uint32

// at is one step of one thread. The zero value is no step.
type at struct {
	thread int
	step   uint32
}

// has reports whether a step happened before what knows c.
func (c clock) has(s at) bool { return s.thread < len(c) && c[s.thread] >= s.step }

// join adds what other knows.
func (c *clock) join(other clock) {
	if n := len(other); n > len(*c) {
		*c = append(*c, make(clock, n-len(*c))...)
	}
	for i, s := range other {
		(*c)[i] = max((*c)[i], s)
	}
}

func (c clock) clone() clock { return slices.Clone(c) }

// joined returns what both know.
func joined(a, b clock) clock {
	c := a.clone()
	c.join(b)
	return c
}
