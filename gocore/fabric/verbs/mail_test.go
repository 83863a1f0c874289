package verbs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
)

func TestMail(t *testing.T) {
	m := mail{state: mailReady, link: 2, mtu: 5, lid: 7, qp: 0xffffff, psn: 3, yours: 9, gid: [16]byte{1, 2, 15: 3}, reason: strings.Repeat("x", 500)}
	b := m.encode()
	assert.Len(t, b, fabric.MailBytes)
	got, err := decodeMail(b)
	require.NoError(t, err)
	m.reason = m.reason[:maxReason]
	assert.Equal(t, m, got)
	for _, bad := range [][]byte{nil, b[:39], append([]byte{0}, b...), make([]byte, 100)} {
		_, err := decodeMail(bad)
		assert.Error(t, err)
	}
}

func FuzzMail(f *testing.F) {
	f.Add((&mail{state: mailInit, mtu: 5, qp: 17}).encode())
	f.Add((&mail{state: mailClosed, reason: "out of memory"}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMail(b)
		if err != nil {
			return
		}
		again, err := decodeMail(m.encode())
		if len(b) <= fabric.MailBytes && (err != nil || again != m) {
			t.Fatalf("%+v becomes %+v, %v", m, again, err)
		}
	})
}
