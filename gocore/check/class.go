package check

// Class is a class of findings.
type Class int

// The classes. gormapy/check/kinds.py has the same numbers.
const (
	OriginReuse Class = iota + 1
	ResultEarly
	AccumulateMix
	SameOriginOrder
	FlushMissing
	TargetConflict
	WinsyncMissing
	SharedAccess
	LocalAccess
	EpochMissing
	EpochOpen
	EpochNested
	EpochUnopened
	WrongAssert
	BadArgument
	CollectiveMismatch
	RequestLost
	MemoryGone
)

// about is what a report says of a class.
type about struct {
	name    string
	why     string // for races, a sentence about both accesses; a misuse has its own
	fix     string
	section string // of MPI 4.1
}

var classes = map[Class]about{
	OriginReuse: {"origin-reuse", "The buffer is changed while an operation may still read it.",
		"Complete the operation first: Flush_local, Flush, Unlock or Fence, or Wait for its request; or use another buffer.", "12.3"},
	ResultEarly: {"result-early", "The buffer is used while an operation may still fill it.",
		"Complete the operation first: Flush_local, Flush, Unlock or Fence, or Wait for its request.", "12.3"},
	AccumulateMix: {"accumulate-mix", "The two updates are not atomic to each other.",
		"Use the same datatype and the same operation (or NO_OP) on the same elements, or order the two and complete the first.", "12.7.1"},
	SameOriginOrder: {"same-origin-order", "Operations of one rank on the same bytes have no order, unless both are accumulates.",
		"Flush the target between the two.", "12.7.2"},
	FlushMissing: {"flush-missing", "The second comes after the first was called, but the first may not be complete at the target.",
		"Call Flush or Unlock for the target after the first, before the ranks synchronize.", "12.5.4"},
	TargetConflict: {"target-conflict", "Two ranks access the same bytes without an order, and one of them changes the bytes.",
		"Order the two (a Fence, an exclusive lock, or Flush and then a message or Barrier), or use Accumulate for both.", "12.7"},
	WinsyncMissing: {"winsync-missing", "The ranks are in order, but their views of the shared memory are not: memory is not synchronized by a message.",
		"Call Sync on the window after the first and before the second access: win.Sync(), Barrier(), win.Sync().", "12.7"},
	SharedAccess: {"shared-access", "Two ranks access the same bytes of a shared window without an order, and one of them changes the bytes.",
		"Order the two: win.Sync(), Barrier(), win.Sync() between them.", "12.7"},
	LocalAccess: {"local-access", "The rank uses bytes of its window that another rank's operation accesses, without an order.",
		"Order the two: a Fence, Post and Wait, or Flush and then a message or Barrier.", "12.7"},
	EpochMissing:       {"epoch-missing", "", "Open an epoch before: Fence on all ranks, or Lock, Lock_all or Start.", "12.5"},
	EpochOpen:          {"epoch-open", "", "Close the epoch first: Fence, Unlock, Unlock_all, Complete or Wait.", "12.5"},
	EpochNested:        {"epoch-nested", "", "Close the epoch that is open before another is opened.", "12.5"},
	EpochUnopened:      {"epoch-unopened", "", "Open the epoch before it is closed, on the same window and rank.", "12.5"},
	WrongAssert:        {"wrong-assert", "", "Leave the assertion out; 0 is always right.", "12.5.5"},
	BadArgument:        {"bad-argument", "", "Pass what the call expects.", "12.3"},
	CollectiveMismatch: {"collective-mismatch", "", "Have all ranks of the communicator make the same collective calls in the same order, with the same root.", "6.14"},
	RequestLost:        {"request-lost", "", "Complete each request by Wait or Test.", "12.3.5"},
	MemoryGone:         {"memory-gone", "", "Keep the memory until every rank has completed its operations on it.", "12.2.4"},
}

func (c Class) String() string { return classes[c].name }

// Race reports whether findings of the class are about two accesses.
func (c Class) Race() bool { return c <= LocalAccess }

// unordered reports whether neither access of two ranks is known to be the first one.
func (c Class) unordered() bool { return c.Race() && c != FlushMissing && c != WinsyncMissing }
