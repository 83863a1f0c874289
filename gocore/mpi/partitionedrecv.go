package mpi

import (
	"sync"
	"unsafe"

	"gormapy/gocore/check/events"
	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/job"
	"gormapy/gocore/p2p"
	"gormapy/gocore/sys"
)

// partitionedRecv is the operation of a partitioned receive. The protocol is in partitioned.go.
type partitionedRecv struct {
	ch          *p2p.Channel
	source, tag int
	buf         p2p.Buf // of all partitions
	n           int     // partitions

	mu       sync.Mutex
	offer    offer
	offering p2p.Request
	known    bool        // the offer has arrived
	useless  *errs.Error // why no start can succeed

	parts   []receivedPartition // of the sender
	gen     uint32              // the generation of this start
	posted  bool                // the receives of this start
	arrived int                 // the parts before this one have arrived
	err     *errs.Error
}

// receivedPartition is a partition of the sender.
type receivedPartition struct {
	p2p.Request
	buf p2p.Buf // where it is received

	// If it begins or ends within an item of the receiver it is received in staged, and
	// then unpacked from offset at of the packed data on.
	staged []byte
	at     int
	stored bool
}

// PrecvInit makes a partitioned receive: partitions of count items each.
func PrecvInit(comm, addr, partitions, count, typ int64, source, tag int) (req int64, code Code) {
	defer Contain(&code)
	c, b, e := partitionedArgs(true, comm, addr, partitions, count, typ, source, tag)
	if e != nil {
		return 0, CodeOf(e)
	}
	p := &partitionedRecv{source: source, tag: tag, buf: b, n: int(partitions)}
	r := &Request{op: p, persistent: true, null: source == p2p.ProcNull}
	r.inactive.Store(true)
	if !r.null {
		p.ch = c.partitionChannel()
		p.ch.Recv(&p.offering, p.offer.buf(), source, tag)
		r.start = func() (operation, Code) { p.begin(); return p, 0 }
	}
	return reqs.add(r), 0
}

// begin posts the receives, or leaves that to the first poll after the offer has come.
func (p *partitionedRecv) begin() {
	p.mu.Lock()
	p.gen, p.posted, p.arrived, p.err = p.ch.Generation(), false, 0, nil
	for i := range p.parts {
		p.parts[i].stored = false
	}
	posted := p.post()
	p.mu.Unlock()
	if !posted {
		proc.eng.AddBackground(partitionedPosting{p})
	}
}

// partitionedPosting is complete when the receives are posted.
type partitionedPosting struct{ p *partitionedRecv }

// Advance implements engine.Background.
func (b partitionedPosting) Advance() bool {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	return b.p.post()
}

// post posts the receives of this start, and reports whether that is done. The caller holds mu.
func (p *partitionedRecv) post() bool {
	if p.posted {
		return true
	}
	if p.err = p.ch.Dropped(p.gen); p.err != nil {
		p.giveUp()
		return true
	}
	if !p.known {
		if !p.offering.Done() {
			return false
		}
		p.learn()
	}
	p.posted = true
	for i := range p.parts {
		part := &p.parts[i]
		p.ch.Recv(&part.Request, part.buf, p.source, int(p.offer.tag)-i)
	}
	return true
}

// learn takes the offer of the sender. The caller holds mu.
func (p *partitionedRecv) learn() {
	p.known = true
	if p.useless = p.offering.Status().Err; p.useless != nil {
		return
	}
	o, total := &p.offer, p.buf.Bytes()
	if o.partitions < 0 || o.partitions > mostPartitions {
		p.useless = errs.New(errs.Arg, "partitioned receive from rank %d with tag %d: the send has %d partitions; a request can have 0 to %d",
			p.source, p.tag, o.partitions, mostPartitions)
		return
	}
	if sent := o.partitions * o.bytes; sent != int64(total) {
		class := errs.Count
		if sent > int64(total) {
			class = errs.Truncate
		}
		mine := 0
		if p.n > 0 {
			mine = total / p.n
		}
		p.useless = errs.New(class, "partitioned receive from rank %d with tag %d: the receive has %d partitions of %d bytes, the send %d of %d bytes: both must have the same number of bytes in all (what fits was received)",
			p.source, p.tag, p.n, mine, o.partitions, o.bytes)
	}
	// All are received in any case, so that the sender does not wait for ever.
	p.parts = make([]receivedPartition, o.partitions)
	size, bytes := p.buf.Type.Size(), int(o.bytes)
	for i := range p.parts {
		part := &p.parts[i]
		start := min(i*bytes, total)
		end := min(start+bytes, total)
		switch {
		case start == end:
			part.buf = rawBytes(nil, 0)
		case start%size == 0 && end%size == 0:
			part.buf = itemsOf(p.buf, start/size, (end-start)/size)
		default:
			part.staged, part.at = make([]byte, end-start), start
			part.buf = rawBytes(unsafe.Pointer(&part.staged[0]), end-start)
		}
	}
}

// done reports whether partition i of the sender has arrived, and stores it. The caller holds mu.
func (p *partitionedRecv) done(i int) bool {
	part := &p.parts[i]
	if !part.Done() {
		return false
	}
	if part.stored {
		return true
	}
	part.stored = true
	e := part.Status().Err
	if e == nil && part.staged != nil {
		if err := sys.Touch(func() { p.buf.Type.UnpackAt(p.buf.Addr, part.staged, p.buf.Count, part.at) }); err != nil {
			e = errs.New(errs.Buffer, "partitioned receive from rank %d with tag %d: %v", p.source, p.tag, err)
		}
	}
	if p.err == nil {
		p.err = e
	}
	return true
}

func (p *partitionedRecv) Advance() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.advance()
}

// advance is Advance for a caller that holds mu.
func (p *partitionedRecv) advance() bool {
	if !p.post() {
		return false
	}
	for p.arrived < len(p.parts) && p.done(p.arrived) {
		p.arrived++
	}
	return p.arrived == len(p.parts)
}

// tell tells a checker which partitions have arrived; over: all have, and that is not told again.
func (p *partitionedRecv) tell(checked *events.Stream, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.parts {
		if p.parts[i].Done() {
			tellReceived(checked, &p.parts[i].Request, over)
		}
	}
}

// overlapped returns which partitions of the sender partition i overlaps: from first to before end.
// Both sides have the same number of bytes in all; if that is 0, this is by the numbers of
// partitions, likewise.
func (p *partitionedRecv) overlapped(i int) (first, end int) {
	s := len(p.parts)
	return i * s / p.n, ((i+1)*s + p.n - 1) / p.n
}

// Parrived returns 1 if partition i of a partitioned receive has arrived, or if the request
// is not active, else 0.
func Parrived(req int64, i int) (arrived int, code Code) {
	defer Contain(&code)
	if e := ready(); e != nil {
		return 0, CodeOf(e)
	}
	r, e := getRequest(req)
	if e != nil {
		return 0, CodeOf(e)
	}
	p, ok := r.op.(*partitionedRecv)
	switch {
	case !ok:
		return 0, classError(errs.Request, "Parrived of a request that is not a partitioned receive: Precv_init makes one")
	case i < 0 || i >= p.n:
		return 0, classError(errs.Arg, "Parrived: there is no partition %d: the request has %d, numbered from 0", i, p.n)
	case r.null || r.inactive.Load() || p.has(i):
		return 1, 0
	}
	proc.eng.Progress()
	if p.has(i) {
		return 1, 0
	}
	if err := p.Check(); err != nil {
		return 0, codeOfErr(err)
	}
	return 0, 0
}

// has reports whether partition i has arrived.
func (p *partitionedRecv) has(i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.post() {
		return false
	}
	if p.useless != nil {
		return p.advance() // the partitions of both sides have nothing to do with one another
	}
	for k, end := p.overlapped(i); k < end; k++ {
		if !p.done(k) {
			return false
		}
	}
	if checked := events.On(); checked != nil {
		for k, end := p.overlapped(i); k < end; k++ {
			tellReceived(checked, &p.parts[k].Request, false)
		}
	}
	return true
}

// Check implements operation.
func (p *partitionedRecv) Check() error {
	if e := p.ch.Revoked(); e != nil && !p.Advance() {
		return e
	}
	if from := p.ch.World[p.source]; proc.eng.Gone(from) && !p.Advance() {
		return errs.New(errs.ProcFailed, "partitioned receive from rank %d with tag %d can't complete: %s", p.source, p.tag, proc.eng.HowGone(from))
	}
	return nil
}

func (p *partitionedRecv) Abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.posted {
		p.giveUp()
		return
	}
	for i := range p.parts {
		p.ch.Abandon(&p.parts[i].Request)
	}
}

// giveUp ends a start that has not posted its receives. The caller holds mu.
func (p *partitionedRecv) giveUp() { p.posted, p.arrived = true, len(p.parts) }

func (p *partitionedRecv) Err() *errs.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.useless != nil {
		return p.useless
	}
	return p.err
}

func (p *partitionedRecv) status() Status {
	return Status{Source: int32(p.source), Tag: int32(p.tag), Bytes: int64(p.buf.Bytes())}
}

func (p *partitionedRecv) describe(why *engine.Reason) {
	why.Call, why.Peer, why.Tag, why.Ctx = job.CallRecv, p.ch.World[p.source], p.tag, uint64(p.ch.Ctx)
}
