package soft

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"sync"
	"unsafe"

	"gormapy/gocore/handshake"
	"gormapy/gocore/rdmaapi/backend"
	"gormapy/gocore/rdmaapi/sockets"
	"gormapy/gocore/sys"
)

// context is an open device: a listening socket, and the regions and queue pairs
// that peers can name.
type context struct {
	kind     string
	device   backend.Device
	listen   net.Listener
	acceptor sockets.Acceptor
	probe    *uint64 // peers read this to find out whether they can copy

	mu      sync.RWMutex
	regions map[uint32]*region
	qps     map[uint32]*qp
	tagged  map[handshake.Tag]*qp // by the tag of the secret
	nextQP  uint32
	closed  bool
}

func open(kind string, d backend.Device) (*context, error) {
	c := &context{
		kind: kind, device: d, regions: map[uint32]*region{}, qps: map[uint32]*qp{}, tagged: map[handshake.Tag]*qp{},
		probe: new(uint64), nextQP: 1 + random32()&0xffff,
	}
	*c.probe = uint64(random32())<<32 | uint64(random32())
	var err error
	if kind == "shm" {
		sys.AllowPeers()
		c.listen, err = sockets.Listen("unix", "@gormapy-rdma-"+hex.EncodeToString(random(12)))
	} else {
		c.listen, err = sockets.Listen("tcp", net.JoinHostPort(d.Ports[0].Addresses[0], "0"))
	}
	if err != nil {
		return nil, &backend.Errno{Name: "EADDRNOTAVAIL", Text: fmt.Sprintf("open %s: %v", d.Name, err)}
	}
	go c.accept()
	return c, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) //nolint:errcheck // it ends the program rather than fail
	return b
}

func random32() uint32 { return binary.LittleEndian.Uint32(random(4)) }

// accept is the agent: it accepts peers and does their handshake.
func (c *context) accept() {
	c.acceptor.Serve(c.listen, func(conn net.Conn) {
		go func() {
			defer c.acceptor.Authenticated(conn)
			c.welcome(conn)
		}()
	})
}

// Device implements backend.Context.
func (c *context) Device() backend.Device { return c.device }

// AllocPD implements backend.Context.
func (c *context) AllocPD() (backend.PD, error) { return &pd{ctx: c}, nil }

// CreateCQ implements backend.Context.
func (c *context) CreateCQ(int) (backend.CQ, error) { return &cq{}, nil }

// Close implements backend.Context.
func (c *context) Close() error {
	c.mu.Lock()
	c.closed = true
	var qps []*qp
	for _, q := range c.qps {
		qps = append(qps, q)
	}
	c.mu.Unlock()
	c.listen.Close()
	for _, q := range qps {
		q.Close()
	}
	return nil
}

// region returns the region that a peer names by a key, nil if there is none.
func (c *context) region(key uint32) *region {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.regions[key]
}

func (c *context) forget(r *region) {
	c.mu.Lock()
	if c.regions[r.key] == r {
		delete(c.regions, r.key)
	}
	c.mu.Unlock()
}

// find returns the queue pair that a peer names by a tag, nil if there is none.
func (c *context) find(tag handshake.Tag) *qp {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tagged[tag]
}

// pd is a protection domain. Its regions and queue pairs point to it.
type pd struct{ ctx *context }

// Register implements backend.PD.
func (d *pd) Register(p unsafe.Pointer, n int, access backend.Access) (backend.Region, error) {
	r := &region{ctx: d.ctx, pd: d, addr: uint64(uintptr(p)), n: n, access: access}
	d.ctx.mu.Lock()
	defer d.ctx.mu.Unlock()
	for r.key == 0 || d.ctx.regions[r.key] != nil {
		r.key = random32() // can't be guessed from other keys
	}
	d.ctx.regions[r.key] = r
	return r, nil
}

// CreateQP implements backend.PD.
func (d *pd) CreateQP(init backend.QPInit) (backend.QP, error) {
	send, ok := init.Send.(*cq)
	recv, also := init.Recv.(*cq)
	if !ok || !also {
		return nil, &backend.Errno{Name: "EINVAL", Text: "the completion queues are of another back end"}
	}
	q := &qp{ctx: d.ctx, pd: d, init: init, sendCQ: send, recvCQ: recv, state: backend.StateInit, secret: random(secretBytes)}
	d.ctx.mu.Lock()
	defer d.ctx.mu.Unlock()
	if d.ctx.closed {
		return nil, &backend.Errno{Name: "EBADF", Text: "the context is closed"}
	}
	for d.ctx.qps[d.ctx.nextQP] != nil || d.ctx.nextQP == 0 {
		d.ctx.nextQP = (d.ctx.nextQP + 1) & 0xffffff
	}
	q.num = d.ctx.nextQP
	d.ctx.nextQP = (d.ctx.nextQP + 1) & 0xffffff
	d.ctx.qps[q.num], d.ctx.tagged[protocol.Tag(q.secret)] = q, q
	return q, nil
}

// Close implements backend.PD.
func (d *pd) Close() error { return nil }
