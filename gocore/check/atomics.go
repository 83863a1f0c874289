package check

// place is an element of a window that accumulates access.
type place struct {
	target  int
	address int64
}

// element is the history of an element: who changed it to which value. A rank that reads a value knows what its writer knew
// when it wrote it, and what those knew whose values the writer has replaced (as in a release sequence of C++).
type element struct {
	updates []*operation // without values first: they may be read at any time
	before  clock        // what earlier updates made known
}

// remembered is how many updates of an element are kept apart.
const remembered = 128

// update adds an accumulate to the history of the elements that it changes.
func (c *Checker) update(o *operation) {
	if o.Op == OpNone {
		return
	}
	e := c.element(o)
	e.updates = append(e.updates, o)
	o.element = e
	if len(e.updates) > remembered {
		for _, old := range e.updates[:remembered/2] {
			e.before.join(old.known)
		}
		e.updates = append([]*operation(nil), e.updates[remembered/2:]...)
	}
}

func (c *Checker) element(o *operation) *element {
	at := place{o.target, o.accesses[len(o.accesses)-1].runs.start}
	e := o.win.atomics[at]
	if e == nil {
		e = &element{}
		o.win.atomics[at] = e
	}
	return e
}

func (e *element) remove(o *operation) {
	for i, u := range e.updates {
		if u == o {
			e.updates = append(e.updates[:i:i], e.updates[i+1:]...)
			return
		}
	}
}

// fetched processes the old value that an operation has got: its thread knows now what the writer of the value knew.
// swapped is 0 if the operation was a Compare_and_swap that has changed nothing.
func (c *Checker) fetched(t *thread, number, value, swapped int64) {
	o := t.ops[number]
	if o == nil || o.failed || len(o.accesses) == 0 {
		return
	}
	if o.valued = true; !o.requested {
		delete(t.ops, number)
	}
	e := c.element(o)
	if swapped == 0 {
		e.remove(o)
	}
	got := e.before.clone()
	exact := false
	for i := len(e.updates) - 1; i >= 0; i-- {
		u := e.updates[i]
		if u == o {
			continue
		}
		result, known := u.result()
		if !known {
			got.join(u.known) // it may have been before
		} else if result == value && !exact {
			got.join(u.known)
			exact = true
		}
	}
	t.clock.join(got)
	o.known.join(got)
	o.value = value
}

// result returns the value that an update has stored, if it is known.
func (o *operation) result() (value int64, known bool) {
	switch {
	case o.Op == OpReplace && o.ValueKnown != 0:
		return o.Value, true
	case !o.valued || o.ValueKnown == 0:
		return 0, false
	case o.Op == OpSum && o.ValueKnown == integerValue:
		return o.value + o.Value, true
	case o.Op == OpSwap:
		return o.Value, true
	}
	return 0, false
}

// integerValue says that the origin's value is that of an integer, with which sums can be computed.
const integerValue = 2
