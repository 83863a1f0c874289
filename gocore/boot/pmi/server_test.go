package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// talker is a rank that sends the lines of the test.
type talker struct {
	t    testing.TB
	fd   int
	file *os.File
	in   *bufio.Reader
}

func newJob(t testing.TB, size int) *Server { return newJobOf(t, make([]int, size)) }

func newJobOf(t testing.TB, apps []int) *Server {
	t.Helper()
	s, err := NewServer("test", apps)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func talk(t testing.TB, s *Server, rank int) *talker {
	t.Helper()
	fd, err := s.Connect(rank)
	require.NoError(t, err)
	// A test that waits in vain fails instead of hanging.
	require.NoError(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20}))
	file := os.NewFile(uintptr(fd), "rank")
	t.Cleanup(func() { file.Close() })
	return &talker{t, fd, file, bufio.NewReader(file)}
}

func (k *talker) say(text string) { k.t.Helper(); k.raw(text + "\n") }

func (k *talker) raw(text string) {
	k.t.Helper()
	_, err := unix.SendmsgN(k.fd, []byte(text), nil, nil, unix.MSG_NOSIGNAL)
	require.NoError(k.t, err)
}

// hear returns the next line; "" if the server closed the connection.
func (k *talker) hear() string {
	k.t.Helper()
	line, err := k.in.ReadString('\n')
	if err != nil && !errors.Is(err, unix.ECONNRESET) {
		require.ErrorIs(k.t, err, io.EOF)
	}
	return strings.TrimSuffix(line, "\n")
}

func (k *talker) ask(text string) string { k.t.Helper(); k.say(text); return k.hear() }

func (k *talker) join() *talker {
	k.t.Helper()
	require.Equal(k.t, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1", k.ask("cmd=init pmi_version=1 pmi_subversion=1"))
	return k
}

func next(t *testing.T, s *Server) Report {
	t.Helper()
	select {
	case r := <-s.Reports():
		return r
	case <-time.After(20 * time.Second):
		t.Fatal("the server reports nothing")
		return Report{}
	}
}

func silentServer(t *testing.T, s *Server) {
	t.Helper()
	select {
	case r := <-s.Reports():
		t.Errorf("unexpected report %+v", r)
	default:
	}
}

func TestServerAnswers(t *testing.T) {
	s := newJobOf(t, []int{0, 3})
	k := talk(t, s, 1).join()
	for _, c := range []struct{ ask, answer string }{
		{"cmd=get_maxes", "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024"},
		{"cmd=get_appnum", "cmd=appnum rc=0 appnum=3"},
		{"cmd=get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=kvs_test"},
		{"cmd=get_universe_size", "cmd=universe_size rc=0 size=2"},
		{"cmd=get kvsname=kvs_test key=PMI_process_mapping", "cmd=get_result rc=0 value=(vector,(0,1,2))"},
		{"cmd=get kvsname=kvs_test key=k", "cmd=get_result rc=-1 msg=key_not_found"},
		{"cmd=put kvsname=kvs_test key=k value=a=b c\\ d", "cmd=put_result rc=0"},
		{"cmd=get kvsname=kvs_test key=k", "cmd=get_result rc=0 value=a=b c\\ d"},
		{"cmd=put kvsname=kvs_test key=k value=2", "cmd=put_result rc=0"},
		{"cmd=get kvsname=kvs_test key=k", "cmd=get_result rc=0 value=2"},
		{"cmd=get kvsname=other key=k", "cmd=get_result rc=-1 msg=unknown_kvsname"},
		{"cmd=put kvsname=kvs_test key=" + strings.Repeat("k", 64) + " value=" + strings.Repeat("v", 1024), "cmd=put_result rc=0"},
		{"cmd=get kvsname=kvs_test key=" + strings.Repeat("k", 64), "cmd=get_result rc=0 value=" + strings.Repeat("v", 1024)},
		{"cmd=lookup_name service=s", "cmd=lookup_result rc=-1 msg=not_found"},
		{"cmd=publish_name service=s port=tag#0$x", "cmd=publish_result rc=0"},
		{"cmd=publish_name service=s port=tag#1$x", "cmd=publish_result rc=-1 msg=published_before"},
		{"cmd=lookup_name service=s", "cmd=lookup_result rc=0 port=tag#0$x"},
		{"cmd=unpublish_name service=s", "cmd=unpublish_result rc=0"},
		{"cmd=unpublish_name service=s", "cmd=unpublish_result rc=-1 msg=not_found"},
	} {
		assert.Equal(t, c.answer, k.ask(c.ask), c.ask)
	}
	silentServer(t, s)
	assert.Equal(t, "cmd=finalize_ack rc=0", k.ask("cmd=finalize"))
	assert.Equal(t, Conduct{Joined: true, Finalized: true}, s.Ended(1))
	assert.Equal(t, Conduct{}, s.Ended(0), "never connected")
	silentServer(t, s)
}

// TestServerRefuses checks that a wrong request is an error for its sender, is reported
// once, and that the connection continues.
func TestServerRefuses(t *testing.T) {
	for _, c := range []struct{ ask, answer, text string }{
		{"cmd=put kvsname=other key=k value=v", "cmd=put_result rc=-1 msg=unknown_kvsname", "can't be stored"},
		{"cmd=put kvsname=kvs_test key= value=v", "cmd=put_result rc=-1 msg=no_key", "can't be stored"},
		{"cmd=put kvsname=kvs_test key=" + strings.Repeat("k", 65) + " value=v", "cmd=put_result rc=-1 msg=key_too_long", "can't be stored"},
		{"cmd=put kvsname=kvs_test key=k value=" + strings.Repeat("v", 1025), "cmd=put_result rc=-1 msg=value_too_long", "can't be stored"},
		{"cmd=put kvsname=kvs_test key=PMI_process_mapping value=v", "cmd=put_result rc=-1 msg=reserved_key", "can't be stored"},
		{"cmd=getbyidx kvsname=kvs_test idx=0", "cmd=getbyidx_result rc=-1 msg=unknown_command", "asked for PMI-1 getbyidx"},
		{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init rc=-1 msg=initialised_before", "init twice"},
		{"mcmd=spawn\nnprocs=2\nexecname=/bin/true\nendcmd", "cmd=spawn_result rc=-1 msg=not_supported", "spawn"},
	} {
		s := newJob(t, 1)
		k := talk(t, s, 0).join()
		assert.Equal(t, c.answer, k.ask(c.ask))
		r := next(t, s)
		assert.Equal(t, Refused, r.Kind)
		assert.Contains(t, r.Text, c.text)
		assert.Contains(t, k.ask(c.ask), "rc=-1")
		assert.Equal(t, "cmd=finalize_ack rc=0", k.ask("cmd=finalize"), c.ask)
		silentServer(t, s)
	}
	s := newJob(t, 1)
	k := talk(t, s, 0)
	assert.Equal(t, "cmd=get_maxes_result rc=-1 msg=no_init", k.ask("cmd=get_maxes"))
	assert.Equal(t, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1 msg=version", k.ask("cmd=init pmi_version=2 pmi_subversion=0"))
	k.join()
	assert.Contains(t, k.ask("cmd=finalize"), "rc=0")
	assert.Contains(t, k.ask("cmd=get_maxes"), "rc=-1 msg=finalized")
}

// TestServerAbandons checks that input that is not PMI ends the connection of the rank
// that sent it, at once or while it asks for more, and no other.
func TestServerAbandons(t *testing.T) {
	for name, garbage := range map[string]string{
		"words":     "GET / HTTP/1.1\n",
		"empty":     "\n",
		"binary":    "\x00\xff\xfe\n",
		"long line": strings.Repeat("x", maxRequest+1) + "\n",
		"no end":    strings.Repeat("x", 2*maxRequest),
		"block":     "mcmd=spawn\n" + strings.Repeat(strings.Repeat("a", 1000)+"\n", 70) + "endcmd\n",
		"barriers":  "cmd=barrier_in\ncmd=barrier_in\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newJob(t, 3)
			a, b, c := talk(t, s, 0).join(), talk(t, s, 1).join(), talk(t, s, 2).join()
			a.raw(garbage)
			assert.Equal(t, "cmd=error rc=-1 msg=no_pmi1", a.hear())
			assert.Equal(t, "", a.hear(), "the connection is closed")
			r := next(t, s)
			assert.Equal(t, Refused, r.Kind)
			assert.Equal(t, 0, r.Rank)
			// The others continue, but not through a barrier.
			assert.Contains(t, b.ask("cmd=put kvsname=kvs_test key=k value=v"), "rc=0")
			assert.Contains(t, c.ask("cmd=get kvsname=kvs_test key=k"), "value=v")
			silentServer(t, s)
			b.say("cmd=barrier_in")
			r = next(t, s)
			assert.Equal(t, Report{Stuck, 1, 0, "waits in a PMI barrier that rank 0, which has lost its connection, can't enter"}, r)
			s.Ended(0)
			r, is := s.Stuck()
			assert.True(t, is)
			assert.Contains(t, r.Text, "rank 0, which has ended,")
		})
	}
}

func TestServerBoundsWhatIsStored(t *testing.T) {
	s := newJob(t, 1)
	k := talk(t, s, 0).join()
	for i := 0; ; i++ {
		answer := k.ask(fmt.Sprintf("cmd=put kvsname=kvs_test key=%d value=%s", i, strings.Repeat("v", maxValueLen)))
		if answer != "cmd=put_result rc=0" {
			assert.Equal(t, "cmd=put_result rc=-1 msg=too_much", answer)
			assert.Less(t, i, maxStored/maxValueLen)
			break
		}
	}
}

// TestServerFlood checks that a rank that asks and never reads stops no other rank.
func TestServerFlood(t *testing.T) {
	s := newJob(t, 2)
	a, b := talk(t, s, 0).join(), talk(t, s, 1).join()
	flood := []byte(strings.Repeat("cmd=get_maxes\n", 1000))
	for range 1000 {
		if _, err := unix.SendmsgN(a.fd, flood, nil, nil, unix.MSG_NOSIGNAL); err != nil {
			break
		}
	}
	assert.Contains(t, next(t, s).Text, "without reading")
	assert.Contains(t, b.ask("cmd=get_maxes"), "rc=0")
}

// TestServerEndlessSender checks that a rank that endlessly sends requests without answers
// stops neither the others nor the launcher.
func TestServerEndlessSender(t *testing.T) {
	s := newJob(t, 2)
	a, b := talk(t, s, 0).join(), talk(t, s, 1).join()
	var sent atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		line := []byte("cmd=abort exitcode=1\n")
		for {
			if _, err := unix.SendmsgN(a.fd, line, nil, nil, unix.MSG_NOSIGNAL); err != nil {
				return
			}
			sent.Add(1)
		}
	}()
	for sent.Load() < 1000 {
		time.Sleep(time.Millisecond)
	}
	for range 100 {
		assert.Contains(t, b.ask("cmd=get_maxes"), "rc=0")
	}
	assert.True(t, s.Ended(0).Aborted)
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection is still open")
	}
}

func TestServerBarrier(t *testing.T) {
	const n = 9
	s := newJob(t, n)
	ranks := make([]*talker, n)
	for r := range ranks {
		ranks[r] = talk(t, s, r).join()
	}
	for round := range 20 {
		var wg sync.WaitGroup
		for r, k := range ranks {
			if r == round%n {
				continue
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				assert.Equal(t, "cmd=barrier_out rc=0", k.ask("cmd=barrier_in"))
			}()
		}
		last := ranks[round%n]
		assert.Contains(t, last.ask("cmd=put kvsname=kvs_test key=k value="+strconv.Itoa(round)), "rc=0")
		assert.Equal(t, "cmd=barrier_out rc=0", last.ask("cmd=barrier_in"))
		wg.Wait()
		for _, k := range ranks {
			assert.Equal(t, "cmd=get_result rc=0 value="+strconv.Itoa(round), k.ask("cmd=get kvsname=kvs_test key=k"))
		}
	}
	silentServer(t, s)
}

// TestServerStuck checks that a barrier which can't be completed is reported, whether the
// missing rank left before or after the others came.
func TestServerStuck(t *testing.T) {
	leave := map[string]func(s *Server, k *talker){
		"has ended":               func(s *Server, _ *talker) { s.Ended(1) },
		"has finalized":           func(_ *Server, k *talker) { k.ask("cmd=finalize") },
		"has lost its connection": func(_ *Server, k *talker) { require.NoError(k.t, unix.Shutdown(k.fd, unix.SHUT_RDWR)) },
	}
	for why, do := range leave {
		for _, before := range []bool{true, false} {
			s := newJob(t, 3)
			a, b := talk(t, s, 0).join(), talk(t, s, 1).join()
			talk(t, s, 2).join()
			if before {
				do(s, b)
			}
			a.say("cmd=barrier_in")
			if !before {
				require.Eventually(t, func() bool { return s.Conduct(0).Waits }, 20*time.Second, time.Millisecond)
				silentServer(t, s)
				do(s, b)
			}
			r := next(t, s)
			assert.Equal(t, Stuck, r.Kind)
			assert.Equal(t, 0, r.Rank)
			assert.Contains(t, r.Text, "rank 1, which "+why)
		}
	}
}

// TestServerStuckInInit is the same for a rank that ends before init, which the
// others wait for in shared memory of their own.
func TestServerStuckInInit(t *testing.T) {
	for _, before := range []bool{true, false} {
		s := newJob(t, 3)
		a := talk(t, s, 0)
		if before {
			s.Ended(1)
		}
		silentServer(t, s)
		a.join()
		if !before {
			silentServer(t, s)
			s.Ended(1)
		}
		assert.Equal(t, Report{Stuck, 0, 0, "has called MPI_Init, which rank 1, which has ended, can't call any more"}, next(t, s))
		s.Ended(2)
		silentServer(t, s)
	}
}

// TestServerEndedHearsEverything checks that Ended has handled all requests that a rank
// sent before its end.
func TestServerEndedHearsEverything(t *testing.T) {
	for range 200 {
		s := newJob(t, 2)
		k := talk(t, s, 0).join()
		k.say("cmd=abort exitcode=5 message=what a pity")
		assert.Equal(t, Conduct{Joined: true, Aborted: true, Code: 5}, s.Ended(0))
		assert.Equal(t, Report{Kind: Aborted, Rank: 0, Code: 5}, next(t, s))
	}
	s := newJob(t, 1)
	talk(t, s, 0).join().say("cmd=abort")
	assert.Equal(t, 1, s.Ended(0).Code, "no code")
}

func TestServerAbortInBarrier(t *testing.T) {
	s := newJob(t, 2)
	k := talk(t, s, 0).join()
	k.say("cmd=barrier_in")
	k.say("cmd=abort exitcode=-3")
	assert.Equal(t, Report{Kind: Aborted, Rank: 0, Code: -3}, next(t, s))
}

// TestServerChildOfARank checks that a child which inherited the socket of a rank
// is not the rank.
func TestServerChildOfARank(t *testing.T) {
	s := newJob(t, 1)
	k := talk(t, s, 0).join()
	assert.Contains(t, k.ask("cmd=put kvsname=kvs_test key=k value=v"), "rc=0")
	child := exec.Command("sh", "-c", "echo cmd=init pmi_version=1 pmi_subversion=1 >&3; echo cmd=abort exitcode=3 >&3; head -n 1 <&3")
	child.ExtraFiles = []*os.File{k.file}
	out, err := child.Output()
	require.NoError(t, err)
	const refusal = "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1 msg=rank_is_taken\n"
	assert.Equal(t, refusal, string(out))
	r := next(t, s)
	assert.Equal(t, Refused, r.Kind)
	assert.Contains(t, r.Text, fmt.Sprintf("is process %d", os.Getpid()))
	silentServer(t, s)
	assert.Equal(t, Conduct{Joined: true}, s.Conduct(0))
}

func TestWithhold(t *testing.T) {
	s := newJob(t, 1)
	k := talk(t, s, 0)
	kept := func() bool {
		flags, err := unix.FcntlInt(uintptr(k.fd), unix.F_GETFD, 0)
		require.NoError(t, err)
		return flags&unix.FD_CLOEXEC != 0
	}
	_, err := unix.FcntlInt(uintptr(k.fd), unix.F_SETFD, 0) // as after exec
	require.NoError(t, err)
	for _, number := range []string{"", "x", "-1", "99999", "0"} {
		t.Setenv("PMI_FD", number)
		Withhold(os.Getpid())
	}
	t.Setenv("PMI_FD", strconv.Itoa(k.fd))
	Withhold(1)
	assert.False(t, kept(), "it is not the launcher's")
	Withhold(os.Getpid())
	assert.True(t, kept())
}

// TestServerServesTheClient runs both sides of this package together.
func TestServerServesTheClient(t *testing.T) {
	const n = 5
	s := newJob(t, n)
	clients := make([]*Client, n)
	for r := range clients {
		fd, err := s.Connect(r)
		require.NoError(t, err)
		t.Setenv("PMI_FD", strconv.Itoa(fd))
		t.Setenv("PMI_RANK", strconv.Itoa(r))
		t.Setenv("PMI_SIZE", strconv.Itoa(n))
		clients[r], err = Connect()
		require.NoError(t, err)
	}
	var wg sync.WaitGroup
	for r, c := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			value := strings.Repeat(strconv.Itoa(r), 3000)
			assert.NoError(t, c.Put(fmt.Sprintf("key-%d", r), value))
			assert.NoError(t, c.Barrier())
			next := (r + 1) % n
			got, err := c.Get(fmt.Sprintf("key-%d", next))
			assert.NoError(t, err)
			assert.True(t, got == strings.Repeat(strconv.Itoa(next), 3000))
			_, err = c.Get("nosuch")
			assert.ErrorIs(t, err, ErrNotFound)
			ranges, err := c.Mapping()
			assert.NoError(t, err)
			assert.Equal(t, make([]int, n), Nodes(ranges, n))
			assert.NoError(t, c.Finalize())
		}()
	}
	wg.Wait()
	silentServer(t, s)
}

// FuzzServer sends arbitrary input in pieces of any length as one rank, and checks that
// another rank is served and that the memory for the first is bounded.
func FuzzServer(f *testing.F) {
	for _, seed := range []string{
		"cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_maxes\ncmd=finalize\n",
		"cmd=init pmi_version=1\ncmd=put kvsname=kvs_test key=a value=b c\ncmd=barrier_in\ncmd=abort exitcode=x\n",
		"cmd=init pmi_version=1\nmcmd=spawn\nnprocs=1\nendcmd\ncmd=get key=a kvsname=kvs_test\n",
		"cmd=init pmi_version=1\ncmd=publish_name service=a port=b\ncmd=lookup_name service=a\ncmd=unpublish_name service=a\n",
		"cmd=\n=\n \nmcmd=\n", "\x00", "cmd=cmd cmd=init\n",
	} {
		f.Add([]byte(seed), 7)
	}
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		s := newJob(t, 2)
		wild, good := talk(t, s, 0), talk(t, s, 1)
		good.join()
		assert.Contains(t, good.ask("cmd=put kvsname=kvs_test key=good value=untouched"), "rc=0")
		piece = min(max(piece, 1), 4096)
		for len(data) > 0 {
			n := min(piece, len(data))
			if _, err := unix.SendmsgN(wild.fd, data[:n], nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT); err != nil {
				break
			}
			data = data[n:]
		}
		s.Ended(0)
		s.mu.Lock()
		c := s.conns[0]
		assert.LessOrEqual(t, len(c.pending), maxRequest+4096)
		assert.LessOrEqual(t, c.block, maxBlock)
		assert.LessOrEqual(t, s.inside, 1)
		assert.GreaterOrEqual(t, s.inside, 0)
		s.mu.Unlock()
		assert.Contains(t, good.ask("cmd=get_my_kvsname"), "kvsname=kvs_test")
		assert.Contains(t, good.ask("cmd=get kvsname=kvs_test key=PMI_process_mapping"), "(vector,(0,1,2))")
		s.Ended(1)
	})
}
