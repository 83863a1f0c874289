package rendezvous

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/boot/storetest"
)

// impostor answers hellos with challenges at a port. It does not know the secret, and is silent after that.
// It returns how many bytes behind the hellos it has heard, once the test is over with it.
func impostor(t *testing.T, port int) (heard func() int64) {
	t.Helper()
	l, err := net.Listen("tcp", address(port))
	require.NoError(t, err)
	_, hello := protocol.Initiate([]byte("guessed"))
	var sum atomic.Int64
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				said := make([]byte, len(hello))
				if _, err := io.ReadFull(c, said); err != nil {
					return
				}
				challenge := append(bytes.Clone(said[:16]), make([]byte, 64)...)
				_, _ = rand.Read(challenge[16:])
				_, _ = c.Write(challenge)
				n, _ := io.Copy(io.Discard, c)
				sum.Add(n)
			})
		}
	})
	return func() int64 {
		l.Close()
		work.Wait()
		return sum.Load()
	}
}

// TestImpostor: one that answers in rank 0's place without the secret neither learns anything nor holds
// the rank up.
func TestImpostor(t *testing.T) {
	ports := []int{freePort(t), freePort(t)}
	heard := impostor(t, ports[0])
	where := place{hosts: []string{"127.0.0.1"}, ports: ports}
	ranks := make([]*Store, 2)
	begin := time.Now()
	var wg sync.WaitGroup
	for r := range ranks {
		wg.Go(func() {
			s, err := job{name: "test", rank: r, size: 2, node: 0, where: where}.join("test")
			if assert.NoError(t, err) {
				ranks[r] = s
			}
		})
	}
	wg.Wait()
	require.NotContains(t, ranks, (*Store)(nil))
	assert.Less(t, time.Since(begin), answerLimit)
	each(ranks, func(s *Store) { assert.NoError(t, storetest.Play(s)) })
	assert.Zero(t, heard(), "who has not proved that he knows the secret hears who calls")
}

// deadlines notes the deadlines of a connection.
type deadlines struct {
	net.Conn
	mu  sync.Mutex
	set []time.Time
}

func (d *deadlines) SetDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set = append(d.set, t)
	return nil
}

func (d *deadlines) SetWriteDeadline(t time.Time) error { return d.SetDeadline(t) }

// TestDeadlineOfALink: the end of the handshake does not clear the deadline of what the link writes.
func TestDeadlineOfALink(t *testing.T) {
	below := &deadlines{}
	below.Conn, _ = net.Pipe()
	held := &heldConn{Conn: below, open: make(chan struct{})}
	l := newLink(held, nil)
	l.send(frame{opFenced, nil})
	time.Sleep(20 * time.Millisecond) // the link may begin
	_ = below.SetDeadline(time.Time{})
	close(held.open)
	l.flush(time.Now().Add(10 * time.Second))
	below.mu.Lock()
	defer below.mu.Unlock()
	require.Len(t, below.set, 2)
	assert.False(t, below.set[1].IsZero(), "the link's own comes last")
	l.close()
}
