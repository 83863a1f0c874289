package transfer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"gormapy/gocore/rdmaapi/backend"
)

// inbound is an inbound connection: this engine's end of a link that another engine
// made.
type inbound struct {
	engine *Engine
	id     [idBytes]byte
	name   string
	inbox  *inbox
	conn   net.Conn
	poller *poller
	slab   *slab
	qps    []backend.QP

	partial map[uint64]uint32 // number of notices received, by serial number of the transfer
}

// maxPartial bounds the transfers of which some notices have arrived and others have
// not.
const maxPartial = 1 << 20

// accept accepts other engines.
func (e *Engine) accept() {
	defer e.work.Done()
	e.acceptor.Serve(e.socket, func(conn net.Conn) {
		e.work.Add(1)
		go func() {
			defer e.work.Done()
			in := e.welcome(conn)
			if in == nil {
				conn.Close()
				e.acceptor.Authenticated(conn)
				return
			}
			in.run()
		}()
	})
}

// welcome does the handshake with another engine and returns its inbound connection,
// nil if it is refused.
func (e *Engine) welcome(conn net.Conn) *inbound {
	stop := context.AfterFunc(e.life, func() { conn.Close() })
	defer stop()
	in := &inbound{engine: e, conn: conn, partial: map[uint64]uint32{}}
	err := respond(conn, &e.card, func() { e.acceptor.Greeted(conn) }, func(h hello) (answer, error) {
		if !e.acceptor.Authenticated(conn) {
			return answer{}, errors.New("the connection was evicted")
		}
		infos, err := in.admit(h)
		if err != nil {
			return answer{refusal: err.Error()}, nil
		}
		return answer{infos: infos}, nil
	}, e.config.ConnectTimeout)
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err == nil && e.enlist(in) {
		return in
	}
	in.close()
	return nil
}

// admit checks the hello of another engine, makes the lanes and returns their infos.
func (in *inbound) admit(h hello) ([][]byte, error) {
	e := in.engine
	if h.backend != e.card.Backend {
		return nil, fmt.Errorf("engine %q uses back end %q, not %q", e.card.Name, e.card.Backend, h.backend)
	}
	if h.name == "" {
		return nil, fmt.Errorf("an engine without a name")
	}
	e.mu.Lock()
	deregistered := e.deregistered[h.from]
	r := e.remotes[h.name]
	if !e.closed {
		in.inbox = e.inboxOf(h.name)
	}
	e.mu.Unlock()
	switch {
	case in.inbox == nil:
		return nil, fmt.Errorf("engine %q is closed", e.card.Name)
	case deregistered:
		return nil, fmt.Errorf("engine %q has deregistered engine %q", e.card.Name, h.name)
	case r != nil && r.card.ID != h.from:
		return nil, fmt.Errorf("engine %q knows another engine of the name %q", e.card.Name, h.name)
	}
	in.id, in.name = h.from, h.name
	n := e.config.Notices
	cq, err := e.ctx.CreateCQ(len(h.infos) * (n + 1))
	if err != nil {
		return nil, err
	}
	in.poller = newPoller(cq)
	if in.slab, err = newSlab(e.pd, len(h.infos)*n); err != nil {
		return nil, err
	}
	var infos [][]byte
	for i, remote := range h.infos {
		qp, err := e.pd.CreateQP(backend.QPInit{Send: cq, Recv: cq, MaxSend: 1, MaxRecv: n})
		if err != nil {
			return nil, err
		}
		in.qps = append(in.qps, qp)
		info, err := qp.Info()
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
		if err := qp.Connect(remote, connection(&e.config)); err != nil {
			return nil, err
		}
		wrs := make([]backend.RecvWR, n)
		for k := range wrs {
			wrs[k] = in.receive(i, k)
		}
		if _, err := qp.PostRecv(wrs); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

// receive returns the receive in place k of a lane.
func (in *inbound) receive(lane, k int) backend.RecvWR {
	at := lane*in.engine.config.Notices + k
	return backend.RecvWR{Cookie: uint64(lane)<<32 | uint64(k), Region: in.slab.region, Local: in.slab.pointer(at), N: noticeBytes}
}

// enlist adds an inbound connection to the engine's. It returns false if the engine
// was closed or has deregistered the other one.
func (e *Engine) enlist(in *inbound) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.deregistered[in.id] {
		return false
	}
	e.inbound[in] = struct{}{}
	return true
}

// run serves an inbound connection until its socket closes.
func (in *inbound) run() {
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := in.poller.run(in.take, func() bool { return false }); err != nil {
			goodbye(in.conn, fmt.Sprintf("the completion queue of engine %q failed: %v", in.engine.card.Name, err))
		}
	}()
	ended(in.conn)
	in.conn.Close()
	in.poller.stop()
	<-served
	in.poller.drain(in.take) // the sends of these may have completed at the initiator
	in.engine.mu.Lock()
	delete(in.engine.inbound, in)
	in.engine.mu.Unlock()
	in.close()
}

// take handles notices. A broken lane has no more of them; the initiator handles
// that.
func (in *inbound) take(some []backend.Completion) {
	for i := range some {
		c := &some[i]
		lane, k := int(c.Cookie>>32), int(uint32(c.Cookie))
		if c.Status != backend.Success || !c.Recv || lane >= len(in.qps) || k >= in.engine.config.Notices {
			continue
		}
		lanes, serial, uid, ok := parseNotice(in.slab.at(lane*in.engine.config.Notices + k)[:min(c.N, noticeBytes)])
		if !ok || len(in.partial) > maxPartial {
			goodbye(in.conn, "a malformed notice")
			return
		}
		if in.partial[serial]++; in.partial[serial] >= lanes {
			delete(in.partial, serial)
			in.inbox.arrived(uid, origin{in.id, serial})
		}
		wr := [1]backend.RecvWR{in.receive(lane, k)}
		if _, err := in.qps[lane].PostRecv(wr[:]); err != nil {
			goodbye(in.conn, fmt.Sprintf("posting a receive at engine %q failed: %v", in.engine.card.Name, err))
			return
		}
	}
}

// close frees the connection's resources.
func (in *inbound) close() {
	for _, qp := range in.qps {
		qp.Close() //nolint:errcheck // it has no completions from here on
	}
	if in.slab != nil {
		in.slab.close()
	}
	if in.poller != nil {
		in.poller.close()
	}
}
