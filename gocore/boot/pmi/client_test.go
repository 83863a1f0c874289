package pmi

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// server is a PMI-1 process manager for one or more ranks. style selects the
// differences between real ones.
type server struct {
	style string // "hydra" or "slurm"
	size  int

	mu      sync.Mutex
	kvs     map[string]string
	waiting []chan struct{}
	aborted []string
	longest int
}

func newServer(style string, size int) *server {
	return &server{style: style, size: size, kvs: map[string]string{"PMI_process_mapping": "(vector,(0,1,2),(1,1,1))"}}
}

// set stores what no rank has put; an empty text removes it.
func (s *server) set(key, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kvs[key] = text; text == "" {
		delete(s.kvs, key)
	}
}

// serve answers one rank until it finalizes or hangs up.
func (s *server) serve(conn *os.File) {
	defer conn.Close()
	in := bufio.NewScanner(conn)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		w := parse(in.Text())
		say := func(format string, args ...any) { fmt.Fprintf(conn, format+"\n", args...) }
		switch w["cmd"] {
		case "initack":
			// In one piece, to check that several lines at once are read correctly.
			say("cmd=initack rc=0 rank=%s size=%d appnum=0 debug=0\ncmd=set size=%d\ncmd=set rank=%s\ncmd=set debug=0", w["pmiid"], s.size, s.size, w["pmiid"])
		case "init":
			say("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2")
		case "get_appnum":
			if s.style == "slurm" {
				say("cmd=appnum rc=0 appnum=2")
			} else {
				say("cmd=appnum rc=-1")
			}
		case "get_my_kvsname":
			say("cmd=my_kvsname rc=0 kvsname=kvs_1_0_2_host0")
		case "put":
			s.mu.Lock()
			s.longest = max(s.longest, len(in.Text()))
			s.kvs[w["key"]] = w["value"]
			s.mu.Unlock()
			say("cmd=put_result rc=0")
		case "get":
			s.mu.Lock()
			value, ok := s.kvs[w["key"]]
			s.mu.Unlock()
			if ok {
				say("cmd=get_result rc=0 value=%s", value)
			} else {
				say("cmd=get_result rc=1")
			}
		case "barrier_in":
			me := make(chan struct{})
			s.mu.Lock()
			if s.waiting = append(s.waiting, me); len(s.waiting) == s.size {
				for _, ch := range s.waiting {
					close(ch)
				}
				s.waiting = nil
			}
			s.mu.Unlock()
			<-me
			if s.style == "slurm" {
				say("cmd=barrier_out rc=0")
			} else {
				say("cmd=barrier_out tag=0")
			}
		case "abort":
			s.mu.Lock()
			s.aborted = append(s.aborted, w["exitcode"])
			s.mu.Unlock()
			return
		case "finalize":
			say("cmd=finalize_ack rc=0")
			return
		}
	}
}

// connect makes rank of the server's job a client over a socket pair.
func (s *server) connect(t *testing.T, rank int) *Client {
	t.Helper()
	t.Setenv("PMI_FD", strconv.Itoa(s.socket(t)))
	t.Setenv("PMI_RANK", strconv.Itoa(rank))
	t.Setenv("PMI_SIZE", strconv.Itoa(s.size))
	c, err := Connect()
	require.NoError(t, err)
	return c
}

func (s *server) socket(t *testing.T) int {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	go s.serve(os.NewFile(uintptr(pair[1]), "server"))
	return pair[0]
}

func TestClient(t *testing.T) {
	for _, style := range []string{"hydra", "slurm"} {
		s := newServer(style, 2)
		a, b := s.connect(t, 0), s.connect(t, 1)
		assert.Equal(t, 0, a.Rank())
		assert.Equal(t, 1, b.Rank())
		assert.Equal(t, 2, b.Size())
		flags, err := unix.FcntlInt(uintptr(a.wire.fd), unix.F_GETFD, 0)
		require.NoError(t, err)
		assert.NotZero(t, flags&unix.FD_CLOEXEC, "children must not inherit the socket")

		program, err := b.Program()
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"slurm": 2, "hydra": 0}[style], program)
		require.NoError(t, a.Put("addr-0", "tcp://127.0.0.1:9000?a=b"))
		done := make(chan error, 1)
		go func() { done <- a.Barrier() }()
		select {
		case <-done:
			t.Fatal("the barrier lets one rank through")
		case <-time.After(20 * time.Millisecond):
		}
		require.NoError(t, b.Barrier())
		require.NoError(t, <-done)
		value, err := b.Get("addr-0")
		require.NoError(t, err)
		assert.Equal(t, "tcp://127.0.0.1:9000?a=b", value)
		_, err = b.Get("nosuch")
		assert.ErrorIs(t, err, ErrNotFound)
		ranges, err := b.Mapping()
		require.NoError(t, err)
		assert.Equal(t, []NodeRange{{0, 1, 2}, {1, 1, 1}}, ranges)

		require.NoError(t, a.Finalize())
		require.NoError(t, b.Finalize())
		assert.ErrorIs(t, a.Abort(1), errFinalized)
	}
}

func TestLongValues(t *testing.T) {
	s := newServer("hydra", 1)
	c := s.connect(t, 0)
	for i, n := range []int{1, 900, 960, 1000, 1023, 1024, 2000, 65_000} {
		key, value := fmt.Sprintf("key-%d", i), strings.Repeat("0123456789abcdef", n/16+1)[:n]
		require.NoError(t, c.Put(key, value))
		got, err := c.Get(key)
		require.NoError(t, err)
		assert.True(t, value == got, n)
	}
	require.NoError(t, c.Put("mark", "~2"))
	got, err := c.Get("mark")
	require.NoError(t, err)
	assert.Equal(t, "~2", got)
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.LessOrEqual(t, s.longest, maxLine)
	assert.Greater(t, s.longest, maxLine-10, "the room is used")
}

func TestPutRefuses(t *testing.T) {
	s := newServer("hydra", 1)
	c := s.connect(t, 0)
	for _, bad := range []struct{ key, value, text string }{
		{"k", "", "empty value"},
		{"k", "a b", "' '"},
		{"k", `a\b`, `'\\'`},
		{"k", "a\nb", `'\n'`},
		{"k", "a\x00", `'\x00'`},
		{"", "v", "empty key"},
		{"a b", "v", "' '"},
		{"PMI_x", "v", "belong to the process manager"},
		{strings.Repeat("k", 57), "v", "at most 56"},
	} {
		err := c.Put(bad.key, bad.value)
		if assert.Error(t, err, bad) {
			assert.Contains(t, err.Error(), bad.text)
		}
	}
	assert.Len(t, s.kvs, 1, "nothing was sent")
}

func TestAbortDoesNotWait(t *testing.T) {
	s := newServer("hydra", 2)
	c := s.connect(t, 0)
	done := make(chan error, 1)
	go func() { done <- c.Barrier() }()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.waiting) == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, c.Abort(5)) // though the barrier waits
	// The fake server is stuck in the barrier, too; end it.
	s.mu.Lock()
	for _, ch := range s.waiting {
		close(ch)
	}
	s.mu.Unlock()
	require.NoError(t, <-done)
	assert.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.aborted) == 1 && s.aborted[0] == "5"
	}, time.Minute, time.Millisecond)
}

func TestConnectByPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	s := newServer("hydra", 4)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		f, _ := conn.(*net.TCPConn).File()
		conn.Close()
		s.serve(f)
	}()
	t.Setenv("PMI_FD", "")
	t.Setenv("PMI_PORT", l.Addr().String())
	t.Setenv("PMI_ID", "3")
	c, err := Connect()
	require.NoError(t, err)
	assert.Equal(t, 3, c.Rank())
	assert.Equal(t, 4, c.Size())
	ranges, err := c.Mapping()
	require.NoError(t, err)
	assert.Equal(t, []int{0, 0, 1, 0}, Nodes(ranges, 4)) // (0,1,2),(1,1,1), and again from the first
	require.NoError(t, c.Finalize())
}

// TestConnectRefuses checks that each wrong environment or answer has its own error.
func TestConnectRefuses(t *testing.T) {
	set := func(t *testing.T, fd, rank, size string) {
		t.Setenv("PMI_PORT", "")
		t.Setenv("PMI_FD", fd)
		t.Setenv("PMI_RANK", rank)
		t.Setenv("PMI_SIZE", size)
	}
	answering := func(t *testing.T, answer string) string {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		_, err = unix.Write(pair[1], []byte(answer))
		require.NoError(t, err)
		require.NoError(t, unix.Shutdown(pair[1], unix.SHUT_WR))
		t.Cleanup(func() { unix.Close(pair[1]) })
		return strconv.Itoa(pair[0])
	}
	const hello = "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
	for name, c := range map[string]struct{ fd, rank, size, text string }{
		"no socket":  {"/dev/null", "0", "1", "is closed or no socket"},
		"closed":     {"999", "0", "1", "no open socket"},
		"no number":  {"x", "0", "1", "not a descriptor"},
		"no rank":    {"0", "", "1", "PMI_RANK"},
		"no size":    {"0", "0", "many", "PMI_SIZE"},
		"hangs up":   {answering(t, ""), "0", "1", "closed the connection"},
		"half line":  {answering(t, "cmd=response_to_init rc=0"), "0", "1", "closed the connection"},
		"refuses":    {answering(t, "cmd=response_to_init rc=-1\n"), "0", "1", "refused"},
		"version 2":  {answering(t, "cmd=response_to_init rc=0 pmi_version=2\n"), "0", "1", "version"},
		"nonsense":   {answering(t, "HTTP/1.1 400 Bad Request\n"), "0", "1", "expected the answer"},
		"no space":   {answering(t, hello+"cmd=my_kvsname rc=0\n"), "0", "1", "no name"},
		"wrong rank": {answering(t, hello+"cmd=my_kvsname kvsname=k\n"), "2", "2", "rank 2 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.fd == "/dev/null" {
				null, err := os.Open(c.fd)
				require.NoError(t, err)
				defer null.Close()
				c.fd, c.text = strconv.Itoa(int(null.Fd())), "no open socket"
			}
			set(t, c.fd, c.rank, c.size)
			_, err := Connect()
			if assert.Error(t, err) {
				assert.Contains(t, err.Error(), c.text)
			}
		})
	}
	set(t, "", "", "")
	_, err := Connect()
	assert.ErrorIs(t, err, ErrNoServer)
	t.Setenv("PMI_PORT", "127.0.0.1:1")
	t.Setenv("PMI_ID", "0")
	_, err = Connect()
	assert.ErrorContains(t, err, "PMI_PORT=127.0.0.1:1")
}

// TestHydra runs this test binary as the ranks of a job of a real Hydra.
func TestHydra(t *testing.T) {
	mpiexec := os.Getenv("GORMAPY_TEST_HYDRA")
	if os.Getenv("PMI_TEST_RANK") != "" {
		actRank(t)
		return
	}
	if mpiexec == "" {
		t.Skip("GORMAPY_TEST_HYDRA does not name the mpiexec of MPICH")
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, opts := range [][]string{{"-n", "1"}, {"-n", "5"}, {"-pmi-port", "-n", "3"}} {
		cmd := exec.Command(mpiexec, append(opts, exe, "-test.run", "^TestHydra$", "-test.timeout", "20s")...)
		cmd.Env = append(os.Environ(), "PMI_TEST_RANK=exchange")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v: %s", opts, out)
		assert.Equal(t, opts[len(opts)-1], strconv.Itoa(strings.Count(string(out), "PASS")), "%s", out)
	}
	cmd := exec.Command(mpiexec, "-n", "3", exe, "-test.run", "^TestHydra$", "-test.timeout", "20s")
	cmd.Env = append(os.Environ(), "PMI_TEST_RANK=abort")
	begin := time.Now()
	_ = cmd.Run()
	assert.Equal(t, 5, cmd.ProcessState.ExitCode())
	assert.Less(t, time.Since(begin), 5*time.Second)
}

func actRank(t *testing.T) {
	c, err := Connect()
	require.NoError(t, err)
	if os.Getenv("PMI_TEST_RANK") == "abort" {
		if c.Rank() == 1 {
			require.NoError(t, c.Abort(5))
		}
		time.Sleep(10 * time.Second)
		return
	}
	value := func(r, round int) string {
		return fmt.Sprintf("%d-%d:", r, round) + strings.Repeat("x=1;", 300*round*r)
	}
	for round := range 3 {
		require.NoError(t, c.Put(fmt.Sprintf("addr-%d-%d", round, c.Rank()), value(c.Rank(), round)))
		require.NoError(t, c.Barrier())
		for r := range c.Size() {
			got, err := c.Get(fmt.Sprintf("addr-%d-%d", round, r))
			require.NoError(t, err)
			require.True(t, got == value(r, round), "%d of %d bytes from rank %d", len(got), len(value(r, round)), r)
		}
	}
	_, err = c.Get("nosuch")
	require.ErrorIs(t, err, ErrNotFound)
	ranges, err := c.Mapping()
	require.NoError(t, err)
	require.Equal(t, make([]int, c.Size()), Nodes(ranges, c.Size()))
	require.NoError(t, c.Finalize())
}
