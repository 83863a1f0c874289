package job

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDirectory(t *testing.T) {
	seg, err := Create(3)
	require.NoError(t, err)
	defer seg.Close()
	a, b := seg.Directory(0), seg.Directory(2)
	assert.Len(t, a.Secret(), 32)
	assert.Equal(t, a.Secret(), b.Secret())
	assert.NotEqual(t, make([]byte, 32), a.Secret())
	assert.Nil(t, b.Card(0))
	require.NoError(t, a.Publish([]byte("tcp 127.0.0.1:9")))
	assert.Equal(t, "tcp 127.0.0.1:9", string(b.Card(0)))
	assert.Error(t, a.Publish(make([]byte, 481)))

	assert.Nil(t, b.Mailed(0))
	before := b.Mails()
	require.NoError(t, a.Mail(2, []byte("one")))
	require.NoError(t, a.Mail(2, []byte("two")))
	assert.NotEqual(t, before, b.Mails())
	assert.Equal(t, "two", string(b.Mailed(0)))
	assert.Nil(t, b.Mailed(0), "it is taken once")
	assert.Nil(t, b.Mailed(1))
	assert.Error(t, a.Mail(2, make([]byte, 233)))
	require.NoError(t, a.Mail(2, nil))
	assert.NotNil(t, b.Mailed(0))
}

func TestPlace(t *testing.T) {
	segs, err := CreateNodes([]int{0, 1, 0, 1, 1})
	require.NoError(t, err)
	for rank, number := range []int{0, 0, 1, 1, 2} {
		assert.Equal(t, number, segs[rank%2].Directory(rank).OnNode(), "rank %d", rank)
	}
	d := segs[1].Directory(4)
	assert.False(t, d.Address(time.Now()).IsValid())
	time.AfterFunc(10*time.Millisecond, func() { segs[1].SetAddress(netip.MustParseAddr("::ffff:10.0.0.2")) })
	assert.Equal(t, "10.0.0.2", d.Address(time.Now().Add(20*time.Second)).String())
	segs[1].SetAddress(netip.MustParseAddr("10.0.0.3"))
	assert.Equal(t, "10.0.0.2", d.Address(time.Now()).String(), "the first one stays")
	assert.False(t, segs[0].Address().IsValid(), "each node has its own")
	for _, seg := range segs {
		require.NoError(t, seg.Close())
	}
}
