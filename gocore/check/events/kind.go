package events

// Kind is the kind of an event. The comments name its words; a communicator or window is the handle that its rank has for
// it, a rank a rank of COMM_WORLD, unless another is said. gormapy/check/kinds.py has the same numbers.
type Kind uint16

const (
	None      Kind = iota
	Begin          // the rank joins: its rank, the number of ranks
	DefSite        // a line of the program that makes a call: number, line; text: fields of Site, a zero byte between them
	DefComm        // handle, context, ranks of the group (or of both groups)
	DefWin         // handle, identity, flavor, base, bytes, displacement unit, communicator; text: its name
	DefType        // number, extent, basic type and its size, then offset and length of each run of bytes
	DefShared      // window, rank whose part it is, address here, bytes
	Op             // see Operation
	OpValue        // number of an operation, the old value it has fetched, 0 if it was a swap that changed nothing
	OpFailed       // number of an operation that has raised an error: it has not happened
	Sync           // window, SyncKind, phase (0 begins, 1 has ended, 2 has failed), target or -1, assertion or lock type, ranks of a group
	Sent           // number of the message, receiver
	Received       // number of the message, sender, 1 if the thread knows of the message and has not received it
	Coll           // communicator, request or 0, phase (see collective.go), root or -1, then ranks whose data come, if not all; text: name of the call
	ReqDone        // number of a request that has completed, of an operation or a collective
	Release        // key: what the thread has done is visible to the thread that acquires the key later
	Acquire        // key
	Access         // 1 for a store, address, count, bytes, stride of the runs
	Misuse         // Class, window or 0, target or -1; text: message
	End            // the process ends; text: how
	Mark           // number: what came before has been looked at when the mark is answered
	Exempt         // 1: what the thread does from here on is not checked, 0: it is
	Attach         // window, address, bytes, 1 attached or 0 detached
	Gone           // address, bytes of memory that the program has freed or moved; without a site: nobody uses it any more, or, with a third word, no complete operation of this rank
	Done           // number of an operation that is complete, here and at its target
	Notify         // window, target, slot: the target is notified
	Notified       // window, slot: this rank has waited for notifications
	Receiving      // the thread begins to receive a message
	SyncSent       // receiver, request or 0: a synchronous send is over, or will be with its request
	Limit          // how many loads and stores the rank has told of: it tells of no more
	ThreadEnd      // the thread ends
	Reset          // the rank has left the collective reset of communication
	Unseen         // the rank's loads and stores of the memory that a call uses are not seen; without a site: none are
)

// SyncKind is a call that synchronizes on a window.
type SyncKind int64

const (
	Fence SyncKind = iota
	Lock
	Unlock
	LockAll
	UnlockAll
	Flush
	FlushLocal
	Post
	Start_
	Complete
	Wait
	WinSync
	Free
)

// Operation has the words of an Op.
type Operation struct {
	Window, Kind, Number, Target         int64
	Disp, TargetType, TargetCount        int64 // Disp in the target's units
	Origin, OriginType, OriginCount      int64
	Result, ResultType, ResultCount      int64
	Compare, Op, Value, ValueKnown, Call int64 // Value: the origin's only element, if known; Call: 1 made a request, 2 an OpValue follows, 3 both
}

// The kinds of operations.
const (
	Put int64 = iota
	Get
	Accumulate
	GetAccumulate
	FetchAndOp
	CompareAndSwap
)
