package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gormapy/gocore/rdmaapi/backend"
	"gormapy/gocore/rdmaapi/sockets"
)

// Config has the options of an engine.
type Config struct {
	Name    string
	Backend string
	Host    string // to listen on
	Port    int    // 0: any

	Lanes          int           // queue pairs of each link
	PostBatch      int           // maximum of work requests of one post; 0: no limit
	MaxSend        int           // maximum of outstanding work requests of a lane
	Polling        bool          // while work requests are outstanding, spin rather than sleep
	Notify         bool          // notify targets of transfers with a uid
	Notices        int           // receives for notices that are kept posted on each lane
	Chunk          int64         // size of the pieces of a transfer; 0: the device's maximum
	MaxChunks      int64         // maximum of pieces, which may make them longer than Chunk
	ConnectTimeout time.Duration // for the other engine to answer
}

// ranges has the valid values of options. min is always granted; max is an upper limit.
var ranges = []struct {
	name     string
	value    func(c *Config) int64
	min, max int64
}{
	{"qp_per_transfer", func(c *Config) int64 { return int64(c.Lanes) }, 1, maxLanes},
	{"max_send_wr", func(c *Config) int64 { return int64(c.MaxSend) }, 2, 1 << 16},
	{"notif_per_qp", func(c *Config) int64 { return int64(c.Notices) }, 1, 1 << 16},
	{"chunk_bytes", func(c *Config) int64 { return c.Chunk }, 0, 1 << 40},
	{"max_chunks_per_transfer", func(c *Config) int64 { return c.MaxChunks }, 1, 1 << 20},
	{"port", func(c *Config) int64 { return int64(c.Port) }, 0, 1<<16 - 1},
}

func (c *Config) check() error {
	if n := len(c.Name); n == 0 || n > maxName {
		return errno("EINVAL", "the name of an engine has 1 to %d bytes; this has %d", maxName, n)
	}
	for _, r := range ranges {
		if v := r.value(c); v < r.min || v > r.max {
			return errno("EINVAL", "%s is %d; it must be from %d to %d", r.name, v, r.min, r.max)
		}
	}
	if c.PostBatch < 0 {
		return errno("EINVAL", "post_batch_size is %d; it must be at least 1, or -1 for no limit", c.PostBatch)
	}
	if c.ConnectTimeout <= 0 {
		return errno("EINVAL", "connect_timeout is %v; it must be more than 0", c.ConnectTimeout)
	}
	return nil
}

func errno(name, format string, args ...any) error {
	return &backend.Errno{Name: name, Text: fmt.Sprintf(format, args...)}
}

// Engine transfers memory. It is safe for concurrent use.
type Engine struct {
	config   Config
	card     Card
	ctx      backend.Context
	pd       backend.PD
	limits   backend.Limits
	piece    int64 // longest work request, in bytes
	socket   net.Listener
	work     sync.WaitGroup // links, inbound connections, handshakes
	acceptor sockets.Acceptor

	mu           sync.Mutex
	regions      map[uint64]*Region
	nextID       uint64
	remotes      map[string]*remote
	inbound      map[*inbound]struct{}
	inboxes      map[string]*inbox
	deregistered map[[idBytes]byte]bool // engines that RemoveRemote was called for
	uid          uint64
	closed       bool

	life context.Context // ends when the engine is closed
	end  context.CancelFunc

	serial atomic.Uint64 // of transfers with a notice
}

const maxPiece = 1 << 30

// Open makes an engine on a device. The device is closed with the engine, or by Open
// if it fails.
func Open(ctx backend.Context, c Config) (e *Engine, err error) {
	defer func() {
		if err != nil {
			ctx.Close() //nolint:errcheck // there is another error to report
		}
	}()
	if err = c.check(); err != nil {
		return nil, err
	}
	d := ctx.Device()
	e = &Engine{
		config: c, ctx: ctx, limits: d.Limits, piece: maxPiece, regions: map[uint64]*Region{}, remotes: map[string]*remote{},
		inbound: map[*inbound]struct{}{}, inboxes: map[string]*inbox{}, deregistered: map[[idBytes]byte]bool{},
	}
	e.life, e.end = context.WithCancel(context.Background())
	if len(d.Ports) > 0 && d.Ports[0].MaxMessage > 0 {
		e.piece = min(e.piece, d.Ports[0].MaxMessage)
	}
	if limit := d.Limits.MaxQPWR; limit > 0 {
		e.config.MaxSend, e.config.Notices = min(c.MaxSend, limit), min(c.Notices, limit)
	}
	if limit := d.Limits.MaxCQE; limit > 0 && c.Lanes*max(e.config.MaxSend, e.config.Notices) > limit {
		return nil, errno("EINVAL", "%d queue pairs with %d work requests: the device has completion queues of %d", c.Lanes, max(e.config.MaxSend, e.config.Notices), limit)
	}
	if e.pd, err = ctx.AllocPD(); err != nil {
		return nil, err
	}
	if e.socket, err = sockets.Listen("tcp", net.JoinHostPort(c.Host, strconv.Itoa(c.Port))); err != nil {
		e.pd.Close() //nolint:errcheck // there is another error to report
		return nil, errno("EADDRNOTAVAIL", "listen on %s port %d: %v", c.Host, c.Port, err)
	}
	e.card = Card{Name: c.Name, Backend: c.Backend, Address: e.address(&d)}
	rand.Read(e.card.ID[:])     //nolint:errcheck // it ends the program rather than fail
	rand.Read(e.card.Secret[:]) //nolint:errcheck // likewise
	e.work.Add(1)
	go e.accept()
	return e, nil
}

// address returns the address at which other engines reach the socket.
func (e *Engine) address(d *backend.Device) string {
	host, port, err := net.SplitHostPort(e.socket.Addr().String())
	if err != nil {
		return e.socket.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
		if d.Backend == "tcp" && len(d.Ports) > 0 && len(d.Ports[0].Addresses) > 0 {
			host = d.Ports[0].Addresses[0]
		}
	}
	return net.JoinHostPort(host, port)
}

// Card returns the card by which other engines reach this one.
func (e *Engine) Card() Card { return e.card }

// Register makes n bytes at p known to the device.
func (e *Engine) Register(p unsafe.Pointer, n int64, access backend.Access) (*Region, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errClosed
	}
	if limit := e.limits.MaxMRSize; n <= 0 || limit > 0 && n > limit {
		return nil, errno("EINVAL", "%d bytes can't be registered: it must be from 1 to %d", n, limit)
	}
	region, err := e.pd.Register(p, int(n), access)
	if err != nil {
		return nil, err
	}
	e.nextID++
	r := &Region{ID: e.nextID, engine: e, base: p, n: n, region: region}
	e.regions[r.ID] = r
	return r, nil
}

var errClosed = &backend.Errno{Name: "EBADF", Text: "the engine is closed"}

// Device returns the name of the engine's device.
func (e *Engine) Device() string { return e.ctx.Device().Name }

// Region returns the region with a number, nil if it is not registered.
func (e *Engine) Region(id uint64) *Region {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.regions[id]
}

// patience limits the wait for transfers whose memory is being deregistered.
const patience = time.Second

// Deregister closes a region. Transfers that use it and are not wholly posted fail;
// if the posted pieces don't end soon, the connections are closed. The error is
// backend.ErrBusy if a peer may still be writing to the memory.
func (e *Engine) Deregister(id uint64) error {
	e.mu.Lock()
	r := e.regions[id]
	delete(e.regions, id)
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return errClosed
	}
	if r == nil {
		return errno("ENOENT", "this engine has no memory %d: it is deregistered, or another engine's", id)
	}
	return e.drop(r)
}

func (e *Engine) drop(r *Region) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for _, l := range e.links() {
		l.withdraw(func(t *transfer) bool { return t.local == r }, NotFound, "the local memory was deregistered")
	}
	if !r.unused(patience) {
		for _, l := range e.links() {
			if l.uses(r) {
				l.fail(BadState, "memory was deregistered while a transfer that does not end used it")
			}
		}
		r.unused(time.Minute) // closing a queue pair takes less
	}
	return r.region.Close()
}

func (e *Engine) links() []*link {
	e.mu.Lock()
	var remotes []*remote
	for _, r := range e.remotes {
		remotes = append(remotes, r)
	}
	e.mu.Unlock()
	var all []*link
	for _, r := range remotes {
		r.mu.Lock()
		if r.link != nil {
			all = append(all, r.link)
		}
		r.mu.Unlock()
	}
	return all
}

// AddRemote registers another engine. Registering the same one again does nothing.
func (e *Engine) AddRemote(c Card) error {
	if c.Backend != e.card.Backend {
		return errno("EINVAL", "engine %q uses back end %q, this one %q: open both with the same", c.Name, c.Backend, e.card.Backend)
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil || c.Name == "" || len(c.Name) > maxName {
		return errno("EINVAL", "the descriptor of engine %q with address %q is of no use", c.Name, c.Address)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	if old := e.remotes[c.Name]; old != nil {
		if old.card == c {
			return nil
		}
		return errno("EEXIST", "another engine %q is registered: deregister it first, or choose other names", c.Name)
	}
	e.remotes[c.Name] = &remote{engine: e, card: c}
	delete(e.deregistered, c.ID)
	e.inboxOf(c.Name)
	return nil
}

// inboxOf returns the inbox for an engine, a new one if there is none. The caller
// holds mu.
func (e *Engine) inboxOf(name string) *inbox {
	b := e.inboxes[name]
	if b == nil {
		b = &inbox{}
		e.inboxes[name] = b
	}
	return b
}

// RemoveRemote deregisters another engine and ends all connections with it.
func (e *Engine) RemoveRemote(name string) error {
	e.mu.Lock()
	r := e.remotes[name]
	if e.closed {
		e.mu.Unlock()
		return errClosed
	}
	if r == nil {
		e.mu.Unlock()
		return errno("ENOENT", "engine %q is not registered", name)
	}
	delete(e.remotes, name)
	delete(e.inboxes, name)
	e.deregistered[r.card.ID] = true
	var closing []*inbound
	for in := range e.inbound {
		if in.id == r.card.ID {
			closing = append(closing, in)
		}
	}
	e.mu.Unlock()
	r.remove(NotFound, fmt.Sprintf("engine %q was deregistered", name))
	for _, in := range closing {
		goodbye(in.conn, fmt.Sprintf("engine %q has deregistered this one", e.card.Name))
	}
	return nil
}

// remote returns the registered engine with a name, nil if there is none.
func (e *Engine) remote(name string) *remote {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.remotes[name]
}

// Arrived takes the arrival of the transfer uid of another engine. It waits at most
// d and reports whether there was one.
func (e *Engine) Arrived(name string, uid uint64, d time.Duration) (bool, error) {
	e.mu.Lock()
	b, closed := e.inboxes[name], e.closed
	e.mu.Unlock()
	if closed {
		return false, errClosed
	}
	if b == nil {
		return false, errno("ENOENT", "engine %q is not registered, nor has it called", name)
	}
	return b.pop(uid, d), nil
}

// UID returns a number that it has not returned before.
func (e *Engine) UID() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.uid++
	return e.uid
}

// Close closes the engine: transfers fail, and peers get a goodbye. Afterwards nothing
// accesses registered memory, unless the error is backend.ErrBusy.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.end()
	remotes, inbounds, regions := e.remotes, e.inbound, e.regions
	e.remotes, e.inbound, e.regions = nil, map[*inbound]struct{}{}, nil
	e.mu.Unlock()
	e.socket.Close()
	for _, r := range remotes {
		r.remove(BadState, "the engine was closed")
	}
	for in := range inbounds {
		goodbye(in.conn, fmt.Sprintf("engine %q was closed", e.card.Name))
	}
	e.work.Wait()
	var first error
	for _, r := range regions {
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		if err := r.region.Close(); err != nil && (first == nil || errors.Is(err, backend.ErrBusy)) {
			first = err
		}
	}
	for _, c := range []interface{ Close() error }{e.pd, e.ctx} {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
