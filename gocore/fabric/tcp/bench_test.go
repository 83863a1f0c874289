package tcp

import (
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

// The benchmarks start a second process and compare the transport with bare
// sockets:
//
//	go test -run xxx -bench . -benchtime 1s -count 5 ./gocore/fabric/tcp
//
// PingPong measures a round trip. Each kind of Stream moves a MiB per operation, in
// pieces that are placed in the receiver's memory.

const benchEnv = "GORMAPY_TCP_BENCH"

func TestMain(m *testing.M) {
	if spec := os.Getenv(benchEnv); spec != "" {
		if err := serve(strings.Fields(spec)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// partner starts the second process, and ends it with the benchmark.
func partner(b *testing.B, spec ...string) {
	b.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), benchEnv+"="+strings.Join(spec, " "))
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
}

// serve runs in the second process.
func serve(spec []string) error {
	runtime.LockOSThread()
	switch kind := spec[0]; kind {
	case "net":
		c, err := net.Dial("tcp", spec[1])
		if err != nil {
			return err
		}
		buf := make([]byte, 8)
		for {
			if _, err := io.ReadFull(c, buf); err != nil {
				return nil
			}
			if _, err := c.Write(buf); err != nil {
				return nil
			}
		}
	case "raw", "raw-stream":
		fd, err := dialRaw(spec[1])
		if err != nil {
			return err
		}
		if kind == "raw" {
			for buf := make([]byte, 8); readFull(fd, buf) && writeFull(fd, buf); {
			}
			return nil
		}
		n, _ := strconv.Atoi(spec[2])
		for buf := make([]byte, n); writeFull(fd, buf); {
		}
		return nil
	}
	secret, _ := hex.DecodeString(spec[1])
	card, _ := hex.DecodeString(spec[2])
	guard, _ := strconv.Atoi(spec[3])
	t, err := New(other{fabrictest.Directories(2)[1], secret, map[int][]byte{0: card}}, Options{Guard: Guard(guard)})
	if err != nil {
		return err
	}
	ep, err := t.Connect(0)
	if err != nil {
		return err
	}
	s := &echo{ep: ep}
	h := fabric.Header{Kind: 1, Len: 1 << 20}
	for ep.Send(&h, nil) == fabric.ErrAgain { // hello
		t.Poll(s)
	}
	if spec[0] == "tcp" {
		for !s.broken {
			t.Poll(s)
		}
		return nil
	}
	buf := make([]byte, piece)
	for !s.broken {
		if ep.Send(&h, buf) != nil {
			t.Poll(s)
		}
	}
	return nil
}

// echo is a Sink that answers each message with its payload.
type echo struct {
	ep     fabric.Endpoint
	got    int
	bytes  int
	mem    []byte
	silent bool
	broken bool
}

func (e *echo) Deliver(_ int, h *fabric.Header, payload []byte) {
	e.got++
	e.bytes += len(payload)
	if !e.silent {
		_ = e.ep.Send(h, payload)
	}
}

func (e *echo) Place(int, *fabric.Header, int) unsafe.Pointer {
	if len(e.mem) == 0 {
		return nil
	}
	return unsafe.Pointer(&e.mem[0])
}
func (e *echo) Completed(uint64, error) {}
func (e *echo) Broken(int, error)       { e.broken = true }

func pair2(b *testing.B, kind string, g Guard) (*Transport, *echo) {
	dirs := fabrictest.Directories(2)
	t, err := New(dirs[0], Options{Guard: g})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = t.Close() })
	partner(b, kind, hex.EncodeToString(dirs[0].Secret()), hex.EncodeToString(dirs[0].Card(0)), strconv.Itoa(int(g)))
	ep, err := t.Connect(1)
	if err != nil {
		b.Fatal(err)
	}
	s := &echo{ep: ep, silent: true, mem: make([]byte, maxShort)}
	for s.got == 0 {
		t.Poll(s)
	}
	return t, s
}

func dialRaw(at string) (int, error) {
	c, err := net.Dial("tcp", at)
	if err != nil {
		return -1, err
	}
	return rawOf(c.(*net.TCPConn))
}

// rawOf returns a duplicate of c's socket that Go's poller does not watch.
func rawOf(c *net.TCPConn) (int, error) {
	f, err := c.File()
	if err != nil {
		return -1, err
	}
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		return -1, err
	}
	_, _ = f.Close(), c.Close()
	tune(fd, 0)
	return fd, unix.SetNonblock(fd, true)
}

func readFull(fd int, b []byte) bool {
	for len(b) > 0 {
		n, errno := receive(fd, b)
		if errno == unix.EAGAIN {
			continue
		}
		if errno != 0 || n == 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

func writeFull(fd int, b []byte) bool {
	for len(b) > 0 {
		n, errno := send(fd, b)
		if errno == unix.EAGAIN {
			continue
		}
		if errno != 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

func listening(b *testing.B, kind string, more ...string) *net.TCPConn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	partner(b, append([]string{kind, l.Addr().String()}, more...)...)
	c, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// Sending and receiving allocate nothing.
func TestNoAllocation(t *testing.T) {
	each(t, Clear, noAllocation)
}

func noAllocation(t *testing.T, g Guard) {
	w := fabrictest.NewWorld(t, 2, guarded(g))
	exchange(t, w)
	ends := [2]*echo{}
	for i, r := range w.Ranks {
		r.Pause()
		ends[i] = &echo{ep: r.Endpoint(1 - i), silent: true, mem: make([]byte, maxShort)}
	}
	for _, size := range []int{8, joinMax, placeMin, placeMin + 1, piece, maxShort} {
		h, buf := fabric.Header{Kind: 1}, make([]byte, size)
		allocs := testing.AllocsPerRun(100, func() {
			for i, e := range ends {
				to := ends[1-i]
				want := to.got + 1
				for e.ep.Send(&h, buf) != nil {
					inside(w.Ranks[i]).Poll(e)
				}
				for to.got < want {
					inside(w.Ranks[1-i]).Poll(to)
					inside(w.Ranks[i]).Poll(e)
				}
			}
		})
		if allocs != 0 {
			t.Errorf("a ping-pong of %d bytes allocates %v times", size, allocs)
		}
	}
}

func pingPong(b *testing.B, size int, g Guard) {
	t, s := pair2(b, "tcp", g)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h := fabric.Header{Kind: 1, Len: uint64(size)}
	buf := make([]byte, size)
	b.ResetTimer()
	for range b.N {
		want := s.got + 1
		if err := s.ep.Send(&h, buf); err != nil {
			b.Fatal(err)
		}
		for s.got < want {
			t.Poll(s)
		}
	}
}

func BenchmarkPingPong(b *testing.B) {
	for _, size := range []int{8, piece} {
		for g := range guards {
			b.Run(fmt.Sprintf("tcp/%d/%s", size, guardNames[g]), func(b *testing.B) { pingPong(b, size, g) })
		}
	}
	b.Run("raw", func(b *testing.B) {
		fd, err := rawOf(listening(b, "raw"))
		if err != nil {
			b.Fatal(err)
		}
		defer unix.Close(fd)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		buf := make([]byte, 8)
		b.ResetTimer()
		for range b.N {
			if !writeFull(fd, buf) || !readFull(fd, buf) {
				b.Fatal("the partner is gone")
			}
		}
	})
	b.Run("net", func(b *testing.B) {
		c := listening(b, "net")
		defer c.Close()
		buf := make([]byte, 8)
		b.ResetTimer()
		for range b.N {
			_, _ = c.Write(buf)
			if _, err := io.ReadFull(c, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkStream(b *testing.B) {
	const size = 1 << 20
	for g := range guards {
		b.Run("tcp/"+guardNames[g], func(b *testing.B) {
			t, s := pair2(b, "tcp-stream", g)
			b.SetBytes(size)
			b.ResetTimer()
			for from := s.bytes; s.bytes-from < b.N*size; {
				t.Poll(s)
			}
		})
	}
	b.Run("raw", func(b *testing.B) {
		fd, err := rawOf(listening(b, "raw-stream", strconv.Itoa(128<<10)))
		if err != nil {
			b.Fatal(err)
		}
		defer unix.Close(fd)
		buf := make([]byte, 128<<10)
		b.SetBytes(size)
		b.ResetTimer()
		for range b.N * size / len(buf) {
			if !readFull(fd, buf) {
				b.Fatal("the partner is gone")
			}
		}
	})
}
