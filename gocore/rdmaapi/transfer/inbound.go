package transfer

import (
	"context"
	"fmt"
	"net"
	"time"

	"gormapy/gocore/rdmaapi/backend"
)

// inbound is the end here of a link that another engine made.
type inbound struct {
	engine *Engine
	id     [idBytes]byte
	name   string
	inbox  *inbox
	conn   net.Conn
	poller *poller
	slab   *slab
	qps    []backend.QP

	partial map[uint64]uint32 // notices that came, by serial number of the transfer
}

// most notices of transfers of which others are still to come
const maxPartial = 1 << 20

// accept lets callers in.
func (e *Engine) accept() {
	defer e.work.Done()
	e.door.Serve(e.socket, func(conn net.Conn) {
		e.work.Add(1)
		go func() {
			defer e.work.Done()
			g := e.welcome(conn)
			if g == nil {
				conn.Close()
				e.door.Authenticated(conn)
				return
			}
			g.run()
		}()
	})
}

// welcome hears a caller out and returns him as a guest, or nil.
func (e *Engine) welcome(conn net.Conn) *inbound {
	stop := context.AfterFunc(e.life, func() { conn.Close() })
	defer stop()
	g := &inbound{engine: e, conn: conn, partial: map[uint64]uint32{}}
	err := listen(conn, &e.card, func(h hello) answer {
		e.door.Authenticated(conn)
		infos, err := g.admit(h)
		if err != nil {
			return answer{refusal: err.Error()}
		}
		return answer{infos: infos}
	}, e.config.ConnectTimeout)
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err == nil && e.enlist(g) {
		return g
	}
	g.close()
	return nil
}

// admit makes lanes for a caller.
func (g *inbound) admit(h hello) ([][]byte, error) {
	e := g.engine
	if h.backend != e.card.Backend {
		return nil, fmt.Errorf("engine %q uses back end %q, not %q", e.card.Name, e.card.Backend, h.backend)
	}
	if h.name == "" {
		return nil, fmt.Errorf("an engine without a name")
	}
	e.mu.Lock()
	unwanted := e.unwanted[h.from]
	r := e.remotes[h.name]
	if !e.closed {
		g.inbox = e.inboxOf(h.name)
	}
	e.mu.Unlock()
	switch {
	case g.inbox == nil:
		return nil, fmt.Errorf("engine %q is closed", e.card.Name)
	case unwanted:
		return nil, fmt.Errorf("engine %q has deregistered engine %q", e.card.Name, h.name)
	case r != nil && r.card.ID != h.from:
		return nil, fmt.Errorf("engine %q knows another engine of the name %q", e.card.Name, h.name)
	}
	g.id, g.name = h.from, h.name
	n := e.config.Notices
	cq, err := e.ctx.CreateCQ(len(h.infos) * (n + 1))
	if err != nil {
		return nil, err
	}
	g.poller = newPoller(cq)
	if g.slab, err = newSlab(e.pd, len(h.infos)*n); err != nil {
		return nil, err
	}
	var infos [][]byte
	for i, theirs := range h.infos {
		qp, err := e.pd.CreateQP(backend.QPInit{Send: cq, Recv: cq, MaxSend: 1, MaxRecv: n})
		if err != nil {
			return nil, err
		}
		g.qps = append(g.qps, qp)
		info, err := qp.Info()
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
		if err := qp.Connect(theirs, connection(&e.config)); err != nil {
			return nil, err
		}
		wrs := make([]backend.RecvWR, n)
		for k := range wrs {
			wrs[k] = g.receive(i, k)
		}
		if _, err := qp.PostRecv(wrs); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

// receive is the receive in place k of a lane.
func (g *inbound) receive(lane, k int) backend.RecvWR {
	at := lane*g.engine.config.Notices + k
	return backend.RecvWR{Cookie: uint64(lane)<<32 | uint64(k), Region: g.slab.region, Local: g.slab.pointer(at), N: noticeBytes}
}

// enlist notes a guest, unless the engine was closed or he is not wanted any more.
func (e *Engine) enlist(g *inbound) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.unwanted[g.id] {
		return false
	}
	e.inbound[g] = struct{}{}
	return true
}

// run serves a guest until his socket closes.
func (g *inbound) run() {
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := g.poller.run(g.take, func() bool { return false }); err != nil {
			goodbye(g.conn, fmt.Sprintf("the completion queue of engine %q failed: %v", g.engine.card.Name, err))
		}
	}()
	ended(g.conn)
	g.conn.Close()
	g.poller.stop()
	<-served
	g.poller.drain(g.take) // the caller has been told that these have arrived
	g.engine.mu.Lock()
	delete(g.engine.inbound, g)
	g.engine.mu.Unlock()
	g.close()
}

// take takes notices. A lane that is broken has none any more; that is the
// caller's matter.
func (g *inbound) take(some []backend.Completion) {
	for i := range some {
		c := &some[i]
		lane, k := int(c.Cookie>>32), int(uint32(c.Cookie))
		if c.Status != backend.Success || !c.Recv || lane >= len(g.qps) || k >= g.engine.config.Notices {
			continue
		}
		lanes, serial, uid, ok := parseNotice(g.slab.at(lane*g.engine.config.Notices + k)[:min(c.N, noticeBytes)])
		if !ok || len(g.partial) > maxPartial {
			goodbye(g.conn, "a malformed notice")
			return
		}
		if g.partial[serial]++; g.partial[serial] >= lanes {
			delete(g.partial, serial)
			g.inbox.arrived(uid, origin{g.id, serial})
		}
		wr := [1]backend.RecvWR{g.receive(lane, k)}
		if _, err := g.qps[lane].PostRecv(wr[:]); err != nil {
			goodbye(g.conn, fmt.Sprintf("posting a receive at engine %q failed: %v", g.engine.card.Name, err))
			return
		}
	}
}

// close gives all of it back.
func (g *inbound) close() {
	for _, qp := range g.qps {
		qp.Close() //nolint:errcheck // nothing of it completes from here on
	}
	if g.slab != nil {
		g.slab.close()
	}
	if g.poller != nil {
		g.poller.close()
	}
}
