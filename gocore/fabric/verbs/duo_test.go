//go:build cgo

package verbs

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/ibverbs/double"
)

// side is a rank that is polled by hand.
type side struct {
	*Transport
	to     *endpoint // the other side
	done   map[uint64][]error
	broken []error
	got    [][]byte
}

func (s *side) Deliver(_ int, _ *fabric.Header, payload []byte) {
	s.got = append(s.got, append([]byte{}, payload...))
}
func (s *side) Place(int, *fabric.Header, int) unsafe.Pointer { return nil }
func (s *side) Completed(cookie uint64, err error)            { s.done[cookie] = append(s.done[cookie], err) }
func (s *side) Broken(_ int, err error)                       { s.broken = append(s.broken, err) }

// duo is two ranks of the double that are connected.
func duo(t testing.TB) (a, b *side) {
	t.Helper()
	create := software(t)
	var sides []*side
	for _, dir := range fabrictest.Directories(2) {
		tr, err := create(dir)
		require.NoError(t, err)
		s := &side{Transport: tr.(*Transport), done: map[uint64][]error{}}
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		sides = append(sides, s)
	}
	a, b = sides[0], sides[1]
	meet(t, a, b)
	double.Reset()
	return a, b
}

func meet(t testing.TB, a, b *side) {
	t.Helper()
	for _, s := range []*side{a, b} {
		ep, err := s.Connect(1 - s.rank)
		require.NoError(t, err)
		s.to = ep.(*endpoint)
	}
	poll(t, "the connection", func() bool { return a.to.usable() == nil && b.to.usable() == nil }, a, b)
}

// poll polls until something holds.
func poll(t testing.TB, what string, holds func() bool, sides ...*side) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); {
		for _, s := range sides {
			s.Poll(s)
		}
		if time.Now().After(end) {
			t.Fatalf("not after 20 s: %s", what)
		}
	}
}

// expose registers n bytes of s.
func expose(t testing.TB, s *side, n int) ([]byte, fabric.RemoteKey, fabric.Region) {
	t.Helper()
	mem := fabrictest.Memory(t, n)
	r, err := s.Register(fabrictest.Pointer(mem), n)
	require.NoError(t, err)
	return mem, r.Key(), r
}

// post repeats an operation until there is room.
func post(t testing.TB, s *side, op func() (bool, error)) {
	t.Helper()
	for {
		done, err := op()
		if errors.Is(err, fabric.ErrAgain) {
			s.Poll(s)
			continue
		}
		require.NoError(t, err)
		require.False(t, done)
		return
	}
}
