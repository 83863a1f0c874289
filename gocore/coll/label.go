package coll

import (
	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
)

// The label of a message of a collective is its sender's call. Word has kind, nonblocking,
// op, elem and the lower half of root; Size the upper half of root, and in the lower bits
// Bytes+1.
const (
	labelNonblocking = 5
	labelOp          = labelNonblocking + 1
	labelElem        = labelOp + opBits
	labelRoot        = labelElem + elemBits
	labelRootHigh    = 48 // in Size
	labelKinds       = 1<<5 - 1
)

// unknown is the label of a collective of which only this library knows the kind, such as
// the steps of a call on a file. It matches every call.
var unknown = p2p.Label{Word: labelKinds}

// A kind is left for unknown.
var _ [labelKinds - kinds]struct{}

// label returns the label of a call.
func (c *Call) label() p2p.Label {
	root := uint32(0)
	if c.Kind.Rooted() {
		root = uint32(c.Root)
	}
	l := p2p.Label{Word: uint32(c.Kind) | uint32(c.Op)<<labelOp | uint32(c.Elem)<<labelElem | root<<labelRoot,
		Size: uint64(c.Bytes+1) | uint64(root>>16)<<labelRootHigh}
	if c.Nonblocking {
		l.Word |= 1 << labelNonblocking
	}
	return l
}

// callOfLabel returns the call of a label, false if it has none. The zero value, that of a
// receive that has failed before a message came, has none.
func callOfLabel(l p2p.Label) (Call, bool) {
	kind := Kind(l.Word & labelKinds)
	if kind >= kinds || l == (p2p.Label{}) {
		return Call{}, false
	}
	return Call{Kind: kind, Nonblocking: l.Word>>labelNonblocking&1 != 0, Op: op.Op(l.Word >> labelOp & (1<<opBits - 1)),
		Elem: dtype.Kind(l.Word >> labelElem & (1<<elemBits - 1)), Root: int(l.Word>>labelRoot | uint32(l.Size>>labelRootHigh)<<16),
		Bytes: int(l.Size&(1<<labelRootHigh-1)) - 1}, true
}

// mismatch returns why two calls can't be the same collective, nil if they can: the own
// one, and that of another rank of the sides.
func (e *entry) mismatch(theirs p2p.Label, rank int, sides *Sides) *errs.Error {
	if e.label == theirs {
		return nil
	}
	a, known := callOfLabel(e.label)
	a.Objects = e.called
	b, alsoKnown := callOfLabel(theirs)
	switch {
	case !known && alsoKnown && b.Kind == KindGiveUp:
		return errs.New(errs.Other, "the collective can't complete: %s has given it up (its own error says why)", sides.Name(rank))
	case !known && alsoKnown && b.Kind == KindEnded:
		return errs.New(errs.ProcFailed, "the collective can't complete: %s has ended", sides.Name(rank))
	case !known, !alsoKnown:
		return nil
	}
	return a.mismatch(b, rank, sides)
}
