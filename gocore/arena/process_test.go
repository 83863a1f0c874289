package arena

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestMain runs the test binary as another process if ARENA_TEST_ROLE names its role.
func TestMain(m *testing.M) {
	roles := map[string]func() error{"peer": peerProcess, "limited": limitedProcess, "refused": refusedProcess}
	if role := roles[os.Getenv("ARENA_TEST_ROLE")]; role != nil {
		if err := role(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("well")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process runs the test binary in a role until it ends.
func process(t *testing.T, role string, input io.Reader, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "ARENA_TEST_ROLE="+role), env...)
	cmd.Stdin = input
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "well\n", string(out))
}

// peerProcess maps the ranges that its parent names and adds one to every byte.
func peerProcess() error {
	var pid, fd, n int
	if _, err := fmt.Sscan(os.Getenv("ARENA_TEST_PEER"), &pid, &fd, &n); err != nil {
		return err
	}
	p, err := OpenPeer(pid, fd)
	if err != nil {
		return err
	}
	for range n {
		var off, bytes uint64
		if _, err := fmt.Scan(&off, &bytes); err != nil {
			return err
		}
		at, err := p.At(off, bytes)
		if err != nil {
			return err
		}
		for i := range bytes {
			*(*byte)(unsafe.Add(at, i))++
		}
	}
	return nil
}

func TestAnotherProcessMapsAllocations(t *testing.T) {
	var all [][]byte
	var where strings.Builder
	for _, n := range []int{1, 64, 3000, 10_000, 70 << 20, 100, 130 << 20, 10} {
		mem, err := Alloc(n, 0)
		require.NoError(t, err)
		all = append(all, mem)
		off, ok := Find(addrOf(mem), n)
		require.True(t, ok)
		if n > 1<<20 { // only its last bytes, the rest needs no pages
			off, n = off+uint64(n-10), 10
		}
		fmt.Fprintln(&where, off, n)
	}
	process(t, "peer", strings.NewReader(where.String()), fmt.Sprintf("ARENA_TEST_PEER=%d %d %d", os.Getpid(), FD(), len(all)))
	for _, mem := range all {
		for _, b := range mem[max(len(mem)-10, 0):] {
			assert.EqualValues(t, 1, b)
		}
		require.NoError(t, Free(mem))
	}
}

func TestViewsOfAPeerStay(t *testing.T) {
	h := &heap{}
	require.NoError(t, h.open())
	p, err := OpenPeer(os.Getpid(), h.file())
	require.NoError(t, err)
	_, err = p.At(0, 1)
	assert.ErrorContains(t, err, "it has 0 bytes")

	first, err := h.alloc(4096, 0)
	require.NoError(t, err)
	at, err := p.At(0, 4096)
	require.NoError(t, err)
	view := p.view.Load()
	*(*byte)(at) = 5
	assert.EqualValues(t, 5, first[0])
	assert.EqualValues(t, smallestView, view.mapped)

	// The file grows within the view, which stays the same.
	_, err = h.alloc(3<<20, 0)
	require.NoError(t, err)
	second, err := p.At(4096, 3<<20)
	require.NoError(t, err)
	assert.Equal(t, view.base, p.view.Load().base)
	assert.Equal(t, unsafe.Add(at, 4096), second)

	// The file grows beyond the view: a larger one is made, and the old one stays valid.
	_, err = h.alloc(100<<20, 0)
	require.NoError(t, err)
	_, err = p.At(0, 103<<20)
	require.NoError(t, err)
	assert.NotEqual(t, view.base, p.view.Load().base)
	assert.EqualValues(t, 128<<20, p.view.Load().mapped)
	first[0] = 6
	assert.EqualValues(t, 6, *(*byte)(at))

	for _, c := range []struct{ off, n uint64 }{{1 << 40, 1}, {0, 1 << 40}, {^uint64(0), 2}, {2, ^uint64(0)}, {h.size, 1}} {
		_, err := p.At(c.off, c.n)
		assert.ErrorContains(t, err, "of a peer's arena: it has", "%v", c)
	}
	_, err = p.At(h.size, 0)
	assert.NoError(t, err)
}

func TestOnlyAnArenaIsOpened(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/file")
	require.NoError(t, err)
	defer f.Close()
	_, err = OpenPeer(os.Getpid(), int(f.Fd()))
	assert.ErrorContains(t, err, "not a sealed memfd")
	_, err = OpenPeer(os.Getpid(), 1<<20)
	assert.ErrorIs(t, err, os.ErrNotExist)
	unsealed, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	defer unix.Close(unsealed)
	_, err = OpenPeer(os.Getpid(), unsealed)
	assert.ErrorContains(t, err, "not a sealed memfd")
}

func TestTheFileCantBeShrunk(t *testing.T) {
	h := &heap{}
	_, err := h.alloc(10_000, 0)
	require.NoError(t, err)
	assert.ErrorIs(t, unix.Ftruncate(h.file(), 0), unix.EPERM)
	_, err = unix.FcntlInt(uintptr(h.file()), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	assert.ErrorIs(t, err, unix.EPERM, "a peer could stop it from growing")
	flags, err := unix.FcntlInt(uintptr(h.file()), unix.F_GETFD, 0)
	require.NoError(t, err)
	assert.Equal(t, unix.FD_CLOEXEC, flags&unix.FD_CLOEXEC)
}

// TestForkedChild simulates a child by changing the heap's pid, since Go's runtime does
// not survive a fork.
func TestForkedChild(t *testing.T) {
	h := &heap{}
	inherited, err := h.alloc(10_000, 0)
	require.NoError(t, err)
	small, err := h.alloc(10, 0)
	require.NoError(t, err)
	inherited[0] = 1
	p, err := OpenPeer(os.Getpid(), h.file())
	require.NoError(t, err)
	off, ok := h.find(addrOf(inherited), 1)
	require.True(t, ok)
	at, err := p.At(off, 1)
	require.NoError(t, err)
	size, end := h.size, h.end

	h.pid++
	mem, err := h.alloc(100_000, 0)
	require.NoError(t, err)
	_, ok = h.find(addrOf(mem), 1)
	assert.False(t, ok, "a child's memory is private")
	assert.Equal(t, size, h.size)
	assert.Equal(t, end, h.end)
	require.NoError(t, h.free(mem))
	require.NoError(t, h.free(inherited))
	require.NoError(t, h.free(small))
	assert.EqualValues(t, 1, *(*byte)(at), "the parent's memory is gone")
	assert.Empty(t, h.spare.without(slabBytes), "a child freed the parent's range")
}

// without returns the ranges that do not have that size.
func (r ranges) without(bytes uint64) (rest ranges) {
	for _, e := range r {
		if e.bytes != bytes {
			rest = append(rest, e)
		}
	}
	return rest
}

// limitedProcess reaches the limits of the file's size, of addresses and of descriptors.
func limitedProcess() error {
	limit := func(what int, n uint64) { _ = syscall.Setrlimit(what, &syscall.Rlimit{Cur: n, Max: n}) }
	h := &heap{}
	first, err := h.alloc(1<<20, 0)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ) // as Python does
	limit(unix.RLIMIT_FSIZE, 16<<20)
	mem, err := h.alloc(20<<20, 1<<20)
	if err != nil {
		return err
	}
	if _, ok := h.find(addrOf(mem), len(mem)); ok || uintptr(addrOf(mem))%(1<<20) != 0 {
		return fmt.Errorf("memory beyond the file's limit is found in it, or is at %p", mem)
	}
	mem[len(mem)-1] = 1
	if err := h.free(mem); err != nil {
		return err
	}
	if mem, err = h.alloc(2<<20, 0); err != nil {
		return err
	}
	if off, ok := h.find(addrOf(mem), len(mem)); !ok || off != 1<<20 {
		return fmt.Errorf("after a failure the file is used no more, or its offset %d is lost", off)
	}
	p, err := OpenPeer(os.Getpid(), h.file())
	if err != nil {
		return err
	}
	limit(unix.RLIMIT_AS, 1<<20) // less than there is already
	if _, err := h.alloc(100<<20, 0); err == nil {
		return fmt.Errorf("memory was allocated where there are no addresses")
	}
	if _, err := p.At(0, 1<<20); err == nil {
		return fmt.Errorf("a peer was mapped where there are no addresses")
	}
	first[0] = 1
	limit(unix.RLIMIT_NOFILE, 1)
	if _, err := OpenPeer(os.Getpid(), h.file()); err == nil {
		return fmt.Errorf("a peer was opened where there are no descriptors")
	}
	return h.free(first)
}

// refusedProcess has no descriptor for a memfd.
func refusedProcess() error {
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: 3})
	h := &heap{}
	for _, n := range []int{10, 10_000} {
		mem, err := h.alloc(n, 0)
		if err != nil {
			return err
		}
		mem[n-1] = 1
		if _, ok := h.find(addrOf(mem), n); ok {
			return fmt.Errorf("private memory is found in the arena")
		}
		if err := h.free(mem); err != nil {
			return err
		}
	}
	if h.file() != -1 || h.open() == nil {
		return fmt.Errorf("there is a memfd, or no error that says why not")
	}
	return nil
}

func TestExhaustion(t *testing.T) { process(t, "limited", nil) }

func TestNoArena(t *testing.T) { process(t, "refused", nil) }
