//go:build cgo

package ofi

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

// roleEnv makes the test binary the other process: "provider size".
const roleEnv = "GORMAPY_OFI_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := target(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// wire is a Directory of two ranks in two processes, joined by pipes.
type wire struct {
	rank  int
	cards [2][]byte
	out   func(line string) error
	in    *bufio.Reader
}

func (w *wire) Rank() int      { return w.rank }
func (w *wire) Size() int      { return 2 }
func (w *wire) Hosts() int     { return 1 }
func (w *wire) OnNode() int    { return w.rank }
func (w *wire) Secret() []byte { return []byte("two processes of one test") }

func (w *wire) Publish(card []byte) error {
	w.cards[w.rank] = card
	return w.out(hex.EncodeToString(card) + "\n")
}

func (w *wire) Card(rank int) []byte {
	if w.cards[rank] == nil {
		if line, err := w.in.ReadString('\n'); err == nil {
			w.cards[rank], _ = hex.DecodeString(strings.TrimSpace(line))
		}
	}
	return w.cards[rank]
}

func (w *wire) Address(time.Time) netip.Addr { return netip.Addr{} }

func (w *wire) Mail(int, []byte) error { return nil }
func (w *wire) Mailed(int) []byte      { return nil }
func (w *wire) Mails() uint32          { return 0 }

// inbox is a sink that records its calls.
type inbox struct {
	last      fabric.Header
	payload   []byte
	messages  int
	completed []finish
	broken    []error
}

func (b *inbox) Deliver(_ int, h *fabric.Header, payload []byte) {
	b.last, b.payload, b.messages = *h, append([]byte(nil), payload...), b.messages+1
}
func (b *inbox) Place(int, *fabric.Header, int) unsafe.Pointer { return nil }
func (b *inbox) Completed(cookie uint64, err error) {
	b.completed = append(b.completed, finish{cookie, err})
}
func (b *inbox) Broken(_ int, err error) { b.broken = append(b.broken, err) }

// target exposes memory, sends its key, answers messages, and ends when the origin
// closes.
func target(role string) error {
	provider, restricted := role, false
	if p, ok := strings.CutSuffix(role, " as EFA"); ok {
		provider, restricted = p, true
	}
	o := Options{Provider: provider}
	if restricted {
		o.Restrictions = EFA
	}
	w := &wire{rank: 1, in: bufio.NewReader(os.Stdin), out: func(line string) error {
		_, err := os.Stdout.WriteString(line)
		return err
	}}
	t, err := New(w, o)
	if err != nil {
		return err
	}
	mem := make([]byte, exposedBytes) // not moved: Go's large objects stay where they are
	region, err := t.Register(unsafe.Pointer(&mem[0]), len(mem))
	if err != nil {
		return err
	}
	ep, err := t.Connect(0)
	if err != nil {
		return err
	}
	key := region.Key()
	for ep.Send(&fabric.Header{Kind: fabric.KindEager, A: key.Addr, B: key.Key}, nil) == fabric.ErrAgain {
		t.Poll(&inbox{})
	}
	var box inbox
	looked := time.Now()
	for seen := 0; len(box.broken) == 0; runtime.Gosched() {
		arrived := t.Poll(&box)
		for ; seen < box.messages; seen++ {
			for ep.Send(&fabric.Header{Kind: fabric.KindAck, Aux: box.last.Aux}, box.payload) == fabric.ErrAgain {
				t.Poll(&box)
			}
		}
		if arrived == 0 && time.Since(looked) > time.Second {
			if looked = time.Now(); os.Getppid() == 1 {
				return nil // the test was killed
			}
		}
	}
	runtime.KeepAlive(mem)
	return t.Close()
}

const exposedBytes = 16 << 20

// origin is rank 0 with a target in another process.
type origin struct {
	fabric.Transport
	fabric.Endpoint
	inbox
	key   fabric.RemoteKey
	child *exec.Cmd
}

func (o *origin) until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(fabrictest.Patience); !holds(); {
		if o.Transport.Poll(&o.inbox) == 0 {
			runtime.Gosched()
		}
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", fabrictest.Patience, what)
		}
	}
}

func start(t testing.TB, o Options, role string) *origin {
	t.Helper()
	need(t, o)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), roleEnv+"="+role)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	w := &wire{in: bufio.NewReader(out), out: func(line string) error {
		_, err := in.Write([]byte(line))
		return err
	}}
	tr, err := New(w, o)
	require.NoError(t, err)
	g := &origin{Transport: tr, child: c}
	t.Cleanup(func() { _ = tr.Close() })
	g.Endpoint, err = tr.Connect(1)
	require.NoError(t, err)
	g.until(t, "the target tells its key", func() bool { return g.messages == 1 })
	g.key = fabric.RemoteKey{Addr: g.last.A, Key: g.last.B}
	return g
}

// put starts a put and has it accepted.
func (o *origin) put(t testing.TB, mem []byte, at int, cookie uint64) {
	t.Helper()
	var err error
	o.until(t, "a put is accepted", func() bool {
		_, err = o.Put(fabrictest.Pointer(mem), fabric.RemoteKey{Addr: o.key.Addr + uint64(at), Key: o.key.Key}, len(mem), cookie)
		return err != fabric.ErrAgain
	})
	require.NoError(t, err)
}

func roles() map[string]Options {
	return map[string]Options{
		"tcp;ofi_rxm":        {Provider: "tcp;ofi_rxm"},
		"tcp;ofi_rxm as EFA": {Provider: "tcp;ofi_rxm", Restrictions: EFA},
		"shm":                {Provider: "shm"},
		"verbs;ofi_rxm":      {Provider: "verbs;ofi_rxm"},
	}
}

func TestTwoProcesses(t *testing.T) {
	for role, o := range roles() {
		t.Run(role, func(t *testing.T) {
			g := start(t, o, role)
			mem, back := fabrictest.Memory(t, 3<<20), fabrictest.Memory(t, 3<<20)
			fabrictest.Fill(mem, 5)
			g.put(t, mem, 4096, 1)
			g.until(t, "the put completes", func() bool { return len(g.completed) == 1 })
			require.NoError(t, g.completed[0].err)
			_, err := g.Get(fabrictest.Pointer(back), fabric.RemoteKey{Addr: g.key.Addr + 4096, Key: g.key.Key}, len(back), 2)
			require.NoError(t, err)
			g.until(t, "the get completes", func() bool { return len(g.completed) == 2 })
			require.NoError(t, g.completed[1].err)
			assert.Empty(t, fabrictest.Check(back, 5))
			require.NoError(t, g.Send(&fabric.Header{Kind: fabric.KindEager, Aux: 77}, []byte("to and fro")))
			g.until(t, "the answer", func() bool { return g.messages == 2 })
			assert.Equal(t, uint32(77), g.last.Aux)
			assert.Equal(t, "to and fro", string(g.payload))
			t.Log(g.Transport.(fabric.Describer).Describe(1))
			require.NoError(t, g.Transport.Close())
			ended := make(chan error, 1)
			go func() { ended <- g.child.Wait() }()
			select {
			case err := <-ended:
				assert.NoError(t, err, "the target ends by itself when the origin closes")
			case <-time.After(fabrictest.Patience):
				t.Fatal("the target was not told that the origin has closed")
			}
		})
	}
}

// A peer is killed in the middle of a write: the connection breaks, or at least the origin
// can continue and close. Each operation completes at most once.
func TestKilledPeer(t *testing.T) {
	for role, o := range roles() {
		t.Run(role, func(t *testing.T) {
			if role == "shm" {
				t.Skip("a process that dies inside libfabric's shm provider leaves a spin lock taken, for which its peers wait for ever")
			}
			g := start(t, o, role)
			mem := fabrictest.Memory(t, exposedBytes)
			region, err := g.Register(fabrictest.Pointer(mem), len(mem))
			require.NoError(t, err)
			// Four puts are under way all the time, also when it is killed, until one fails.
			posted, failed, killed := 0, 0, false
			begin := time.Now()
			for seen := 0; failed == 0; {
				if posted-len(g.completed) < 4 {
					_, err := g.Put(fabrictest.Pointer(mem), g.key, len(mem), uint64(posted))
					if err == nil {
						posted++
					} else if err != fabric.ErrAgain {
						require.True(t, killed, "before the peer is killed: %v", err)
						break
					}
				}
				g.Transport.Poll(&g.inbox)
				for ; seen < len(g.completed); seen++ {
					if err := g.completed[seen].err; err != nil {
						assert.ErrorContains(t, err, "rank 1")
						failed++
					}
				}
				if !killed && seen >= 2 {
					killed, begin = true, time.Now()
					require.NoError(t, g.child.Process.Kill())
				}
				if time.Since(begin) > fabrictest.Patience {
					break
				}
			}
			t.Logf("%d puts posted, %d completed, %d with errors, after %v; broken: %v", posted, len(g.completed), failed, time.Since(begin), g.broken)
			g.until(t, "the connection is broken", func() bool { return len(g.broken) > 0 })
			assert.Len(t, g.completed, posted)
			assert.Len(t, g.broken, 1)
			assert.NoError(t, region.Close())
			require.NoError(t, g.Transport.Close())
		})
	}
}
