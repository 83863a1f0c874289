package coll

import (
	"fmt"
	"strings"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
)

// Kind identifies a collective operation; pybind/shim/gormapy.h has the same numbers.
type Kind uint8

// The collectives.
const (
	KindBarrier Kind = iota
	KindBcast
	KindGather
	KindScatter
	KindAllgather
	KindAlltoall
	KindReduce
	KindAllreduce
	KindReduceScatterBlock
	KindScan
	KindExscan
	KindGatherv
	KindScatterv
	KindAllgatherv
	KindAlltoallv
	KindIbarrier
	KindAlltoallw
	KindNeighborAllgather
	KindNeighborAlltoall
	KindComm   // a call that makes or frees a communicator or a window, or one of a file, which has a communicator of its own
	KindGiveUp // not a collective: this rank can't take part in the one with this number
	KindEnded  // not a collective: this rank has ended
	kinds
)

var kindNames = [kinds]string{"Barrier", "Bcast", "Gather", "Scatter", "Allgather", "Alltoall", "Reduce", "Allreduce",
	"Reduce_scatter_block", "Scan", "Exscan", "Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Ibarrier",
	"Alltoallw", "Neighbor_allgather", "Neighbor_alltoall",
	"a call that makes or frees a communicator or a window", "no collective", "no collective any more"}

func (k Kind) String() string {
	if k >= kinds {
		return fmt.Sprintf("collective %d", uint8(k))
	}
	return kindNames[k]
}

// Rooted reports whether one rank of the collective is its root.
func (k Kind) Rooted() bool {
	switch k {
	case KindBcast, KindGather, KindScatter, KindReduce, KindGatherv, KindScatterv:
		return true
	}
	return false
}

// Call describes a rank's call by what has to be the same on all ranks.
type Call struct {
	Kind Kind
	Root int
	// Bytes is the amount of data to or from one rank; -1 where that may differ.
	Bytes int
	Elem  dtype.Kind
	Op    op.Op // reductions only
	// Nonblocking calls do not match blocking ones.
	Nonblocking bool
	// Objects is the name of a call of objects, or of a file, for errors; the other ranks know only that it is one, or of KindComm.
	Objects string
}

// heads is the Elem of a call of objects (objects.go), which matches no other one.
const heads dtype.Kind = 1<<elemBits - 1

// The bits that an Op and an Elem take.
const (
	opBits   = 4
	elemBits = 6
)

var _ [heads - dtype.Kinds]struct{} // it is no kind of elements

// name returns what the program has called.
func (c Call) name() string {
	switch {
	case c.Objects != "":
		return c.Objects
	case c.Elem == heads:
		return strings.ToLower(c.Kind.String())
	}
	return c.Kind.String()
}

// does says what a rank does, for an error message.
func (c Call) does(rank int, sides *Sides) string {
	if c.Kind == KindComm && c.Objects == "" {
		return "makes or frees a communicator or a window"
	}
	return "calls " + c.text(rank, sides)
}

// text describes the call of a rank, which is none that makes or frees a communicator or a window.
func (c Call) text(rank int, sides *Sides) string {
	if c.Kind == KindComm {
		return c.name()
	}
	if c.Elem == heads {
		s := c.name() + " of an object"
		if c.Kind.Rooted() {
			s += " with root " + sides.root(c.Root, rank)
		}
		return s
	}
	s := c.Kind.String()
	if c.Nonblocking && c.Kind != KindIbarrier {
		s = "I" + strings.ToLower(s)
	}
	if c.Bytes >= 0 && c.Kind != KindBarrier {
		s += fmt.Sprintf(" of %d bytes", c.Bytes)
	}
	if c.Elem != dtype.KindNone {
		s += " of " + c.Elem.String()
	}
	if c.Op != 0 {
		s += " with " + c.Op.String()
	}
	if c.Kind.Rooted() {
		s += " with root " + sides.root(c.Root, rank)
	}
	return s
}

// mismatch returns why mine and theirs, the call of rank, can't be the same
// collective; nil if they can.
func (mine Call) mismatch(theirs Call, rank int, sides *Sides) *errs.Error {
	class := errs.Class(0)
	switch {
	case theirs.Kind == KindGiveUp:
		return errs.New(errs.Other, "%s can't complete: %s has given it up (its own error says why)", mine.name(), sides.Name(rank))
	case theirs.Kind == KindEnded:
		return errs.New(errs.ProcFailed, "%s can't complete: %s has ended", mine.name(), sides.Name(rank))
	case mine.Kind == KindComm && theirs.Kind == KindComm:
		if mine.Bytes == theirs.Bytes && mine.Nonblocking == theirs.Nonblocking {
			return nil
		}
		return errs.New(errs.Other, "the ranks do not call the same collective: this rank and %s make or free communicators or windows by different calls",
			sides.Name(rank))
	case mine.Kind != theirs.Kind || mine.Nonblocking != theirs.Nonblocking:
		class = errs.Other
	case mine.Kind.Rooted() && mine.Root != theirs.Root:
		class = errs.Root
	case mine.Op != theirs.Op:
		class = errs.Op
	case mine.Bytes >= 0 && theirs.Bytes >= 0 && mine.Bytes != theirs.Bytes:
		class = errs.Truncate
	case !sameElements(mine, theirs):
		class = errs.Type
	default:
		return nil
	}
	theirDoing := theirs.does(rank, sides)
	if mine.Kind != KindComm {
		theirDoing = strings.TrimPrefix(theirDoing, "calls ")
	}
	return errs.New(class, "the ranks do not call the same collective: this rank %s, %s %s",
		mine.does(sides.own(), sides), sides.Name(rank), theirDoing)
}

// sameElements reports whether the element kinds match: exactly for reductions, else
// if they are compatible.
func sameElements(a, b Call) bool {
	if a.Op != 0 || a.Elem == heads || b.Elem == heads {
		return a.Elem == b.Elem
	}
	return dtype.Compatible(a.Elem, b.Elem)
}

// givenUp is what a rank publishes in place of its call, so that the others need not
// wait for its data.
var givenUp = Call{Kind: KindGiveUp, Bytes: -1}

// faulted returns the error of the rank whose own memory has faulted.
func (mine Call) faulted(fault error) *errs.Error {
	return errs.New(errs.Buffer, "%s: %v", mine.name(), fault)
}
