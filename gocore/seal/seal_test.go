package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/handshake"
)

var key = bytes.Repeat([]byte{7}, 32)

func newWay(key []byte) *Way {
	w, err := NewWay(key)
	if err != nil {
		panic(err)
	}
	return w
}

func TestKeysOfAnotherLength(t *testing.T) {
	_, err := NewWay(make([]byte, 31))
	assert.ErrorContains(t, err, "make AES-GCM: ")
}

// In a program that may not use these algorithms there is an error, and no panic.
func TestWithoutTheAlgorithms(t *testing.T) {
	const inside = "SEAL_TEST_WITHOUT_THE_ALGORITHMS"
	if os.Getenv(inside) == "" {
		assert.NoError(t, Usable())
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), inside+"=1", "GODEBUG=fips140=only")
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s", out)
		return
	}
	assert.ErrorIs(t, Usable(), handshake.ErrNoKeys)
	_, err := NewWay(key)
	assert.ErrorContains(t, err, "make AES-GCM: ")
}

func sealed(w *Way, data string, readable int) []byte {
	record := append([]byte(data), make([]byte, Overhead)...)
	w.Seal(record, readable)
	return record
}

func TestRecordsOpenInTheirOrder(t *testing.T) {
	defer func(n uint64) { rekeyAfter = n }(rekeyAfter)
	rekeyAfter = 3
	out, in := newWay(key), newWay(bytes.Clone(key))
	seen := map[string]bool{}
	for range 20 {
		for _, readable := range []int{0, 4, 11} {
			r := sealed(out, "hello world", readable)
			assert.Equal(t, "hello world"[:readable], string(r[:readable]))
			if readable == 0 {
				assert.NotContains(t, string(r), "world")
			}
			assert.False(t, seen[string(r)], "no record is like another")
			seen[string(r)] = true
			require.NoError(t, in.Open(r, readable))
			assert.Equal(t, "hello world", string(r[:11]))
		}
	}
	assert.NotEqual(t, key, in.key, "there was another key meanwhile")
	empty := sealed(out, "", 0)
	assert.NoError(t, in.Open(empty, 0))
}

// Whatever is done to records, none opens but those before it, and none after it.
func TestNothingElseOpens(t *testing.T) {
	for _, readable := range []int{0, 4, 11} {
		first := func() (out, in *Way) { return newWay(key), newWay(key) }
		out, _ := first()
		one, two, three := sealed(out, "one one one", readable), sealed(out, "two two two", readable), sealed(out, "three three", readable)
		wrong := map[string][]byte{
			"dropped": three, "repeated": one, "short": two[:len(two)-1], "empty": nil, "only a tag": two[len(two)-Overhead:],
			"another key": sealed(newWay(bytes.Repeat([]byte{8}, 32)), "two two two", readable),
			"moved":       append(append([]byte{}, two[:5]...), three[5:]...),
		}
		for bit := range len(two) * 8 {
			flipped := bytes.Clone(two)
			flipped[bit/8] ^= 1 << (bit % 8)
			wrong[fmt.Sprint("bit ", bit)] = flipped
		}
		for what, record := range wrong {
			_, in := first()
			require.NoError(t, in.Open(bytes.Clone(one), readable))
			assert.ErrorIs(t, in.Open(bytes.Clone(record), readable), ErrForged, what)
			assert.ErrorIs(t, in.Open(bytes.Clone(two), readable), ErrForged, "%s, and then the right one", what)
		}
		_, in := first()
		assert.ErrorIs(t, in.Open(two, (readable+4)%15), ErrForged, "another part is readable")
	}
}

func TestSealingAllocatesNothing(t *testing.T) {
	out, in := newWay(key), newWay(key)
	for _, readable := range []int{8, 64 << 10} {
		record := make([]byte, 64<<10+Overhead)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			out.Seal(record, readable)
			if in.Open(record, readable) != nil {
				panic("it does not open")
			}
		}))
	}
}

var protocol = &handshake.Protocol{Name: "seal", Version: 1, Limits: []int{0}, Keyed: true}

// between returns the two ends of a connection after its handshake.
func between(t *testing.T) (a, b *Conn) {
	t.Helper()
	near, far := tcp(t)
	secret := []byte("mellon")
	done := make(chan error, 1)
	go func() {
		x := protocol.Accept(func(handshake.Tag) []byte { return secret })
		_, err := x.Hear(far)
		if err == nil {
			_, err = x.Hear(far)
		}
		if err == nil {
			b, err = Secure(far, x)
		}
		done <- err
	}()
	x, err := protocol.Call(near, secret)
	require.NoError(t, err)
	require.NoError(t, x.Tell(near, nil))
	a, err = Secure(near, x)
	require.NoError(t, err)
	require.NoError(t, <-done)
	return a, b
}

// tcp returns the two ends of a connection.
func tcp(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	near, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	far, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { near.Close(); far.Close() })
	for _, c := range []net.Conn{near, far} {
		require.NoError(t, c.SetDeadline(time.Now().Add(60*time.Second)))
	}
	return near, far
}

func TestConn(t *testing.T) {
	a, b := between(t)
	text := bytes.Repeat([]byte("a long text that is not readable "), 20000)
	var both sync.WaitGroup
	for _, c := range [][2]*Conn{{a, b}, {b, a}} {
		both.Go(func() {
			for _, n := range []int{0, 1, 5, maxData, maxData + 1, len(text)} {
				got, err := c[0].Write(text[:n])
				assert.NoError(t, err)
				assert.Equal(t, n, got)
			}
			_, err := c[0].Write([]byte("end"))
			assert.NoError(t, err)
		})
		both.Go(func() {
			for _, n := range []int{1, 5, maxData, maxData + 1, len(text)} {
				buf := make([]byte, n)
				_, err := io.ReadFull(c[1], buf)
				assert.NoError(t, err)
				assert.True(t, bytes.Equal(buf, text[:n]))
			}
			buf := make([]byte, 100)
			n, err := c[1].Read(buf)
			assert.NoError(t, err)
			assert.Equal(t, "end", string(buf[:n]))
		})
	}
	both.Wait()
	require.NoError(t, a.Close())
	_, err := b.Read(make([]byte, 1))
	assert.Equal(t, io.EOF, err)
}

// A deadline that passes in the middle of a record loses nothing; a record that ends early is an error.
func TestConnInPieces(t *testing.T) {
	a, b := between(t)
	near := a.Conn
	record := binary.LittleEndian.AppendUint32(nil, 5)
	record = append(append(record, "hello"...), make([]byte, Overhead)...)
	a.out.Seal(record, lengthBytes)
	buf := make([]byte, 10)
	for i := range record {
		_, err := near.Write(record[i : i+1])
		require.NoError(t, err)
		if i+1 < len(record) {
			require.NoError(t, b.SetReadDeadline(time.Now().Add(2*time.Millisecond)))
			_, err = b.Read(buf)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		}
	}
	require.NoError(t, b.SetReadDeadline(time.Now().Add(60*time.Second)))
	n, err := b.Read(buf)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(buf[:n]))
	for _, cut := range []int{2, lengthBytes, 12} {
		a, b := between(t)
		near := a.Conn
		_, err = near.Write(record[:cut])
		require.NoError(t, err)
		require.NoError(t, near.Close())
		_, err = b.Read(buf)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", cut)
	}
}

// A connection on which a byte is changed gives what came before, and nothing more, ever.
func TestConnThatIsTamperedWith(t *testing.T) {
	const records = 3
	for at := range records * (lengthBytes + 5 + Overhead) {
		a, b := between(t)
		tap := &tapped{Conn: a.Conn, at: at}
		a.Conn = tap
		for range records {
			_, err := a.Write([]byte("hello"))
			require.NoError(t, err)
		}
		_, err := a.Write(make([]byte, maxData)) // a longer length is no reason to wait
		require.NoError(t, err)
		require.NoError(t, a.Close())
		said, err := io.ReadAll(b)
		assert.Equal(t, "hellohellohello"[:at/(lengthBytes+5+Overhead)*5], string(said), "byte %d", at)
		assert.True(t, errors.Is(err, ErrForged) || errors.Is(err, io.ErrUnexpectedEOF), "byte %d: %v", at, err)
		if errors.Is(err, ErrForged) {
			_, err = b.Read(make([]byte, 1))
			assert.ErrorIs(t, err, ErrForged, "it stays so")
		}
	}
}

// tapped changes one byte of what is written.
type tapped struct {
	net.Conn
	at int
}

func (c *tapped) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	if c.at >= 0 && c.at < len(b) {
		b[c.at] ^= 0x10
	}
	c.at -= len(b)
	return c.Conn.Write(b)
}

// After a write that was not whole nothing is written any more.
func TestConnAfterAWriteThatFailed(t *testing.T) {
	a, _ := between(t)
	require.NoError(t, a.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := a.Write(make([]byte, 64<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, a.SetWriteDeadline(time.Time{}))
	_, err = a.Write([]byte("x"))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// FuzzConn: bytes that nobody has sealed give an error.
func FuzzConn(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{1, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9})
	f.Add([]byte{0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Conn{Conn: &replay{data: data}, in: newWay(key)}
		if said, err := io.ReadAll(c); len(said) > 0 || err == nil && len(data) > 0 {
			t.Fatalf("%d bytes open as %q, %v", len(data), said, err)
		}
	})
}

type replay struct {
	net.Conn
	data  []byte
	reads int
}

func (r *replay) Read(b []byte) (int, error) {
	r.reads++
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.data)
	r.data = r.data[n:]
	return n, nil
}

// What has arrived is read at once: not first the length of a record and then the rest.
func TestReadsOfRecords(t *testing.T) {
	out := newWay(key)
	r := &replay{}
	c := &Conn{Conn: r, in: newWay(key)}
	add := func(text []byte) {
		record := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
		record = append(append(record, text...), make([]byte, Overhead)...)
		out.Seal(record, lengthBytes)
		r.data = append(r.data, record...)
	}
	for k := range 100 {
		add(bytes.Repeat([]byte{byte(k)}, 20))
	}
	for k := range 100 {
		got := make([]byte, 20)
		_, err := io.ReadFull(c, got)
		require.NoError(t, err)
		assert.Equal(t, bytes.Repeat([]byte{byte(k)}, 20), got)
	}
	assert.Equal(t, 1, r.reads, "of 100 records")
	long := bytes.Repeat([]byte("long "), maxData/5)
	for k := range 10 { // the buffer grows once, and then is long enough
		r.reads = 0
		add(long)
		got := make([]byte, len(long))
		_, err := io.ReadFull(c, got)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(long, got))
		if k > 0 {
			assert.Equal(t, 1, r.reads)
		}
	}
	assert.LessOrEqual(t, len(c.buf), longestBuf)
}
