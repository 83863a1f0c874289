package rendezvous

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/boot/store"
	"gormapy/gocore/boot/storetest"
)

// freePort returns a port at which nobody listens, of those that the kernel gives to nobody by itself.
func freePort(t testing.TB) int {
	t.Helper()
	for {
		port := firstPort - 1 - rand.IntN(10_000)
		if l, err := net.Listen("tcp", address(port)); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
}

func address(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// world joins n ranks, the last first.
func world(t testing.TB, n int) []*Store {
	t.Helper()
	ranks := make([]*Store, n)
	where := address(freePort(t))
	var wg sync.WaitGroup
	for r := n - 1; r >= 0; r-- {
		wg.Go(func() {
			s, err := Join(r, n, where, "mellon")
			if assert.NoError(t, err) {
				ranks[r] = s
			}
		})
	}
	wg.Wait()
	require.NotContains(t, ranks, (*Store)(nil))
	return ranks
}

// each calls f for each rank at once.
func each(ranks []*Store, f func(s *Store)) {
	var wg sync.WaitGroup
	for _, s := range ranks {
		wg.Go(func() { f(s) })
	}
	wg.Wait()
}

// event returns the next event of a rank.
func event(t testing.TB, s *Store) store.Event {
	t.Helper()
	select {
	case e, ok := <-s.events:
		require.True(t, ok, "no event at rank %d", s.rank)
		return e
	case <-time.After(30 * time.Second):
		require.Fail(t, "no event", "rank %d", s.rank)
		return store.Event{}
	}
}

// none checks that a rank hears of nothing before its connection ends.
func none(t testing.TB, s *Store) {
	t.Helper()
	select {
	case e, ok := <-s.events:
		assert.False(t, ok, "rank %d: %v", s.rank, e)
	case <-time.After(30 * time.Second):
		assert.Fail(t, "the connection does not end", "rank %d", s.rank)
	}
}

func TestPlay(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		ranks := world(t, n)
		each(ranks, func(s *Store) { assert.NoError(t, storetest.Play(s)) })
		for _, s := range ranks {
			none(t, s)
		}
	}
}

func TestAbortReachesAll(t *testing.T) {
	for by := range 3 {
		ranks := world(t, 3)
		done := make(chan error, 1)
		go func() { done <- ranks[(by+1)%3].Fence() }()
		ranks[by].Abort(5)
		for _, s := range ranks {
			e := event(t, s)
			assert.Equal(t, store.Event{Kind: store.Aborted, Rank: by, Code: 5, Why: fmt.Sprintf("rank %d has aborted the job with code 5", by)}, e)
		}
		assert.ErrorContains(t, <-done, "has aborted the job with code 5")
		for _, s := range ranks {
			s.conn.Close()
		}
	}
}

func TestWatchHearsInOrder(t *testing.T) {
	ranks := world(t, 4)
	ranks[1].conn.Close()
	first := event(t, ranks[3])
	ranks[2].conn.Close()
	second := event(t, ranks[3])
	heard := make(chan store.Event)
	ranks[0].Watch(func(e store.Event) { heard <- e })
	assert.Equal(t, first, <-heard)
	assert.Equal(t, second, <-heard)
	assert.Equal(t, store.RankLost, first.Kind)
	assert.Equal(t, 1, first.Rank)
	assert.Equal(t, 2, second.Rank)
	each([]*Store{ranks[0], ranks[3]}, func(s *Store) {
		assert.ErrorContains(t, s.Fence(), "rank 1 (127.0.0.1:")
		s.Finalize()
	})
}

func TestLossOfRank0(t *testing.T) {
	ranks := world(t, 3)
	done := make(chan error, 1)
	go func() { done <- ranks[1].Fence() }()
	s := ranks[0].server
	s.mu.Lock()                   // nobody is told anything in between
	for _, m := range s.members { // as the end of its process does
		m.link.close()
	}
	s.mu.Unlock()
	for _, s := range ranks[1:] {
		e := event(t, s)
		assert.Equal(t, store.Lost, e.Kind)
		assert.Contains(t, e.Why, "rank 0 has probably ended")
	}
	assert.ErrorContains(t, <-done, "rank 0 has probably ended")
	_, err := ranks[2].Get(0, "a")
	assert.ErrorContains(t, err, "rank 0 has probably ended")
	ranks[2].Abort(1) // returns
	ranks[1].Finalize()
	ranks[2].Finalize()
}

// TestRank0Leaves: it serves on while its process lives, and its end is then no failure.
func TestRank0Leaves(t *testing.T) {
	ranks := world(t, 3)
	each(ranks, func(s *Store) { assert.NoError(t, s.Put("a", []byte{byte(s.rank)})); assert.NoError(t, s.Fence()) })
	ranks[0].Finalize()
	ranks[1].Finalize()
	got, err := ranks[2].Get(1, "a")
	require.NoError(t, err)
	assert.Equal(t, []byte{1}, got)
	assert.ErrorContains(t, ranks[2].Fence(), "has finalized")
	ranks[0].server.members[2].link.close()
	none(t, ranks[2])
	_, err = ranks[2].Get(1, "a")
	assert.ErrorContains(t, err, "has finalized")
	ranks[2].Finalize()
}

func TestPortIsFreeAfterTheStart(t *testing.T) {
	ranks := world(t, 3)
	each(ranks, func(s *Store) { assert.NoError(t, s.Fence()) })
	l, err := net.Listen("tcp", ranks[0].where.bind()+":"+strconv.Itoa(ranks[0].where.ports[0]))
	require.NoError(t, err)
	l.Close()
	each(ranks, func(s *Store) { s.Finalize() })
}

func TestOtherSecret(t *testing.T) {
	for _, limit := range []string{"0.3", "3", "30"} { // a machine may stop for longer
		t.Setenv(Timeout.Name, limit)
		if otherSecret(t, limit) {
			return
		}
	}
	t.Error("the reason is not said in any time")
}

// otherSecret reports whether the reasons were said.
func otherSecret(t *testing.T, limit string) bool {
	where := address(freePort(t))
	a, err := Join(0, 2, where, "mellon")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		size   int
		secret string
	}{"secret": {2, "melon"}, "none": {2, ""}, "size": {3, "mellon"}} {
		if _, err = Join(1, c.size, where, c.secret); strings.Contains(err.Error(), "no answer until the end") {
			a.Finalize()
			return false
		}
		assert.ErrorContains(t, err, "as rank 1 of", name)
		assert.ErrorContains(t, err, "gormapy listens there for another job, or with another GORMAPY_SECRET", name)
	}
	_, err = Join(0, 2, where, "mellon")
	assert.ErrorContains(t, err, "rank 0 can't listen for the others at 127.0.0.1 port")
	assert.ErrorContains(t, err, "in use")
	within, _ := time.ParseDuration(limit + "s")
	assert.ErrorContains(t, a.Fence(), "rank 1 never joined the job within "+within.String()+", of 2 ranks")
	a.Finalize()
	return true
}

func TestTakenRank(t *testing.T) {
	where := address(freePort(t))
	a, err := Join(0, 3, where, "")
	require.NoError(t, err)
	b, err := Join(1, 3, where, "")
	require.NoError(t, err)
	_, err = Join(1, 3, where, "")
	assert.ErrorContains(t, err, "rank 1 has been taken by another process (127.0.0.1:")
	for _, c := range []struct {
		rank, size int
		address    string
	}{{3, 3, where}, {-1, 3, where}, {0, 0, where}, {0, 1, "nowhere"}, {0, 1, ":1"}, {0, 1, "a:x"}, {0, 1, "a:0"}, {0, 1, "a:65536"}} {
		_, err = Join(c.rank, c.size, c.address, "")
		assert.Error(t, err, "%v", c)
	}
	a.server.door.close()
	each([]*Store{a, b}, func(s *Store) { s.Finalize() })
}

// What is said after the verdict can't be read on its way.
func TestNobodyListens(t *testing.T) {
	port := freePort(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var heard bytes.Buffer
	var work sync.WaitGroup
	work.Go(func() {
		near, err := l.Accept()
		if !assert.NoError(t, err) {
			return
		}
		far, err := net.Dial("tcp", address(port))
		if !assert.NoError(t, err) {
			return
		}
		go func() { _, _ = io.Copy(near, far); near.Close() }()
		_, _ = io.Copy(far, io.TeeReader(near, &heard))
		far.Close()
	})
	ranks := make([]*Store, 2)
	for r, port := range []int{port, l.Addr().(*net.TCPAddr).Port} {
		ranks[r], err = job{name: "test", rank: r, size: 2, where: place{hosts: []string{"127.0.0.1"}, ports: []int{port}}}.join("test")
		require.NoError(t, err)
	}
	each(ranks, func(s *Store) {
		assert.NoError(t, s.Put("key", []byte("mellon")))
		assert.NoError(t, s.Fence())
		got, err := s.Get(1-s.rank, "key")
		assert.NoError(t, err)
		assert.Equal(t, "mellon", string(got))
	})
	each(ranks, func(s *Store) { s.Finalize() })
	work.Wait()
	assert.Greater(t, heard.Len(), 200)
	assert.NotContains(t, heard.String(), "mellon")
	assert.NotContains(t, heard.String(), "key")
}

// squat listens at a port as a program that is not rank 0 of this job.
func squat(t *testing.T, port int, greeting string) {
	t.Helper()
	l, err := net.Listen("tcp", address(port))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(greeting))
			defer c.Close()
		}
	}()
}

// TestTakenPorts: other programs are at the ports that come first.
func TestTakenPorts(t *testing.T) {
	ports := []int{freePort(t), freePort(t), freePort(t), freePort(t), freePort(t)}
	squat(t, ports[0], "HTTP/1.1 400 Bad Request\r\n\r\n")
	squat(t, ports[1], "") // says nothing
	other, err := Join(0, 2, address(ports[2]), "other job")
	require.NoError(t, err)
	defer other.server.door.close()
	where := place{hosts: []string{"127.0.0.1", "a-name.invalid"}, ports: ports}
	ranks := make([]*Store, 3)
	var wg sync.WaitGroup
	for r := range ranks {
		wg.Go(func() {
			s, err := job{name: "test", rank: r, size: 3, node: 0, where: where}.join("test")
			if assert.NoError(t, err) {
				ranks[r] = s
			}
		})
	}
	wg.Wait()
	require.NotContains(t, ranks, (*Store)(nil))
	each(ranks, func(s *Store) { assert.NoError(t, storetest.Play(s)) })
}

// TestStrangers: connections that say nothing, or nonsense, don't keep the ranks away.
func TestStrangers(t *testing.T) {
	where := address(freePort(t))
	a, err := Join(0, 2, where, "")
	require.NoError(t, err)
	for i := range 3 * strangers {
		c, err := net.Dial("tcp", where)
		require.NoError(t, err)
		defer c.Close()
		if i%2 == 0 {
			_, _ = c.Write([]byte(strings.Repeat("gormapy", 20)))
		}
	}
	b, err := Join(1, 2, where, "")
	require.NoError(t, err)
	assert.LessOrEqual(t, a.server.door.waiting.Len(), 2+strangers)
	each([]*Store{a, b}, func(s *Store) { assert.NoError(t, storetest.Play(s)) })
}
