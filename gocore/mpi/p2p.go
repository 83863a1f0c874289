package mpi

import (
	"sync"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
)

// Kinds of point-to-point operations.
const (
	KindSend = iota
	KindSsend
	KindRecv
	KindBsend
	KindRsend
)

// tagUB is the largest tag (MPI_TAG_UB).
const tagUB = 1<<31 - 1

// prepare checks the arguments of a send or receive and fills in r.
func (r *Request) prepare(kind int, comm, addr, count, typ int64, peer, tag int) *errs.Error {
	c, e := getUsableComm(comm)
	if e != nil {
		return e
	}
	return r.prepareIn(c, kind, addr, count, typ, peer, tag)
}

// prepareIn is prepare in a communicator that is usable.
func (r *Request) prepareIn(c *Comm, kind int, addr, count, typ int64, peer, tag int) *errs.Error {
	b, e := buf(addr, count, typ)
	if e != nil {
		return e
	}
	r.recv = kind == KindRecv
	if e := c.checkPeer(r.recv, peer, tag); e != nil {
		return e
	}
	r.ch, r.buf, r.peer, r.tag, r.null = c.pt, b, peer, tag, peer == p2p.ProcNull
	switch kind {
	case KindSsend:
		r.mode = p2p.Synchronous
	case KindBsend:
		r.mode = p2p.Buffered
	}
	return nil
}

func (c *Comm) checkPeer(recv bool, peer, tag int) *errs.Error {
	low := 0
	if recv {
		low = p2p.AnySource
	}
	if peer != p2p.ProcNull && (peer < low || peer >= c.peers()) {
		what := "destination"
		if recv {
			what = "source"
		}
		return errs.New(errs.Rank, "the %s rank %d is not in the communicator: %s", what, peer, c.rankRange())
	}
	if tag < 0 && !(recv && tag == p2p.AnyTag) || tag > tagUB {
		if tag == p2p.AnyTag {
			return errs.New(errs.Tag, "a message can't be sent with ANY_TAG; choose a tag from 0 to %d", tagUB)
		}
		return errs.New(errs.Tag, "the tag %d is not between 0 and %d", tag, tagUB)
	}
	return nil
}

// P2P starts a send or receive; the request is RequestSent if it is a send that is complete already.
func P2P(kind int, comm, addr, count, typ int64, peer, tag int) (req int64, code Code) {
	defer Contain(&code)
	r := takeRequest()
	if e := r.prepare(kind, comm, addr, count, typ, peer, tag); e != nil {
		return 0, CodeOf(e)
	}
	r.launch()
	if !r.recv && !r.null && r.Done() && r.Request.Status().Err == nil {
		giveRequest(r)
		return RequestSent, 0
	}
	return reqs.add(r), 0
}

// P2PInit makes a persistent request.
func P2PInit(kind int, comm, addr, count, typ int64, peer, tag int) (req int64, code Code) {
	defer Contain(&code)
	r := &Request{persistent: true}
	r.inactive.Store(true)
	if e := r.prepare(kind, comm, addr, count, typ, peer, tag); e != nil {
		return 0, CodeOf(e)
	}
	return reqs.add(r), 0
}

// Blocking sends or receives, and waits until it has completed. If it is interrupted,
// the request continues under the handle in *pending, for Wait.
func Blocking(kind int, comm, addr, count, typ int64, peer, tag int, st *Status, pending *int64) (code Code) {
	defer Contain(&code)
	r := takeRequest()
	if e := r.prepare(kind, comm, addr, count, typ, peer, tag); e != nil {
		return CodeOf(e)
	}
	r.launch()
	return r.conclude(st, pending)
}

// conclude waits for a request without a handle, of a blocking call, and finishes it; see block.
func (r *Request) conclude(st *Status, pending *int64) (code Code) {
	if !r.advance() {
		if code = r.block(st, pending); code != 0 {
			return code
		}
	}
	code = r.finish(0, st)
	giveRequest(r)
	return code
}

// block waits for a request without a handle, of a blocking call. If it is interrupted, the request gets one, *pending. If it can't complete, the
// status says so.
func (r *Request) block(st *Status, pending *int64) Code {
	err := proc.eng.Wait(r.reason(0), r.advance, r.check)
	switch err {
	case nil:
		return 0
	case engine.ErrInterrupted:
		e := ready()
		if e == nil {
			r.blocking = true
			*pending = reqs.add(r)
			return Interrupted
		}
		err = e
	}
	return r.failWith(noneLeft(err), 0, st)
}

// SendNow is a blocking send that does not wait: if the message can't be sent at once,
// it returns Interrupted, and the caller waits for the request in *pending.
func SendNow(kind int, comm, addr, count, typ int64, peer, tag int, pending *int64) (code Code) {
	defer Contain(&code)
	r := takeRequest()
	if e := r.prepare(kind, comm, addr, count, typ, peer, tag); e != nil {
		return CodeOf(e)
	}
	r.launch()
	if !r.advance() {
		*pending = reqs.add(r)
		return Interrupted
	}
	code = r.finish(0, nil)
	giveRequest(r)
	return code
}

// Sendrecv sends and receives at once; like Blocking.
func Sendrecv(comm int64, s [5]int64, r [5]int64, st *Status, pending *int64) (code Code) {
	defer Contain(&code)
	j, e := launchJoined(comm, s, r)
	if e != nil {
		return CodeOf(e)
	}
	both := j.both
	both.op = j
	switch code = both.wait(0, st, 0); code {
	case 0:
		j.recv.clear()
		j.send.clear()
		both.clear()
		spareJoined.Put(j)
	case Interrupted:
		*pending = reqs.add(both)
	}
	return code
}

// SendrecvReplace sends what is at addr, and receives there; like Blocking. It is for short data: what can't be sent at once is copied.
func SendrecvReplace(comm, addr, count, typ int64, dest, sendtag, source, recvtag int, st *Status, pending *int64) (code Code) {
	defer Contain(&code)
	c, e := getUsableComm(comm)
	if e != nil {
		return CodeOf(e)
	}
	send, recv := takeRequest(), takeRequest()
	if e := recv.prepareIn(c, KindRecv, addr, count, typ, source, recvtag); e != nil {
		return CodeOf(e)
	}
	if e := send.prepareIn(c, KindBsend, addr, count, typ, dest, sendtag); e != nil {
		return CodeOf(e)
	}
	send.launch() // which completes it: the receive is posted only now, since its data goes where the sent data was
	if !send.null {
		if e := send.Request.Status().Err; e != nil {
			return CodeOf(e)
		}
	}
	giveRequest(send)
	recv.launch()
	return recv.conclude(st, pending)
}

// joined is a send and a receive as one operation, whose status is the receive's. If
// the send fails, the receive is given up: its message may depend on the one that was
// to be sent.
type joined struct {
	recv, send *Request
	both       *Request // that of this operation, in a blocking call
	gaveUp     bool
}

// spareJoined has those of blocking calls that are over, with their requests.
var spareJoined = sync.Pool{New: func() any { return &joined{recv: new(Request), send: new(Request), both: new(Request)} }}

func (j *joined) Advance() bool {
	if !j.gaveUp && j.send.op == nil && !j.send.null && j.send.Done() && j.send.Request.Status().Err != nil {
		j.gaveUp = true
		j.recv.abandon()
	}
	return j.gaveUp || j.recv.advance() && j.send.advance()
}

func (j *joined) Check() error {
	if !j.recv.advance() {
		return j.recv.check()
	}
	return j.send.check()
}

func (j *joined) Abandon() {
	j.recv.abandon()
	j.send.abandon()
}

func (j *joined) Err() *errs.Error {
	for _, r := range []*Request{j.recv, j.send} {
		if e := r.Request.Status().Err; !r.null && e != nil {
			return e
		}
	}
	return nil
}

func (j *joined) status() (st Status) {
	j.recv.outcome(&st)
	return st
}

func (j *joined) describe(why *engine.Reason) { *why = *j.recv.reason(0) }

// Isendrecv starts to send and to receive at once.
func Isendrecv(comm int64, s [5]int64, r [5]int64) (req int64, code Code) {
	defer Contain(&code)
	j, e := launchJoined(comm, s, r)
	if e != nil {
		return 0, CodeOf(e)
	}
	return reqs.add(&Request{op: j}), 0
}

// launchJoined starts both, or neither.
func launchJoined(comm int64, s [5]int64, r [5]int64) (*joined, *errs.Error) {
	c, e := getUsableComm(comm)
	if e != nil {
		return nil, e
	}
	j := spareJoined.Get().(*joined)
	if e := j.recv.prepareIn(c, KindRecv, r[0], r[1], r[2], int(r[3]), int(r[4])); e != nil {
		return nil, e
	}
	if e := j.send.prepareIn(c, KindSend, s[0], s[1], s[2], int(s[3]), int(s[4])); e != nil {
		return nil, e
	}
	j.recv.launch()
	j.send.launch()
	return j, nil
}

// probes are the waits of probes that were interrupted.
var probes = newTable[engine.Reason](1)

// Probe waits for a message without receiving it. After Interrupted the caller calls
// it again with the value of *wait, or ends the wait by EndProbe. If msg is not nil, Probe takes the message out of
// matching (Mprobe).
func Probe(comm int64, source, tag int, st *Status, msg, wait *int64) (code Code) {
	defer Contain(&code)
	c, e := probed(comm, source, tag)
	if e != nil {
		return CodeOf(e)
	}
	if source == p2p.ProcNull {
		return c.probeNull(st, msg)
	}
	return c.awaitMessage(job.CallProbe, aProbe, source, tag, wait, func() bool { return c.probe(source, tag, st, msg) },
		func() bool { return true })
}

// RecvObject waits for a message, like Probe. If it is eager, and no longer than room, RecvObject receives it at addr, and *msg is
// 0. Else it takes the message out of matching, as Probe does. Nothing is received at addr after it has returned.
//
// It posts a receive, which is withdrawn before signal handlers run: a message that comes meanwhile waits for the next one.
func RecvObject(comm int64, source, tag int, addr, room int64, st *Status, msg, wait *int64) (code Code) {
	defer Contain(&code)
	c, e := probed(comm, source, tag)
	if e != nil {
		return CodeOf(e)
	}
	if source == p2p.ProcNull {
		return c.probeNull(st, msg)
	}
	r := takeRequest()
	r.recv, r.ch, r.buf = true, c.pt, p2p.Buf{Addr: pointer(addr), Count: int(room), Type: byteType}
	c.pt.RecvWhole(&r.Request, r.buf, source, tag)
	if !r.Done() {
		if code = c.awaitWhole(r, source, tag, wait); code != 0 {
			return code
		}
	}
	*msg = 0
	if m := c.pt.Matched(&r.Request); m != nil {
		*st, *msg = statusOf(*r.Request.Status()), msgs.add(m)
	} else {
		code = r.finish(0, st)
	}
	giveRequest(r)
	return code
}

// awaitWhole waits for the message of a RecvWhole. If it returns an error, none has been matched, and r is not posted.
func (c *Comm) awaitWhole(r *Request, source, tag int, wait *int64) Code {
	defer c.pt.Withdraw(&r.Request) // after a panic
	return c.awaitMessage(job.CallRecvObject, "receive of an object", source, tag, wait, r.Done, func() bool {
		return c.pt.Withdraw(&r.Request)
	})
}

// SendrecvObject is SendNow, and then RecvObject. If the message can't be sent at once, *sending is the request of its send, which the
// caller waits for after the receive, also if that has failed.
func SendrecvObject(comm, from, n, typ int64, dest, sendtag, source, tag int, addr, room int64, st *Status, msg, wait, sending *int64) (code Code) {
	defer Contain(&code)
	if _, e := probed(comm, source, tag); e != nil {
		return CodeOf(e)
	}
	if code = SendNow(KindSend, comm, from, n, typ, dest, sendtag, sending); code != 0 && code != Interrupted {
		return code
	}
	return RecvObject(comm, source, tag, addr, room, st, msg, wait)
}

// EndProbe ends the wait of a probe that was interrupted, and is not called again.
func EndProbe(wait int64) {
	var code Code
	defer Contain(&code)
	probes.take(wait)
}

// probed returns the communicator of a probe, whose arguments it checks.
func probed(comm int64, source, tag int) (*Comm, *errs.Error) {
	c, e := getUsableComm(comm)
	if e == nil {
		e = c.checkPeer(true, source, tag)
	}
	return c, e
}

// aProbe is what errors call a probe.
const aProbe = "probe for a message"

// awaitMessage waits until a message has been found. If the wait ends otherwise, giveUp reports whether there is still none.
// what: see CheckProbe.
func (c *Comm) awaitMessage(call job.Call, what string, source, tag int, wait *int64, found, giveUp func() bool) Code {
	why := engine.Reason{Call: call, Peer: -1, Tag: tag, Ctx: uint64(c.pt.Ctx)}
	if begun := probes.take(*wait); begun != nil {
		why = *begun
	} else if source >= 0 {
		why.Peer = c.pt.World[source]
	}
	err := proc.eng.Wait(&why, found, func() error { return c.pt.CheckProbe(what, source, tag) })
	if err == nil || !giveUp() {
		return 0
	}
	if err != engine.ErrInterrupted {
		return codeOfErr(err)
	}
	code := interrupted()
	if code == Interrupted {
		kept := why
		*wait = probes.add(&kept)
	}
	return code
}

// Iprobe is Probe without waiting.
func Iprobe(comm int64, source, tag int, st *Status, msg *int64) (found bool, code Code) {
	defer Contain(&code)
	c, e := probed(comm, source, tag)
	if e != nil {
		return false, CodeOf(e)
	}
	if source == p2p.ProcNull {
		return true, c.probeNull(st, msg)
	}
	if c.probe(source, tag, st, msg) {
		return true, 0
	}
	proc.eng.Progress()
	if c.probe(source, tag, st, msg) {
		return true, 0
	}
	if c.pt.Revoked() != nil || c.failed(source) { // others that have ended send nothing more, which is no error
		return false, codeOfErr(c.pt.CheckProbe(aProbe, source, tag))
	}
	proc.eng.GiveWay()
	return false, 0
}

// failed reports whether the source of a receive has failed, or, of one from any source, a process that is not acknowledged.
func (c *Comm) failed(source int) bool {
	if source >= 0 {
		return proc.eng.Failed(c.pt.World[source])
	}
	return c.pt.Unacknowledged() >= 0
}

// MessageNoProc is the handle of the message from PROC_NULL.
const MessageNoProc = -1

func (c *Comm) probeNull(st *Status, msg *int64) Code {
	if st != nil {
		*st = Status{Source: p2p.ProcNull, Tag: p2p.AnyTag}
	}
	if msg != nil {
		*msg = MessageNoProc
	}
	return 0
}

func (c *Comm) probe(source, tag int, st *Status, msg *int64) bool {
	var s p2p.Status
	var ok bool
	if msg != nil {
		var m *p2p.Matched
		if m, s, ok = c.pt.MatchedProbe(source, tag); ok {
			*msg = msgs.add(m)
		}
	} else {
		s, ok = c.pt.Probe(source, tag)
	}
	if ok && st != nil {
		*st = statusOf(s)
	}
	return ok
}

func statusOf(s p2p.Status) Status {
	return Status{Source: int32(s.Source), Tag: int32(s.Tag), Bytes: int64(s.Bytes)}
}

// Mrecv starts the receive of a matched message.
func Mrecv(msg, addr, count, typ int64) (req int64, code Code) {
	defer Contain(&code)
	if msg == MessageNoProc {
		return reqs.add(&Request{null: true}), 0
	}
	b, e := buf(addr, count, typ)
	if e != nil {
		return 0, CodeOf(e)
	}
	m := msgs.take(msg)
	if m == nil {
		return 0, CodeOf(noMessage())
	}
	r := &Request{buf: b, recv: true, ch: m.Channel()}
	m.Recv(&r.Request, b)
	return reqs.add(r), 0
}

func noMessage() *errs.Error {
	return errs.New(errs.Request, "the message is MESSAGE_NULL or has been received")
}

// BlockingMrecv receives a matched message that is not from PROC_NULL, and waits until that has completed; see Blocking. *there reports
// whether the message is still there, because the call has refused its arguments.
func BlockingMrecv(msg, addr, count, typ int64, st *Status, pending *int64, there *bool) (code Code) {
	defer Contain(&code)
	b, e := buf(addr, count, typ)
	if e != nil {
		*there = true
		return CodeOf(e)
	}
	m := msgs.take(msg)
	if m == nil {
		return CodeOf(noMessage())
	}
	r := takeRequest()
	r.buf, r.recv, r.ch = b, true, m.Channel()
	m.Recv(&r.Request, b)
	return r.conclude(st, pending)
}
