//go:build cgo

package verbs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/ibverbs"
	"gormapy/gocore/job"
)

// The tests here are for devices. Those of two processes run this program again,
// as rank 1 of a job, which does what its role says.
const (
	segmentEnv = "VERBS_TEST_SEGMENT"
	roleEnv    = "VERBS_TEST_ROLE"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(segmentEnv) != "":
		if err := serve(os.Getenv(segmentEnv), os.Getenv(roleEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Getenv(roleEnv) != "":
		if err := measure(os.Getenv(roleEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func needDevice(t *testing.T) {
	t.Helper()
	if _, err := ibverbs.Load(); err != nil {
		t.Skip(err)
	}
	if why := Problem(Options{}); why != "" {
		t.Skip(why)
	}
}

// peer is one of two processes.
type peer struct {
	counter
	t     *Transport
	ep    *endpoint
	mem   []byte // registered
	other fabric.RemoteKey
	errs  []error
}

func (p *peer) Deliver(_ int, h *fabric.Header, _ []byte) {
	p.other = fabric.RemoteKey{Addr: h.A, Key: h.B}
	p.delivered++
}

func (p *peer) Broken(_ int, err error) {
	p.errs = append(p.errs, err)
	p.failed++
}

func (p *peer) Completed(cookie uint64, err error) {
	p.counter.Completed(cookie, err)
	if err != nil {
		p.errs = append(p.errs, err)
	}
}

const sharedBytes = 1 << 20

// enter joins a job, and exchanges keys with the other rank.
func enter(seg *job.Segment, rank int) (*peer, error) {
	t, err := New(seg.Directory(rank), Options{})
	if err != nil {
		return nil, err
	}
	p := &peer{t: t}
	if p.mem, err = unix.Mmap(-1, 0, sharedBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return nil, err
	}
	region, err := t.Register(unsafe.Pointer(&p.mem[0]), sharedBytes)
	if err != nil {
		return nil, err
	}
	ep, err := t.Connect(1 - rank)
	if err != nil {
		return nil, err
	}
	p.ep = ep.(*endpoint)
	h := &fabric.Header{Kind: fabric.KindEager, A: region.Key().Addr, B: region.Key().Key}
	sent := false
	for end := time.Now().Add(30 * time.Second); !sent || p.delivered == 0; {
		if !sent {
			if err := ep.Send(h, nil); err == nil {
				sent = true
			} else if !errors.Is(err, fabric.ErrAgain) {
				return nil, err
			}
		}
		if t.Poll(p) == 0 {
			runtime.Gosched()
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("rank %d does not meet the other", rank)
		}
	}
	return p, nil
}

func (p *peer) word(i int) *uint64 { return (*uint64)(unsafe.Pointer(&p.mem[8*i])) }

func (p *peer) at(off int) fabric.RemoteKey {
	return fabric.RemoteKey{Addr: p.other.Addr + uint64(off), Key: p.other.Key}
}

// do starts an operation and waits for it.
func (p *peer) do(op func() (bool, error)) error {
	want := p.completed + 1
	for {
		_, err := op()
		if err == nil {
			break
		}
		if !errors.Is(err, fabric.ErrAgain) {
			return err
		}
		p.t.Poll(p)
	}
	for p.completed < want {
		p.t.Poll(p)
	}
	if p.failed > 0 {
		return p.errs[0]
	}
	return nil
}

// serve is rank 1.
func serve(path, role string) error {
	runtime.LockOSThread()
	seg, err := job.Open(path)
	if err != nil {
		return err
	}
	p, err := enter(seg, 1)
	if err != nil {
		return err
	}
	if role == "write_lat" {
		return p.pingPong(1, pingPongs)
	}
	for len(p.errs) == 0 { // until the other has gone
		if p.t.Poll(p) == 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	return p.t.Close()
}

// two makes both processes; this one is rank 0.
func two(role string) (*peer, *exec.Cmd, error) {
	seg, err := job.Create(2)
	if err != nil {
		return nil, nil, err
	}
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), segmentEnv+"="+seg.Path(), roleEnv+"="+role)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	p, err := enter(seg, 0)
	if err != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	return p, c, err
}

// A process is killed while another writes into its memory.
func TestDeviceKilledPeer(t *testing.T) {
	needDevice(t)
	p, c, err := two("")
	require.NoError(t, err)
	posted, killed := 0, time.Time{}
	for end := time.Now().Add(60 * time.Second); len(p.errs) == 0 || p.completed < posted; {
		require.True(t, time.Now().Before(end), "%d puts posted, %d completed, errors %v", posted, p.completed, p.errs)
		if _, err := p.ep.Put(unsafe.Pointer(&p.mem[0]), p.at(0), 64<<10, uint64(posted)); err == nil {
			posted++
		} else if !errors.Is(err, fabric.ErrAgain) {
			for p.t.Poll(p); p.completed < posted; {
				p.t.Poll(p)
			}
			break
		}
		p.t.Poll(p)
		if p.completed > 10 && killed.IsZero() {
			require.NoError(t, c.Process.Kill())
			_ = c.Wait()
			killed = time.Now()
		}
	}
	noticed := time.Since(killed)
	fabrictest.Until(t, "Broken", func() bool {
		p.t.Poll(p)
		_, isOp := p.errs[len(p.errs)-1].(*fabric.OpError)
		return isOp && p.failed > posted-p.completed
	})
	t.Logf("%d puts, noticed after %v: %v", posted, noticed, p.errs[0])
	var failed *fabric.OpError
	require.ErrorAs(t, p.errs[0], &failed)
	assert.Equal(t, "IBV_WC_RETRY_EXC_ERR", failed.Status)
	assert.Equal(t, 1, failed.Peer)
	assert.Equal(t, posted, p.completed, "each put ends once")
	_, err = p.ep.Put(unsafe.Pointer(&p.mem[0]), p.at(0), 8, 1)
	assert.ErrorContains(t, err, "IBV_WC_RETRY_EXC_ERR")
	require.NoError(t, p.t.Close())
}

// Longer than the device's longest message.
func TestDeviceLongPut(t *testing.T) {
	needDevice(t)
	w := fabrictest.NewWorld(t, 2, func(dir fabric.Directory) (fabric.Transport, error) { return New(dir, Options{}) })
	r := w.Ranks[0]
	tr := r.Transport.(*Transport)
	n := min(tr.maxMsg, 16<<20)*2 + 4097
	x, local := fabrictest.Expose(t, w.Ranks[1], n), fabrictest.Memory(t, n)
	for i := range local {
		local[i] = byte(i>>12 + i)
	}
	require.NoError(t, r.Do(1, func() (bool, error) { return r.Endpoint(1).Put(fabrictest.Pointer(local), x.Key, n, 1) }))
	assert.True(t, string(local) == string(x.Mem))
	clear(local)
	require.NoError(t, r.Do(2, func() (bool, error) { return r.Endpoint(1).Get(fabrictest.Pointer(local), x.Key, n, 2) }))
	assert.True(t, string(local) == string(x.Mem))
	t.Logf("%d bytes, the device's messages have at most %d", n, tr.maxMsg)
}

// System calls are counted by strace: posting rings the device's doorbell, and polling
// makes no system call.
func TestDeviceSystemCalls(t *testing.T) {
	needDevice(t)
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace")
	}
	file := t.TempDir() + "/trace"
	c := exec.Command(strace, "-f", "-o", file, os.Args[0])
	c.Env = append(os.Environ(), roleEnv+"=syscalls")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	trace, err := os.Open(file)
	require.NoError(t, err)
	defer trace.Close()
	calls, thread := map[string]int{}, ""
	line := regexp.MustCompile(`^(\d+) +(\w+)\((.{0,200})`)
	for lines := bufio.NewScanner(trace); lines.Scan(); {
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		if strings.HasPrefix(m[3], `-1, "begin"`) {
			thread = m[1]
		} else if strings.HasPrefix(m[3], `-1, "end"`) {
			thread = ""
		} else if m[1] == thread {
			calls[m[2]]++
		}
	}
	t.Logf("64 puts and their flush, %d times: %v", rounds, calls)
	posts := calls["write"] + calls["ioctl"]
	assert.GreaterOrEqual(t, posts, 64*rounds, "doorbells: on this device a post is a system call")
	assert.LessOrEqual(t, posts, 65*rounds)
	for name, n := range calls {
		switch name {
		case "write", "ioctl": // the device's
		case "futex", "sched_yield", "nanosleep", "clock_nanosleep", "rt_sigreturn", "rt_sigprocmask", "tgkill", "getpid", "madvise", "gettid":
			// Go's scheduler now and then, not for each operation.
			assert.Less(t, n, 64*rounds/4, name)
		default:
			assert.Fail(t, "a system call on the polling path", "%d times %s", n, name)
		}
	}
}

const (
	rounds    = 20
	pingPongs = 500
)

// measure is a role of a process of its own: it prints one number.
func measure(role string) error {
	runtime.LockOSThread()
	p, c, err := two(role)
	if err != nil {
		return err
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	local := unsafe.Pointer(&p.mem[0])
	switch role {
	case "syscalls":
		round := func() error {
			p.completed = 0
			for i := range 64 {
				if _, err := p.ep.Put(unsafe.Add(local, i*8), p.at(i*8), 8, uint64(i)); err != nil {
					return err
				}
			}
			for p.completed < 64 {
				p.t.Poll(p)
			}
			return nil
		}
		if err := round(); err != nil {
			return err
		}
		_, _ = unix.Write(-1, []byte("begin"))
		for range rounds {
			if err := round(); err != nil {
				return err
			}
		}
		_, _ = unix.Write(-1, []byte("end"))
	case "write_lat":
		return p.pingPong(0, pingPongs)
	case "atomic_lat":
		var times []time.Duration
		for range 500 {
			start := time.Now()
			if err := p.do(func() (bool, error) { return p.ep.FetchAdd(local, p.at(8), 1, 1) }); err != nil {
				return err
			}
			times = append(times, time.Since(start))
		}
		fmt.Println(median(times).Seconds() * 1e6)
	case "write_bw":
		const n, size = 300, 64 << 10
		start := time.Now()
		for posted := 0; p.completed < n; p.t.Poll(p) {
			for ; posted < n && posted-p.completed < 64; posted++ {
				if _, err := p.ep.Put(local, p.at(0), size, 1); err != nil {
					break
				}
			}
			if p.failed > 0 {
				return p.errs[0]
			}
		}
		fmt.Println(n * size / 1048576.0 / time.Since(start).Seconds())
	default:
		return fmt.Errorf("there is no role %q", role)
	}
	return nil
}

// pingPong does what ib_write_lat does: each side writes when it sees the other's write.
func (p *peer) pingPong(rank, n int) error {
	var times []time.Duration
	for i := uint64(1); i <= uint64(n); i++ {
		start := time.Now()
		for turn := range 2 {
			if turn != rank {
				for atomic.LoadUint64(p.word(1)) != i {
					if p.failed > 0 {
						return p.errs[0]
					}
				}
				continue
			}
			*p.word(0) = i
			for {
				_, err := p.ep.Put(unsafe.Pointer(p.word(0)), p.at(8), 8, i)
				if err == nil {
					break
				}
				if !errors.Is(err, fabric.ErrAgain) {
					return err
				}
				p.t.Poll(p)
			}
			p.t.Poll(p)
		}
		times = append(times, time.Since(start)/2)
	}
	if rank == 0 {
		fmt.Println(median(times).Seconds() * 1e6)
		return nil
	}
	for p.completed < n {
		p.t.Poll(p)
	}
	return nil
}

func median(times []time.Duration) time.Duration {
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	return times[len(times)/2]
}
