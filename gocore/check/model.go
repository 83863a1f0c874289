package check

import (
	"cmp"
	"fmt"

	"gormapy/gocore/check/events"
)

// rank is what is known of one rank.
type rank struct {
	number    int
	threads   map[uint32]*thread
	over      []*thread // that have ended, and have no successor
	past      clock     // what threads that have ended knew
	sites     map[uint32]*site
	comms     map[int64]*comm
	windows   map[int64]*window
	types     map[int64]*shape
	ops       map[int64]*operation // whose requests or values are awaited, by their number
	colls     map[int64]*collective
	syncSends map[int64]*rank // receivers of synchronous sends, by the number of the request
	receiving clock           // what its threads knew when they began to receive
	defined   map[string]int  // how many windows of an identity it has made
	keys      map[int64]clock
	memory    space
	unsettled []*Finding // of the operation that it has just begun, and which may yet fail
	mapped    []mapping  // parts of shared windows that other ranks own
	resets    int        // how many collective resets it has left
	ended     bool
}

// thread is one thread of a rank. Its own step grows with each of its events.
type thread struct {
	*rank
	index  int
	clock  clock
	exempt bool
	over   bool        // it has ended
	inside *collective // the blocking collective call that it is in
}

func (t *thread) now() at { return at{t.index, t.clock[t.index]} }

// site is a line of the program that makes a call.
type site struct {
	line                                                         int
	file, call, text, function, winName, origin, result, compare string
}

// variable returns the name of the variable that an operation uses in a role.
func (s *site) variable(r role) string {
	switch r {
	case reads:
		return s.origin
	case fills:
		return cmp.Or(s.result, s.origin) // a Get has one buffer
	case compares:
		return s.compare
	case local:
		return s.origin
	case far:
		return s.winName
	}
	return ""
}

type comm struct {
	key   string
	ranks []int
	calls map[int]int // how many collective calls each rank has begun
	open  map[int]*collective
}

// collective is one collective call of all ranks of a communicator.
type collective struct {
	comm     *comm
	name     string
	root     int
	begun    map[int]clock   // by rank
	sources  map[int][]int64 // by rank: of neighbourhood calls, whose data it gets
	asserted map[int]int64   // of a Fence
	sites    map[int]*site
	calls    map[int]called // by rank
	first    int
	standing int  // a rank whose call can't be refused any more; -1 if there is none
	told     bool // that the calls differ
	left     int  // how many ranks have not completed it
}

// called is what a rank has called where others have called the same, or something else.
type called struct {
	name string
	root int
}

func (c called) String() string {
	if c.root < 0 {
		return c.name
	}
	return fmt.Sprintf("%s with root %d", c.name, c.root)
}

// window is a window of all its ranks.
type window struct {
	key     string
	name    string
	flavor  int64
	comm    *comm
	parts   map[int]*part // by rank
	locks   map[int]*lock // by target
	fences  map[int]int
	barrier map[int]*collective // fences in progress, by how many there were
	atomics map[place]*element
	notes   map[[2]int64]clock // what those know who have notified a target, by target and slot
}

// part is one rank's part of a window, and the state of its epochs.
type part struct {
	base, bytes, unit int64
	pending           []*operation
	epochs            map[int]epoch // by target, everyTarget for Lock_all, Start and Fence
	syncs             []synced
	assertion         int64 // of the last Fence
	fenceSite         *site
	posted            *exposure
	exposed           map[int][]*exposure // by target: Posts that this rank's Start has not met
	attached          map[int64]int64
	wait              *site // the call in which it waits
	freed             bool
	freedAt           *site
	made              *site // that has made the window
	stored            *site // the last store of the rank since it synchronized
	detached          *site
}

// freedPart is a part of a window that has been freed; its memory stays as long as the checker looks.
type freedPart struct {
	*part
	rank int
	win  *window
}

const everyTarget = -1

type epoch struct {
	kind  string
	site  *site
	fence *collective       // that has begun it
	met   map[int]*exposure // of Start: the Posts, by target
	late  []*access         // that wait for a Post
	group []int
}

// exposure is an epoch from Post to Wait.
type exposure struct {
	target    int
	known     clock
	site      *site
	origins   []int
	completed clock
	ops       []*operation
	nocheck   bool
	noput     *site
	posted    at
}

// lock is the lock of one target.
type lock struct {
	exclusive, shared clock          // what those who held it make known
	held              map[int]holder // by rank
}

type holder struct {
	exclusive, checked bool
	site               *site
}

type synced struct {
	at    at
	known clock
}

// operation is one call of Put, Get, …
type operation struct {
	events.Operation
	by            *thread
	began         at
	site          *site
	win           *window
	target        int
	local, remote points // where it was complete: its buffers, and at its target
	epoch         epoch
	failed        bool
	requested     bool // its request has not been completed
	accesses      []*access
	element       *element
	known         clock // what its thread knew when it began, for those who read its value
	value         int64
	valued        bool
}

// role is what an access is to its operation.
type role int

const (
	local    role = iota // a load or store
	reads                // of its origin buffer
	compares             // of the buffer to compare with
	fills                // its result buffer
	far                  // the target
)

// access is one access to the memory of a rank.
type access struct {
	by     *thread
	at     at
	known  clock // of a late access: what its thread knew
	op     *operation
	role   role
	writes bool
	owner  *rank // whose memory it is
	win    *window
	runs   runs
	site   *site
	basic  int64 // of an accumulate
	size   int64
	accOp  int64
	atomic bool
}

// points are the steps at which an operation was complete: several threads may have completed it, each for itself.
type points []at

// add adds a step, unless the thread has one already.
func (p *points) add(s at) {
	for _, other := range *p {
		if other.thread == s.thread {
			return
		}
	}
	*p = append(*p, s)
}

// done returns where the access was complete.
func (a *access) done() points {
	switch a.role {
	case local:
		return points{a.at}
	case far:
		return a.op.remote
	}
	return a.op.local
}

// before reports whether the access was complete before what knows c.
func (a *access) before(c clock) bool {
	if a.op == nil {
		return c.has(a.at)
	}
	for _, s := range a.done() {
		if c.has(s) {
			return true
		}
	}
	return false
}

// call returns what a report names the access.
func (a *access) call() string {
	switch {
	case a.op != nil:
		return a.op.site.call
	case a.writes:
		return "store"
	}
	return "load"
}
