package workers

import (
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/sys"
)

// Several callers divide copies at the same time. Each piece is copied once, and none after Copy has returned.
func TestEveryPieceOnce(t *testing.T) {
	var callers sync.WaitGroup
	for seed := range uint64(4) {
		callers.Go(func() {
			draw := rand.New(rand.NewPCG(seed, 1))
			for range 200 {
				n := draw.IntN(6*PieceBytes) + 1
				to := make([]atomic.Uint32, n/1000+1) // a counter for each 1000 bytes
				var over atomic.Bool
				err := Copy(n, draw.IntN(Most+2), func(at, n int) error {
					for i := at; i < at+n; i++ {
						if i%1000 == 0 {
							to[i/1000].Add(1)
						}
					}
					if draw := at / PieceBytes % 3; draw == 0 {
						time.Sleep(50 * time.Microsecond) // others take the next ones
					}
					assert.False(t, over.Load(), "a piece is copied after the end")
					return nil
				})
				over.Store(true)
				assert.NoError(t, err)
				for i := range to[:(n+999)/1000] {
					if c := to[i].Load(); c != 1 {
						t.Errorf("byte %d of %d is copied %d times", i*1000, n, c)
						return
					}
				}
			}
		})
	}
	callers.Wait()
}

// helped has workers begin before the caller is through, which takes some time; so each of them takes a piece.
func helped(piece func(at, n int) error) error {
	return Copy(40*PieceBytes, Most, func(at, n int) error {
		time.Sleep(time.Millisecond)
		return piece(at, n)
	})
}

func TestWorkersHelp(t *testing.T) {
	var now, most atomic.Int32
	require.NoError(t, helped(func(int, int) error {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(time.Millisecond)
		now.Add(-1)
		return nil
	}))
	assert.Greater(t, most.Load(), int32(1))
	assert.LessOrEqual(t, most.Load(), int32(Most+1))
}

func TestFirstErrorEndsTheCopy(t *testing.T) {
	refused := errors.New("refused")
	var pieces atomic.Int32
	err := helped(func(at, _ int) error {
		pieces.Add(1)
		if at >= 4*PieceBytes {
			return refused
		}
		return nil
	})
	assert.Equal(t, refused, err)
	assert.Less(t, pieces.Load(), int32(20))
}

func TestPanicIsTheCallers(t *testing.T) {
	for range 5 {
		assert.PanicsWithValue(t, "of a piece", func() {
			_ = helped(func(int, int) error { panic("of a piece") })
		})
	}
	TestWorkersHelp(t) // they go on
}

// A fault of a piece is an error, whichever thread copies it.
func TestFault(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	mem, err := unix.Mmap(-1, 0, 40*PieceBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	defer func() { _ = unix.Munmap(mem) }()
	for bad := range 40 {
		require.NoError(t, unix.Mprotect(mem[bad*PieceBytes:][:4096], unix.PROT_NONE))
		for _, workers := range []int{0, 1, Most} {
			err := Copy(len(mem), workers, func(at, n int) error {
				fabric.Probe(fabric.Pointer(addr(mem)+uint64(at)), n)
				return nil
			})
			assert.True(t, sys.IsFault(err), "%v", err)
		}
		require.NoError(t, unix.Mprotect(mem[bad*PieceBytes:][:4096], unix.PROT_READ|unix.PROT_WRITE))
	}
}
