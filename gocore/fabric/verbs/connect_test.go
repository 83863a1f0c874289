//go:build cgo

package verbs

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

// postOffice is a directory that keeps all mail, to deliver some again.
type postOffice struct {
	*fabrictest.Directory
	sent [][]byte
}

func (d *postOffice) Mail(to int, msg []byte) error {
	d.sent = append(d.sent, bytes.Clone(msg))
	return d.Directory.Mail(to, msg)
}

// orders calls visit with every sequence that has counts of each letter.
func orders(counts map[byte]int, prefix string, visit func(string)) {
	left := false
	for _, c := range []byte("abAB") {
		if counts[c] > 0 {
			left = true
			counts[c]--
			orders(counts, prefix+string(c), visit)
			counts[c]++
		}
	}
	if !left {
		visit(prefix)
	}
}

// The two sides ask for their endpoints (a, b) and poll (A, B) in every order:
// afterwards both can send, whichever began, and also when all mail comes again.
func TestConnectInEveryOrder(t *testing.T) {
	create := software(t)
	orders(map[byte]int{'a': 1, 'b': 1, 'A': 2, 'B': 2}, "", func(order string) {
		var sides []*side
		var dirs []*postOffice
		for _, dir := range fabrictest.Directories(2) {
			office := &postOffice{Directory: dir}
			tr, err := create(office)
			require.NoError(t, err)
			sides = append(sides, &side{Transport: tr.(*Transport), done: map[uint64][]error{}})
			dirs = append(dirs, office)
		}
		for _, c := range []byte(order) {
			s := sides[(c-'A')&1]
			if c >= 'a' {
				ep, err := s.Connect(1 - s.rank)
				require.NoError(t, err)
				_ = ep.Send(&fabric.Header{Kind: fabric.KindEager}, []byte(order)) // it may be too early
			} else {
				s.Poll(s)
			}
		}
		meet(t, sides[0], sides[1])
		numbers := []uint32{sides[0].to.peerQP, sides[1].to.peerQP}
		assert.Equal(t, []uint32{sides[1].to.qp.Num(), sides[0].to.qp.Num()}, numbers, order)
		for i, office := range dirs {
			assert.LessOrEqual(t, len(office.sent), 2, "%s: mails of rank %d", order, i)
			for _, old := range office.sent {
				require.NoError(t, office.Directory.Mail(1-i, old))
				sides[1-i].Poll(sides[1-i])
			}
			// From a queue pair that there was before (the double has none of these numbers), and not for this
			// transport at all.
			m, err := decodeMail(office.sent[0])
			require.NoError(t, err)
			for _, state := range []uint8{mailInit, mailReady, mailClosed} {
				m.qp, m.yours, m.state = 5000, 5001, state
				require.NoError(t, office.Directory.Mail(1-i, m.encode()))
				sides[1-i].Poll(sides[1-i])
			}
			require.NoError(t, office.Directory.Mail(1-i, []byte("hello")))
			sides[1-i].Poll(sides[1-i])
		}
		for _, s := range sides {
			s.got = nil
		}
		for _, s := range sides {
			require.NoError(t, s.to.Send(&fabric.Header{Kind: fabric.KindEager}, []byte("hello")), order)
			other := sides[1-s.rank]
			poll(t, "a message, "+order, func() bool { return len(other.got) == 1 }, sides...)
			assert.Empty(t, s.broken)
		}
		for _, s := range sides {
			require.NoError(t, s.Close())
		}
	})
}

// Nothing is sent before the peer can take it.
func TestNotReady(t *testing.T) {
	create := software(t)
	dirs := fabrictest.Directories(2)
	tr, err := create(dirs[0])
	require.NoError(t, err)
	defer tr.Close()
	ep, err := tr.Connect(1)
	require.NoError(t, err)
	assert.ErrorIs(t, ep.Send(&fabric.Header{}, nil), fabric.ErrAgain)
	_, err = ep.Put(nil, fabric.RemoteKey{}, 8, 1)
	assert.ErrorIs(t, err, fabric.ErrAgain)
	_, err = ep.FetchAdd(nil, fabric.RemoteKey{}, 8, 1)
	assert.ErrorIs(t, err, fabric.ErrAgain)
	_, err = ep.FetchAdd(nil, fabric.RemoteKey{Addr: 4}, 8, 1)
	assert.ErrorContains(t, err, "not a multiple of 8")
	_, err = ep.Put(nil, fabric.RemoteKey{}, -1, 1)
	assert.ErrorContains(t, err, "-1 bytes")
	_, err = ep.PutRuns(nil, 0, make([]fabric.Run, 1000), 1)
	assert.ErrorContains(t, err, "MaxRuns")
}

// The peer's network is another one.
func TestOtherNetwork(t *testing.T) {
	create := software(t)
	dirs := fabrictest.Directories(2)
	tr, err := create(dirs[0])
	require.NoError(t, err)
	s := &side{Transport: tr.(*Transport), done: map[uint64][]error{}}
	defer s.Close()
	m := mail{state: mailInit, link: 1, mtu: 5, qp: 77, psn: 1}
	require.NoError(t, dirs[1].Mail(0, m.encode()))
	poll(t, "Broken", func() bool { return len(s.broken) == 1 }, s)
	assert.ErrorContains(t, s.broken[0], "connect to rank 1 failed: different networks")
	answer, err := decodeMail(dirs[1].Mailed(0))
	require.NoError(t, err)
	assert.Equal(t, uint8(mailClosed), answer.state)
	assert.Contains(t, answer.reason, "different networks")
}
