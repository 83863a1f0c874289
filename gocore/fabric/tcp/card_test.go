package tcp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
)

func TestCard(t *testing.T) {
	addrs := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fd00::7"), netip.MustParseAddr("10.1.2.3")}
	card := encodeCard(addrs, 4711)
	assert.LessOrEqual(t, len(card), fabric.CardBytes)
	list, err := decodeCard(card)
	require.NoError(t, err)
	require.Len(t, list, 3)
	for i, a := range addrs {
		assert.Equal(t, netip.AddrPortFrom(a, 4711), list[i])
	}
	for n := range len(card) {
		_, err := decodeCard(card[:n])
		assert.Error(t, err, "%d bytes of it", n)
	}
	_, err = decodeCard(append(card, 0))
	assert.ErrorContains(t, err, "1 bytes too many")
	many := make([]netip.Addr, maxAddresses)
	for i := range many {
		many[i] = addrs[1]
	}
	assert.LessOrEqual(t, len(encodeCard(many, 1)), fabric.CardBytes)
}

func FuzzCard(f *testing.F) {
	f.Add(encodeCard([]netip.Addr{netip.MustParseAddr("127.0.0.1")}, 80))
	f.Add(encodeCard([]netip.Addr{netip.IPv6Loopback()}, 80))
	f.Fuzz(func(t *testing.T, card []byte) {
		list, err := decodeCard(card)
		if err == nil && (len(list) == 0 || len(list) > maxAddresses) {
			t.Fatalf("%d addresses", len(list))
		}
	})
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		says string
	}{
		{Options{Address: "localhost"}, `listen on "localhost": an IP address of this host is needed, such as 127.0.0.1`},
		{Options{Address: "0.0.0.0"}, "an IP address of this host is needed"},
		{Options{Address: "192.0.2.1"}, "listen on 192.0.2.1: cannot assign requested address"},
		{Options{Interface: "nosuch0"}, ": there are ["},
		{Options{Interface: "lo", Address: "127.0.0.1"}, "choose one"},
	} {
		tr, err := New(fabrictest.Directories(2)[0], c.o)
		assert.ErrorContains(t, err, c.says)
		assert.Nil(t, tr)
	}
	for _, o := range []Options{{}, {Address: "127.0.0.1"}, {Address: "127.0.0.2"}, {Interface: "lo"}} {
		dirs := fabrictest.Directories(2)
		tr, err := New(dirs[0], o)
		require.NoError(t, err)
		list, err := decodeCard(dirs[0].Card(0))
		require.NoError(t, err)
		assert.Equal(t, []netip.AddrPort{tr.at}, list)
		assert.True(t, tr.at.Addr().IsLoopback())
		require.NoError(t, tr.Close())
	}
}
