package job

import (
	"testing"

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
