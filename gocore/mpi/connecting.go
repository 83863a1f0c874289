package mpi

import (
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"gormapy/gocore/coll"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
)

// Accept, Connect, Join and Spawn: the roots of two groups meet over a socket (see talk), and both groups make an
// intercommunicator. Its context is that of the group that comes first in the union.

// connecting is such a call as an operation.
type connecting struct {
	c    *Comm
	root int
	call string

	mu     sync.Mutex
	stage  stage
	seq    *sequence // of the stages telling and ending
	talk   *talk     // of the root
	heard  chan heard
	words  []int64     // identities of the other group, behind its context
	failed *errs.Error // of this rank
	made   int64
	err    *errs.Error
	after  func() // called at the end

	notice [2]int64 // of the root: the class of its error, how many words
	own    [1]int64 // the class of this rank's error
	all    []int64  // those of all ranks
	final  [1]int64 // the class of an error of the other group
}

// stage is how far connecting has come.
type stage int

const (
	meetingRoots stage = iota // the root waits for the card of the other group
	telling                   // its group gets it, connects, and tells the root how that went
	confirming                // the roots tell each other
	ending                    // its group gets that
	connectingOver
)

// heard is what the root has heard of the other one.
type heard struct {
	frame []byte
	err   *errs.Error
}

// newConnecting makes the operation. begin, at the root, connects the talk.
func newConnecting(call string, c *Comm, root int, begin func(t *talk) *errs.Error) *connecting {
	o := &connecting{c: c, root: root, call: call, stage: telling}
	if c.rank == root {
		o.stage, o.talk = meetingRoots, &talk{}
		card := append([]int64{newSpanningCtx().word()}, identities(c.group.ranks)...)
		o.words = card
		o.hear(func() ([]byte, *errs.Error) {
			for {
				if e := begin(o.talk); e != nil {
					return nil, e
				}
				frame, e := o.talk.exchange(nil, wordsToBytes(card))
				if e != nil && e.Class == errs.ProcFailed && call == "Accept" && !o.talk.givenUp() {
					continue // a client that has given up before it was accepted
				}
				return frame, e
			}
		})
	}
	return o
}

// hear has a goroutine talk to the other root.
func (o *connecting) hear(talk func() ([]byte, *errs.Error)) {
	o.heard = make(chan heard, 1)
	go func(to chan heard) {
		var h heard
		var code Code
		func() {
			defer Contain(&code)
			h.frame, h.err = talk()
		}()
		if code != 0 {
			h.err = errs.New(errs.Intern, "%s", ErrorText(code))
		}
		to <- h
		proc.me.Ring()
	}(o.heard)
}

// Advance implements operation.
func (o *connecting) Advance() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		switch o.stage {
		case meetingRoots, confirming:
			select {
			case h := <-o.heard:
				if o.stage == meetingRoots {
					o.meet(h)
				} else {
					o.confirm(h)
				}
			default:
				return false
			}
		case telling, ending:
			if o.seq == nil {
				o.seq = o.sequence()
			}
			if !o.seq.Advance() {
				return false
			}
			e := o.seq.Err()
			o.seq = nil
			o.next(e)
		case connectingOver:
			return true
		}
	}
}

// meet takes the card of the other group, at the root.
func (o *connecting) meet(h heard) {
	mine := o.words
	o.words, o.failed = bytesToWords(h.frame), h.err
	if n := len(o.words); o.failed == nil && (n < 1+identityWords || (n-1)%identityWords != 0) {
		o.failed = errs.New(errs.Other, "%s: what connects is no process of this version of gormapy", o.call)
	}
	if o.failed == nil && precedes(mine[1:], o.words[1:]) {
		o.words[0] = mine[0]
	}
	o.notice = [2]int64{0, int64(len(o.words))}
	if o.failed != nil {
		o.notice[0] = int64(o.failed.Class)
	}
	o.stage = telling
}

// sequence returns the collective part of a stage.
func (o *connecting) sequence() *sequence {
	if o.stage == ending {
		return newSequence(o.c, func(s *sequence, k int) round { return o.bcast(k, bytesOf(o.final[:])) })
	}
	return newSequence(o.c, func(s *sequence, k int) round {
		switch {
		case k == 0:
			return o.bcast(0, bytesOf(o.notice[:]))
		case k == 1 && o.notice[0] == 0:
			if o.c.rank != o.root {
				o.words = make([]int64, o.notice[1])
			}
			return o.bcast(0, bytesOf(o.words))
		case k == 2:
			o.join()
			o.all = make([]int64, o.c.size)
			b := bytesOf(o.own[:])
			o.c.coll.Calling(madeByMessages)
			return o.c.coll.Allgather(&b, coll.Uniform(bytesOf(o.all[:1]), o.c.size))
		}
		return nil
	})
}

// bcast returns a broadcast of the root's, as the only step of a sequence.
func (o *connecting) bcast(k int, b p2p.Buf) round {
	if k > 0 {
		return nil
	}
	o.c.coll.Calling(madeByMessages)
	return o.c.coll.Bcast(b, o.root)
}

// join makes the intercommunicator on this rank.
func (o *connecting) join() {
	if o.made, o.failed = o.c.joinGroups(o.call, o.words[0], 0, o.words[1:]); o.failed != nil {
		o.own[0] = int64(o.failed.Class)
	}
}

// next follows a stage in which the group has talked. e is the error of that.
func (o *connecting) next(e *errs.Error) {
	switch {
	case e != nil:
		o.end(e)
	case o.stage == ending && o.final[0] == 0:
		o.end(nil)
	case o.stage == ending:
		o.end(o.because(o.final[0]))
	case o.notice[0] != 0:
		o.end(o.because(o.notice[0]))
	case o.c.rank != o.root:
		o.stage = ending
	default:
		o.stage = confirming
		for r, class := range o.all {
			if class != 0 && o.failed == nil {
				o.failed = errs.New(errs.Class(class), "%s can't complete: rank %d could not connect to the other group (its own error says why)", o.call, r)
			}
		}
		failed := o.failed
		o.hear(func() ([]byte, *errs.Error) { return o.talk.exchange(failed, nil) })
	}
}

// confirm takes what the other root says of its group, at the root.
func (o *connecting) confirm(h heard) {
	if h.err != nil {
		o.failed, o.final[0] = h.err, int64(h.err.Class)
	}
	o.stage = ending
}

// because returns the error of this rank, or one that says that another one has one.
func (o *connecting) because(class int64) *errs.Error {
	if o.failed != nil {
		return o.failed
	}
	return errs.New(errs.Class(class), "%s can't complete: rank %d of the communicator, the root, could not connect to the other group (its own error says why)", o.call, o.root)
}

// end ends the operation.
func (o *connecting) end(e *errs.Error) {
	if o.stage, o.err = connectingOver, e; e != nil && o.made != 0 {
		comms.take(o.made).close()
		o.made = 0
	}
	if o.talk != nil {
		o.talk.giveUp()
	}
	if o.after != nil {
		o.after()
	}
}

// Check implements operation. A root that waits for the other one does so in vain if the communicator is revoked.
func (o *connecting) Check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seq != nil {
		return o.seq.Check()
	}
	if e := o.c.usable(); e != nil && o.stage != connectingOver {
		return e
	}
	return nil
}

// Abandon implements operation. The other group learns it.
func (o *connecting) Abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seq != nil {
		o.seq.Abandon()
	}
	if o.stage != connectingOver {
		o.end(errGivenUp(o.call))
	}
}

// Err implements operation.
func (o *connecting) Err() *errs.Error { return o.err }
func (o *connecting) handle() int64    { return o.made }

func (o *connecting) describe(why *engine.Reason) {
	why.Call, why.Peer, why.Info = job.CallCommCreate, -2, o.call
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seq != nil {
		o.seq.describe(why)
	}
}

// connect begins a call of Accept's kind. begin is for the root.
func connect(call string, h int64, root int, begin func(t *talk) *errs.Error) (req int64, code Code) {
	c, e := getIntracomm(h, call)
	switch {
	case e != nil:
		return 0, CodeOf(e)
	case root < 0 || root >= c.size:
		return 0, classError(errs.Root, "%s: the root %d is not in the communicator: %s", call, root, c.rankRange())
	case proc.seg.Nodes() > 1 || proc.eng.NetOnly():
		return 0, CodeOf(proc.unconnectable(call))
	}
	return reqs.add(&Request{op: newConnecting(call, c, root, begin)}), 0
}

// CommAccept begins to accept the connection of another group at a port of the root.
func CommAccept(h int64, root int, port string) (req int64, code Code) {
	defer Contain(&code)
	return connect("Accept", h, root, func(t *talk) *errs.Error { return t.accept(port) })
}

// CommConnect begins to connect to a group that accepts at a port.
func CommConnect(h int64, root int, port string) (req int64, code Code) {
	defer Contain(&code)
	return connect("Connect", h, root, func(t *talk) *errs.Error { return t.connect(port) })
}

// CommJoin begins to connect this process and the one at the other end of a socket.
func CommJoin(fd int) (req int64, code Code) {
	defer Contain(&code)
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0, classError(errs.Arg, "Join: descriptor %d can't be used: %v", fd, err)
	}
	flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	f := os.NewFile(uintptr(own), "socket")
	conn, err := net.FileConn(f) // of another descriptor
	f.Close()
	if err != nil {
		return 0, classError(errs.Arg, "Join: descriptor %d is no connected socket: %v", fd, err)
	}
	req, code = connect("Join", CommSelf, 0, func(t *talk) *errs.Error {
		if !t.use(conn) {
			return errGivenUp("Join")
		}
		return nil
	})
	if code == 0 { // net has made the socket non-blocking, for the program, too
		reqs.get(req).op.(*connecting).after = func() { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags) }
	}
	return req, code
}
