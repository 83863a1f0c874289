package shm

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/sys"
	"gormapy/gocore/sys/atom"
)

const stressRing = ringHeader + 16*line

// stressByte returns byte i of message k, stressLen the length of message k.
func stressByte(k, i int) byte { return byte(k*31 + i*7 + 1) }
func stressLen(k int) int      { return (k * 37) % (8*line - prefix + 1) }

// TestRingStressSender runs as the sending process of TestRingStress.
func TestRingStressSender(t *testing.T) {
	path := os.Getenv("GORMAPY_RING_STRESS")
	if path == "" {
		t.Skip("started by TestRingStress")
	}
	seg, err := sys.OpenSegmentPath(path)
	require.NoError(t, err)
	r := newRing(seg.Mem[:stressRing])
	stop := (*uint32)(unsafe.Pointer(&seg.Mem[stressRing]))
	buf := make([]byte, 8*line)
	for k := 0; atom.Load32(stop) == 0; k++ {
		b := buf[:stressLen(k)]
		for i := range b {
			b[i] = stressByte(k, i)
		}
		h := fabric.Header{Kind: fabric.KindEager, Tag: int32(k), Len: uint64(len(b))}
		for !r.send(&h, b) {
			if atom.Load32(stop) != 0 {
				return
			}
			atom.Yield()
		}
	}
}

// A process sends through a ring of 16 lines for a second, and is killed.
func TestRingStress(t *testing.T) {
	seg, err := sys.NewSegment("ring-stress", stressRing+line)
	require.NoError(t, err)
	defer seg.Close()
	r := newRing(seg.Mem[:stressRing])
	c := exec.Command(os.Args[0], "-test.run=^TestRingStressSender$", "-test.timeout=30s")
	c.Env = append(os.Environ(), fmt.Sprintf("GORMAPY_RING_STRESS=/proc/%d/fd/%d", os.Getpid(), seg.FD))
	require.NoError(t, c.Start())
	defer c.Process.Kill() //nolint:errcheck // an error if the process has already ended
	n, bad := 0, ""
	take := func() bool {
		return r.receive(func(h *fabric.Header, got []byte) {
			if int(h.Tag) != n || len(got) != stressLen(n) {
				bad = fmt.Sprintf("message %d came as %d, %d bytes", n, h.Tag, len(got))
			}
			for i, b := range got {
				if b != stressByte(n, i) {
					bad = fmt.Sprintf("byte %d of message %d is %d", i, n, b)
				}
			}
			n++
		})
	}
	for end := time.Now().Add(time.Second); bad == "" && (time.Now().Before(end) || n == 0); {
		if !take() {
			atom.Yield()
		}
	}
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	for bad == "" && take() {
	}
	require.Empty(t, bad)
	t.Logf("%d messages", n)
}
