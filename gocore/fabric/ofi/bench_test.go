//go:build cgo

package ofi

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

// benchEnv enables TestAgainstC. The machine must be quiet.
const benchEnv = "GORMAPY_OFI_BENCH"

// median of an odd number of figures.
func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// TestAgainstC compares puts of the transport with a plain libfabric write loop in
// C, between two processes each, in turns. It prints; it asserts nothing about time.
func TestAgainstC(t *testing.T) {
	provider := os.Getenv(benchEnv)
	if provider == "" {
		t.Skip("a comparison that needs a quiet machine: set " + benchEnv + " to a provider, such as tcp;ofi_rxm")
	}
	o := Options{Provider: provider}
	need(t, o)
	c, err := choose(o)
	require.NoError(t, err)
	domain := c.Info.Domain
	c.Info.Free()
	loop := filepath.Join(t.TempDir(), "write_loop")
	out, err := exec.Command("cc", "-O2", "-Wall", "-o", loop, "testdata/write_loop.c", "-lfabric").CombinedOutput()
	require.NoError(t, err, "the comparison needs cc and libfabric's headers: %s", out)

	g := start(t, o, provider)
	const rounds = 11
	for _, s := range []struct {
		size, window, count int
		what                string
	}{{1 << 20, 16, 100, "bandwidth"}, {8, 1, 500, "latency"}, {8, 64, 5000, "rate"}, {65536, 16, 500, "bandwidth"}} {
		cmd := exec.Command(loop, provider, domain, strconv.Itoa(s.size), strconv.Itoa(s.window), strconv.Itoa(s.count), strconv.Itoa(rounds+2))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		pipe, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(pipe)
		mem := fabrictest.Memory(t, s.size)
		region, err := g.Register(fabrictest.Pointer(mem), s.size)
		require.NoError(t, err)
		// Both targets poll all the time, so each stops while the other has its turn.
		var theirs, ours, ratios []float64
		for r := range rounds + 2 {
			require.NoError(t, g.child.Process.Signal(unix.SIGSTOP))
			_, err := fmt.Fprintln(in)
			require.NoError(t, err)
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			a, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
			require.NoError(t, err)
			require.NoError(t, g.child.Process.Signal(unix.SIGCONT))
			b := putLoop(t, g, mem, s.window, s.count).Seconds()
			if r >= 2 {
				theirs, ours, ratios = append(theirs, a), append(ours, b), append(ratios, a/b)
			}
		}
		_ = in.Close()
		_ = cmd.Wait()
		_ = region.Close()
		a, b := median(theirs), median(ours)
		n := float64(s.count)
		fmt.Printf("%-9s %7d B, window %2d: C %9.3f us a write, %8.1f MB/s; transport %9.3f us, %8.1f MB/s; speed of C reached: %.0f %% (median of %d rounds: %.0f %%)\n",
			s.what, s.size, s.window, a/n*1e6, n*float64(s.size)/a/1e6, b/n*1e6, n*float64(s.size)/b/1e6, 100*a/b, rounds, 100*median(ratios))
	}
}

// BenchmarkMessage times a message of 8 bytes and its answer, on one thread, with and without
// seals.
func BenchmarkMessage(b *testing.B) {
	for _, sealed := range []bool{false, true} {
		b.Run(fmt.Sprintf("sealed=%v", sealed), func(b *testing.B) {
			o := Options{Provider: "tcp;ofi_rxm", Sealed: sealed}
			need(b, o)
			w := fabrictest.NewWorld(b, 2, maker(o))
			got := 0
			for _, r := range w.Ranks {
				r.Pause()
				r.OnDeliver = func(int, *fabric.Header, []byte) { got++ }
			}
			var data [8]byte
			send := func(from int) {
				for got = 0; ; {
					err := w.Ranks[from].Endpoint(1-from).Send(&fabric.Header{Kind: fabric.KindEager}, data[:])
					if err == nil {
						break
					}
					require.ErrorIs(b, err, fabric.ErrAgain)
					w.Ranks[0].Poll()
					w.Ranks[1].Poll()
				}
				for got == 0 {
					w.Ranks[from].Poll()
					w.Ranks[1-from].Poll()
				}
			}
			send(0)
			send(1)
			for b.Loop() {
				send(0)
				send(1)
			}
		})
	}
}

func putLoop(t testing.TB, g *origin, mem []byte, window, count int) time.Duration {
	begin := time.Now()
	g.completed = g.completed[:0]
	posted, ended := 0, 0
	for ended < count {
		for posted < count && posted-ended < window {
			done, err := g.Put(fabrictest.Pointer(mem), g.key, len(mem), uint64(posted))
			if err == fabric.ErrAgain {
				break
			}
			require.NoError(t, err)
			posted++
			if done {
				ended++
			}
		}
		g.Transport.Poll(&g.inbox)
		for _, f := range g.completed {
			require.NoError(t, f.err)
		}
		ended += len(g.completed)
		g.completed = g.completed[:0]
		runtime.KeepAlive(mem)
	}
	return time.Since(begin)
}
