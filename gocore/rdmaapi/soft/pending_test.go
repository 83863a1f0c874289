package soft

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/rdmaapi/backend"
)

// Silent connections, some before and some while queue pairs connect, do not keep
// queue pairs from connecting.
func TestQueuePairsConnectBesideSilentPendingConnections(t *testing.T) {
	for _, b := range []Backend{TCP, SHM} {
		t.Run(b.Name(), func(t *testing.T) {
			a := newSide(t, b)
			network := map[string]string{"tcp": "tcp", "shm": "unix"}[b.Name()]
			silent := func() {
				conn, err := net.Dial(network, a.ctx.listen.Addr().String())
				require.NoError(t, err)
				t.Cleanup(func() { conn.Close() })
			}
			for range 300 {
				silent()
			}
			begun := time.Now()
			for range 5 {
				q, err := a.region.pd.CreateQP(backend.QPInit{Send: a.qp.sendCQ, Recv: a.qp.recvCQ, MaxSend: 8, MaxRecv: 8})
				require.NoError(t, err)
				s := &side{ctx: a.ctx, qp: q.(*qp), memory: a.memory, region: a.region}
				d := newSide(t, b)
				s.connect(t, d)
				for range 20 {
					silent()
				}
				d.connect(t, s)
				d.post(t, backend.OpWrite, 8, s)
				assert.Equal(t, backend.Success, d.wait(t, 1)[0].Status)
			}
			assert.Less(t, time.Since(begun), patience-time.Second)
		})
	}
}

// A program that closes the pidfd, which is not its own, still reaches the peer.
func TestAClosedDescriptorOfThePeersProcess(t *testing.T) {
	for _, instead := range []string{"nothing", "readable"} {
		t.Run(instead, func(t *testing.T) {
			a, b := newSide(t, SHM), newSide(t, SHM)
			a.connect(t, b)
			b.connect(t, a)
			a.post(t, backend.OpWrite, room, b)
			require.Equal(t, backend.Success, a.wait(t, 1)[0].Status)
			b.qp.mu.Lock()
			reader := b.qp.link
			b.qp.mu.Unlock()
			require.True(t, reader.reaches)
			pipe := make([]int, 2)
			require.NoError(t, unix.Pipe2(pipe, unix.O_CLOEXEC))
			t.Cleanup(func() { unix.Close(pipe[0]); unix.Close(pipe[1]) })
			taken := int(reader.process.fd.Load())
			if instead == "nothing" {
				require.NoError(t, unix.Close(taken))
			} else {
				_, err := unix.Write(pipe[1], []byte("to be read"))
				require.NoError(t, err)
				require.NoError(t, unix.Dup3(pipe[0], taken, unix.O_CLOEXEC))
				t.Cleanup(func() { assert.NoError(t, unix.Close(taken), "the descriptor was closed, which is the program's now") })
			}
			copy(a.memory[guard:], "some other bytes")
			a.post(t, backend.OpWrite, room, b)
			done := a.wait(t, 1)[0]
			assert.Equal(t, backend.Success, done.Status, done.Detail)
			assert.True(t, bytes.Equal(a.memory[guard:guard+room], b.memory[guard:guard+room]))
		})
	}
}
