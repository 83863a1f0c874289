package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/handshake"
)

var testSecret = []byte("a secret of thirty-two bytes....")

func TestCallersAreRanksOfThisJob(t *testing.T) {
	for _, c := range []struct {
		name     string
		acceptor *identity
		from, to int
		says     string
	}{
		{"a peer", newIdentity(testSecret, 2, 5), 4, 2, ""},
		{"another rank wanted", newIdentity(testSecret, 0, 3), 1, 2, "rank 1 wants rank 2, this is rank 0 of 3"},
		{"the own rank", newIdentity(testSecret, 0, 3), 0, 0, "rank 0 wants rank 0"},
		{"no such rank", newIdentity(testSecret, 0, 2), 7, 0, "rank 7 wants rank 0, this is rank 0 of 2"},
		{"a negative rank", newIdentity(testSecret, 0, 2), -1, 0, "rank 4294967295"},
	} {
		initiator := newIdentity(testSecret, c.from, 9)
		initiator.guard = Encrypted
		said := initiator.ranks(c.to, 3)
		require.Len(t, said, ranksBytes)
		peer, lane, guard, err := c.acceptor.caller(said)
		if c.says == "" {
			require.NoError(t, err, c.name)
			assert.Equal(t, Encrypted, guard)
			assert.Equal(t, c.from, peer)
			assert.Equal(t, 3, lane)
			continue
		}
		assert.ErrorContains(t, err, c.says, c.name)
		assert.Equal(t, -1, peer)
	}
	for n := range ranksBytes {
		_, _, _, err := newIdentity(testSecret, 0, 2).caller(newIdentity(testSecret, 1, 2).ranks(0, 0)[:n])
		assert.ErrorIs(t, err, errMalformed)
	}
	_, _, _, err := newIdentity(testSecret, 0, 2).caller([]byte{1, 0, 0, 0, 0, 0, 0, 0, byte(guards), 0})
	assert.ErrorIs(t, err, errMalformed)
	_, _, _, err = newIdentity(testSecret, 0, 2).caller([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, MaxConnections})
	assert.ErrorIs(t, err, errMalformed)
}

func TestVerdicts(t *testing.T) {
	id := newIdentity(testSecret, 0, 2)
	id.guard = Authenticated
	for use, want := range map[bool]byte{true: verdictUse, false: verdictYield} {
		got, guard, err := decided(id.verdict(use))
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Equal(t, Authenticated, guard)
	}
	for _, said := range [][]byte{nil, {0, 0}, {4, 0}, {1}, {1, byte(guards)}, {1, 0, 0}} {
		_, _, err := decided(said)
		assert.ErrorIs(t, err, errMalformed)
	}
}

func TestTheSecretIsFoundByItsTag(t *testing.T) {
	id := newIdentity(testSecret, 0, 2)
	assert.Equal(t, testSecret, id.find(protocol.Tag(testSecret)))
	assert.Nil(t, id.find(protocol.Tag([]byte("another"))))
	assert.Nil(t, id.find(handshake.Tag{}))
}
