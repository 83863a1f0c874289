package transfer

import (
	"fmt"
	"math/rand"
	"net"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/rdmaapi/backend"
	"gormapy/gocore/rdmaapi/soft"
)

func eachBackend(t *testing.T, f func(t *testing.T, by backend.Backend)) {
	for _, by := range []backend.Backend{soft.TCP, soft.SHM} {
		t.Run(by.Name(), func(t *testing.T) { f(t, by) })
	}
}

const access = backend.LocalWrite | backend.RemoteRead | backend.RemoteWrite

func engine(t *testing.T, by backend.Backend, name string, change func(c *Config)) *Engine {
	t.Helper()
	devices, err := by.Devices()
	require.NoError(t, err)
	ctx, err := by.Open(devices[0].Name)
	require.NoError(t, err)
	c := Config{
		Name: name, Backend: by.Name(), Host: "127.0.0.1", Lanes: 2, MaxSend: 16, Notify: true, Notices: 4, MaxChunks: 64,
		ConnectTimeout: 5 * time.Second,
	}
	if change != nil {
		change(&c)
	}
	e, err := Open(ctx, c)
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

// foreign returns memory outside of Go's heap: the race detector does not know that
// a socket orders the accesses of the two sides.
func foreign(t *testing.T, n int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	return mem // never unmapped: engines are closed after the test
}

// place is memory of two engines, with a session between them.
type place struct {
	source, target []byte
	local, remote  *Region
	session        *Session
}

func newPlace(t *testing.T, a, b *Engine, n int) *place {
	t.Helper()
	p := &place{source: foreign(t, n), target: foreign(t, n)}
	for i := range p.source {
		p.source[i] = byte(i*7 + 1)
	}
	var err error
	p.local, err = a.Register(unsafe.Pointer(&p.source[0]), int64(n), access)
	require.NoError(t, err)
	p.remote, err = b.Register(unsafe.Pointer(&p.target[0]), int64(n), access)
	require.NoError(t, err)
	p.session, err = a.Session(p.local.ID, b.card.Name, b.card.ID, Memory{p.remote.Addr(), p.remote.RKey(), int64(n), access})
	require.NoError(t, err)
	return p
}

func finish(t *testing.T, s *Status) {
	t.Helper()
	require.True(t, s.Wait(20*time.Second), "the transfer does not end")
	c, text := s.Get()
	require.Equal(t, Success, c, text)
}

// Silent connections, some before and some while engines connect, do not keep engines
// from connecting.
func TestEnginesConnectBesideSilentPendingConnections(t *testing.T) {
	eachBackend(t, func(t *testing.T, by backend.Backend) {
		b := engine(t, by, "b", nil)
		silent := func() {
			conn, err := net.Dial("tcp", b.card.Address)
			require.NoError(t, err)
			t.Cleanup(func() { conn.Close() })
		}
		for range 300 {
			silent()
		}
		begun := time.Now()
		for i := range 3 {
			a := engine(t, by, fmt.Sprintf("a%d", i), nil)
			require.NoError(t, a.AddRemote(b.card))
			p := newPlace(t, a, b, 1<<16)
			status := p.session.Transfer(backend.OpWrite, []Entry{{0, 0, 1 << 16}}, -1)
			for range 20 {
				silent()
			}
			finish(t, status)
			assert.Equal(t, p.source, p.target)
		}
		assert.Less(t, time.Since(begun), 9*time.Second)
	})
}

// Many transfers of many entries, from several goroutines, with so little room that
// every place is used many times.
func TestManyTransfersWithLittleRoom(t *testing.T) {
	eachBackend(t, func(t *testing.T, by backend.Backend) {
		for _, change := range []func(c *Config){
			func(c *Config) { c.Lanes, c.MaxSend, c.Notices = 1, 2, 1 },
			func(c *Config) { c.Lanes, c.MaxSend, c.Notices, c.PostBatch = 3, 3, 2, 2 },
			func(c *Config) { c.Chunk, c.Polling = 100, true },
		} {
			a, b := engine(t, by, "a", change), engine(t, by, "b", change)
			require.NoError(t, a.AddRemote(b.card))
			p := newPlace(t, a, b, 1<<16)
			var all sync.WaitGroup
			for g := range 4 {
				all.Add(1)
				go func() {
					defer all.Done()
					r := rand.New(rand.NewSource(int64(g)))
					var statuses []*Status
					for i := range 40 {
						var entries []Entry
						for k := range 16 { // each has a piece of every 4 KiB; together they cover all memory
							at := int64(k<<12 + g<<10 + i*25)
							entries = append(entries, Entry{at, at, 25})
						}
						r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
						statuses = append(statuses, p.session.Transfer(backend.OpWrite, entries, int64(g*100+i)))
					}
					for _, s := range statuses {
						if !s.Wait(30 * time.Second) {
							assert.Fail(t, "a transfer does not end")
							return
						}
						c, text := s.Get()
						assert.Equal(t, Success, c, text)
					}
				}()
			}
			all.Wait()
			for i := range p.target {
				if i%1024 < 1000 && p.target[i] != p.source[i] || i%1024 >= 1000 && p.target[i] != 0 {
					require.Fail(t, "wrong data", "at %d", i)
				}
			}
			for g := range 4 {
				for i := range 40 {
					there, err := b.Arrived("a", uint64(g*100+i), 10*time.Second)
					require.NoError(t, err)
					require.True(t, there)
					there, _ = b.Arrived("a", uint64(g*100+i), 0)
					require.False(t, there, "twice")
				}
			}
		}
	})
}

// A transfer to memory that is gone breaks the lanes for all; the others start again
// and succeed.
func TestOneTransferFailsAndOthersSucceed(t *testing.T) {
	eachBackend(t, func(t *testing.T, by backend.Backend) {
		faultOfOne(t, by, "IBV_WC_REM_ACCESS_ERR")
	})
}

func TestOneTransferFailsWhereTheDeviceDoesNotReportWhich(t *testing.T) {
	eachBackend(t, func(t *testing.T, by backend.Backend) {
		for status, name := range map[backend.Status]string{backend.RetryExcErr: "IBV_WC_RETRY_EXC_ERR", backend.WRFlushErr: "IBV_WC_WR_FLUSH_ERR"} {
			faultOfOne(t, vague{by, status}, name)
		}
	})
}

func faultOfOne(t *testing.T, by backend.Backend, status string) {
	t.Helper()
	a, b := engine(t, by, "a", nil), engine(t, by, "b", nil)
	require.NoError(t, a.AddRemote(b.card))
	p, lost := newPlace(t, a, b, 100_000), newPlace(t, a, b, 100)
	require.NoError(t, b.Deregister(lost.remote.ID))
	var good, bad []*Status
	for i := range int64(200) {
		good = append(good, p.session.Transfer(backend.OpWrite, []Entry{{i * 500, i * 500, 500}}, i))
		if i%40 == 7 {
			bad = append(bad, lost.session.Transfer(backend.OpWrite, []Entry{{0, 0, 100}}, 1000+i))
		}
	}
	for _, s := range good {
		finish(t, s)
	}
	for _, s := range bad {
		require.True(t, s.Wait(20*time.Second))
		c, text := s.Get()
		assert.Equal(t, RDMAOp, c)
		assert.Contains(t, text, status)
	}
	assert.Equal(t, p.source, p.target)
	for i := range uint64(200) {
		there, err := b.Arrived("a", i, 10*time.Second)
		require.NoError(t, err)
		require.True(t, there, "%d", i)
		there, _ = b.Arrived("a", i, 0)
		require.False(t, there, "%d twice", i)
		there, _ = b.Arrived("a", 1000+i, 0)
		require.False(t, there)
	}
}

// Whatever is closed while transfers are in flight, all of them end, and nothing is
// written afterwards.
func TestClosingInTheMiddle(t *testing.T) {
	eachBackend(t, func(t *testing.T, by backend.Backend) {
		for what, close := range map[string]func(a, b *Engine, p *place) error{
			"initiator":     func(a, b *Engine, p *place) error { return a.Close() },
			"target":        func(a, b *Engine, p *place) error { return b.Close() },
			"local memory":  func(a, b *Engine, p *place) error { return a.Deregister(p.local.ID) },
			"remote memory": func(a, b *Engine, p *place) error { return b.Deregister(p.remote.ID) },
			"remote":        func(a, b *Engine, p *place) error { return a.RemoveRemote("b") },
			"inbound":       func(a, b *Engine, p *place) error { return b.RemoveRemote("a") },
		} {
			t.Run(what, func(t *testing.T) {
				a, b := engine(t, by, "a", nil), engine(t, by, "b", nil)
				require.NoError(t, a.AddRemote(b.card))
				require.NoError(t, b.AddRemote(a.card))
				p := newPlace(t, a, b, 1<<20)
				var statuses []*Status
				for i := range int64(100) {
					statuses = append(statuses, p.session.Transfer(backend.OpWrite, []Entry{{0, 0, 1 << 20}}, i))
				}
				time.Sleep(time.Duration(rand.Intn(20)) * time.Millisecond)
				require.NoError(t, close(a, b, p))
				if what == "target" || what == "remote memory" {
					for i := range p.target {
						p.target[i] = 0
					}
				}
				for _, s := range statuses {
					require.True(t, s.Wait(20*time.Second), "a transfer does not end")
				}
				if what == "target" || what == "remote memory" {
					assert.Equal(t, make([]byte, 1<<20), p.target)
				}
			})
		}
	})
}

func TestInbox(t *testing.T) {
	var b inbox
	for i := range uint64(3 * maxArrivals) {
		b.arrived(i, origin{serial: i})
	}
	assert.False(t, b.pop(0, 0))
	assert.True(t, b.pop(3*maxArrivals-1, 0))
	assert.False(t, b.pop(3*maxArrivals-1, 0))
	for i := range uint64(10) {
		b.arrived(7, origin{serial: 1<<40 + i})
	}
	b.arrived(7, origin{serial: 1 << 40}) // again
	for range 10 {
		assert.True(t, b.pop(7, 0))
	}
	assert.False(t, b.pop(7, time.Millisecond))
	for i := range uint64(5 * maxArrivals) { // each is taken at once, so order stays bounded
		b.arrived(i, origin{serial: 1<<41 + i})
		b.pop(i, 0)
	}
	assert.LessOrEqual(t, len(b.order), 2*maxArrivals+1)
	assert.LessOrEqual(t, len(b.known), recent+1)
	assert.False(t, b.pop(99, 0))
	go func() {
		time.Sleep(10 * time.Millisecond)
		b.arrived(99, origin{serial: 1 << 42})
	}()
	assert.True(t, b.pop(99, time.Minute))
}

func TestConfigIsChecked(t *testing.T) {
	for i, change := range []func(c *Config){
		func(c *Config) { c.Name = "" },
		func(c *Config) { c.Lanes = 0 },
		func(c *Config) { c.Lanes = maxLanes + 1 },
		func(c *Config) { c.MaxSend = 1 },
		func(c *Config) { c.PostBatch = -1 },
		func(c *Config) { c.Notices = 0 },
		func(c *Config) { c.MaxChunks = 0 },
		func(c *Config) { c.Port = 1 << 16 },
		func(c *Config) { c.ConnectTimeout = 0 },
		func(c *Config) { c.Host = "not a host" },
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ctx, err := soft.SHM.Open("shm0")
			require.NoError(t, err)
			c := Config{Name: "a", Backend: "shm", Host: "127.0.0.1", Lanes: 1, MaxSend: 2, Notices: 1, MaxChunks: 1, ConnectTimeout: time.Second}
			change(&c)
			_, err = Open(ctx, c)
			assert.Error(t, err)
		})
	}
}
