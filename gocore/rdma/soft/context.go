package soft

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"gormapy/gocore/rdma/backend"
	"gormapy/gocore/sys"
)

// handshakes is how many strangers may be at the door at a time.
const handshakes = 256

// contexts are all that are open.
var contexts struct {
	sync.Mutex
	all map[*context]struct{}
}

// Sockets returns the descriptors of all sockets, which a forked child has to
// close: as long as it holds them, peers would not see this process end.
func Sockets() []int {
	var fds []int
	note := func(fd uintptr) { fds = append(fds, int(fd)) }
	contexts.Lock()
	defer contexts.Unlock()
	for c := range contexts.all {
		control(c.listen, note)
		c.mu.RLock()
		for conn := range c.conns {
			control(conn, note)
		}
		c.mu.RUnlock()
	}
	return fds
}

// control calls f with the descriptor of a socket and returns false if that is
// closed.
func control(socket any, f func(fd uintptr)) bool {
	s, ok := socket.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	return err == nil && raw.Control(f) == nil
}

// track notes a socket until it is closed.
func (c *context) track(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.conns) >= c.look {
		for conn := range c.conns {
			if !control(conn, func(uintptr) {}) {
				delete(c.conns, conn)
			}
		}
		c.look = 2*len(c.conns) + 16
	}
	c.conns[conn] = struct{}{}
}

// context is an open device: a socket that listens, and what peers can name.
type context struct {
	kind   string
	device backend.Device
	listen net.Listener
	probe  *uint64 // peers read this to see whether they can

	mu      sync.RWMutex
	regions map[uint32]*region
	qps     map[uint32]*qp
	conns   map[net.Conn]struct{} // all sockets of peers, and some that are closed
	look    int                   // for closed ones when there are so many
	nextQP  uint32
	closed  bool
}

func open(kind string, d backend.Device) (*context, error) {
	c := &context{
		kind: kind, device: d, regions: map[uint32]*region{}, qps: map[uint32]*qp{}, conns: map[net.Conn]struct{}{},
		probe: new(uint64), nextQP: 1 + random32()&0xffff,
	}
	*c.probe = uint64(random32())<<32 | uint64(random32())
	var err error
	if kind == "shm" {
		sys.AllowPeers()
		c.listen, err = net.Listen("unix", "@gormapy-rdma-"+hex.EncodeToString(random(12)))
	} else {
		c.listen, err = net.Listen("tcp", net.JoinHostPort(d.Ports[0].Addresses[0], "0"))
	}
	if err != nil {
		return nil, &backend.Errno{Name: "EADDRNOTAVAIL", Text: fmt.Sprintf("open %s: %v", d.Name, err)}
	}
	contexts.Lock()
	if contexts.all == nil {
		contexts.all = map[*context]struct{}{}
	}
	contexts.all[c] = struct{}{}
	contexts.Unlock()
	go c.accept()
	return c, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) //nolint:errcheck // it ends the program rather than fail
	return b
}

func random32() uint32 { return binary.LittleEndian.Uint32(random(4)) }

// accept is the agent: it lets peers in.
func (c *context) accept() {
	room := make(chan struct{}, handshakes)
	for {
		conn, err := c.listen.Accept()
		if err != nil {
			c.mu.RLock()
			closed := c.closed
			c.mu.RUnlock()
			if closed {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors, say
			continue
		}
		c.track(conn)
		select {
		case room <- struct{}{}:
			go func() {
				defer func() { <-room }()
				c.welcome(conn)
			}()
		default:
			conn.Close()
		}
	}
}

// Device is described with backend.Context.
func (c *context) Device() backend.Device { return c.device }

// AllocPD is described with backend.Context.
func (c *context) AllocPD() (backend.PD, error) { return &pd{ctx: c}, nil }

// CreateCQ is described with backend.Context.
func (c *context) CreateCQ(int) (backend.CQ, error) { return &cq{}, nil }

// Close is described with backend.Context.
func (c *context) Close() error {
	c.mu.Lock()
	c.closed = true
	var qps []*qp
	for _, q := range c.qps {
		qps = append(qps, q)
	}
	c.mu.Unlock()
	contexts.Lock()
	delete(contexts.all, c)
	contexts.Unlock()
	c.listen.Close()
	for _, q := range qps {
		q.Close()
	}
	return nil
}

// region finds what a peer names by a key.
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

func (c *context) qp(num uint32) *qp {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.qps[num]
}

// pd is a protection domain: what is in it knows it, and it knows nothing.
type pd struct{ ctx *context }

// Register is described with backend.PD.
func (d *pd) Register(p unsafe.Pointer, n int, access backend.Access) (backend.Region, error) {
	r := &region{ctx: d.ctx, pd: d, addr: uint64(uintptr(p)), n: n, access: access}
	d.ctx.mu.Lock()
	defer d.ctx.mu.Unlock()
	for r.key == 0 || d.ctx.regions[r.key] != nil {
		r.key = random32() // not to be guessed from others
	}
	d.ctx.regions[r.key] = r
	return r, nil
}

// CreateQP is described with backend.PD.
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
	d.ctx.qps[q.num] = q
	return q, nil
}

// Close is described with backend.PD.
func (d *pd) Close() error { return nil }
