package tcp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var testSecret = []byte("a secret of thirty-two bytes....")

// shake runs both sides of a handshake, step bytes at a time. tamper may change
// each message; number counts them from 0, the hello.
func shake(i, a *handshake, hello []byte, step int, use bool, tamper func(number int, m []byte)) error {
	m := bytes.Clone(hello)
	for number := 0; len(m) > 0; number++ {
		if tamper != nil {
			tamper(number, m)
		}
		to := []*handshake{a, i}[number%2]
		var answer []byte
		for len(m) > 0 {
			n := min(step, len(m))
			var err error
			if answer, err = to.take(m[:n]); err != nil {
				return err
			}
			m = m[n:]
		}
		m = bytes.Clone(answer)
		if a.stage == proved && number == 2 {
			m = a.verdict(use)
		}
	}
	return nil
}

func TestHandshake(t *testing.T) {
	for _, step := range []int{1, 7, 1000} {
		for _, use := range []bool{true, false} {
			a := accepting(newIdentity(testSecret, 2, 5))
			i, hello := initiating(newIdentity(testSecret, 4, 5), 2)
			var wire []byte
			require.NoError(t, shake(i, a, hello, step, use, func(_ int, m []byte) { wire = append(wire, m...) }))
			assert.Equal(t, proved, a.stage)
			assert.Equal(t, 4, a.peer)
			assert.Equal(t, settled, i.stage)
			assert.Equal(t, use, i.use)
			assert.Zero(t, i.missing())
			assert.Len(t, wire, helloBytes+challengeBytes+responseBytes+verdictBytes)
			assert.False(t, bytes.Contains(wire, testSecret[:8]), "the secret is never sent")
		}
	}
}

func TestHandshakeDetectsEachChangedBit(t *testing.T) {
	for number, size := range []int{helloBytes, challengeBytes, responseBytes, verdictBytes} {
		for bit := range size * 8 {
			a := accepting(newIdentity(testSecret, 0, 2))
			i, hello := initiating(newIdentity(testSecret, 1, 2), 0)
			err := shake(i, a, hello, 1000, true, func(at int, m []byte) {
				if at == number {
					m[bit/8] ^= 1 << (bit % 8)
				}
			})
			assert.Error(t, err, "message %d, bit %d", number, bit)
			assert.NotEqual(t, settled, i.stage, "message %d, bit %d", number, bit)
		}
	}
}

func TestHandshakeRefuses(t *testing.T) {
	for _, c := range []struct {
		name      string
		acceptor  *identity
		initiator *identity
		peer      int
		says      string
	}{
		{"another secret", newIdentity(testSecret, 0, 2), newIdentity([]byte("another"), 1, 2), 0, "secret"},
		{"another rank wanted", newIdentity(testSecret, 0, 3), newIdentity(testSecret, 1, 3), 2, "rank 1 wants rank 2, this is rank 0 of 3"},
		{"the own rank", newIdentity(testSecret, 0, 3), newIdentity(testSecret, 0, 3), 0, "rank 0 wants rank 0"},
		{"no such rank", newIdentity(testSecret, 0, 2), newIdentity(testSecret, 7, 8), 0, "rank 7 wants rank 0, this is rank 0 of 2"},
		{"a negative rank", newIdentity(testSecret, 0, 2), newIdentity(testSecret, -1, 8), 0, "rank 4294967295"},
	} {
		i, hello := initiating(c.initiator, c.peer)
		assert.ErrorContains(t, shake(i, accepting(c.acceptor), hello, 1000, true, nil), c.says, c.name)
	}
	// With the right job and a wrong secret only the HMACs are wrong.
	liar := newIdentity([]byte("another"), 1, 2)
	liar.job = newIdentity(testSecret, 1, 2).job
	i, hello := initiating(liar, 0)
	assert.ErrorIs(t, shake(i, accepting(newIdentity(testSecret, 0, 2)), hello, 1000, true, nil), errOtherJob)
	liar.rank = 0
	i, hello = initiating(newIdentity(testSecret, 1, 2), 0)
	fake := accepting(liar)
	challenge, err := fake.take(hello)
	require.NoError(t, err)
	response, err := i.take(challenge)
	require.NoError(t, err)
	require.Len(t, response, responseBytes)
	_, err = i.take(fake.verdict(true))
	assert.ErrorIs(t, err, errOtherJob)
}

// A recorded message and one of the other role prove nothing.
func TestHandshakeReplayAndReflection(t *testing.T) {
	server, client := newIdentity(testSecret, 0, 2), newIdentity(testSecret, 1, 2)
	var said [][]byte
	i, hello := initiating(client, 0)
	require.NoError(t, shake(i, accepting(server), hello, 1000, true, func(_ int, m []byte) { said = append(said, bytes.Clone(m)) }))

	again := accepting(server)
	challenge, err := again.take(said[0])
	require.NoError(t, err)
	assert.NotEqual(t, said[1], challenge)
	_, err = again.take(said[2])
	assert.ErrorIs(t, err, errOtherJob, "a recorded response")

	victim, _ := initiating(client, 0)
	_, err = victim.take(said[1])
	require.NoError(t, err)
	_, err = victim.take(said[3])
	assert.ErrorIs(t, err, errOtherJob, "a recorded verdict")

	// The victim's own response comes back to it as a verdict.
	victim, _ = initiating(client, 0)
	response, err := victim.take(said[1])
	require.NoError(t, err)
	_, err = victim.take(append([]byte{verdictUse, 0, 0, 0, 0, 0, 0, 0}, response...))
	assert.ErrorIs(t, err, errOtherJob, "a reflected response")
}

// No bytes from an initiator that does not know the secret pass the handshake.
func FuzzAcceptor(f *testing.F) {
	_, hello := initiating(newIdentity(testSecret, 1, 4), 0)
	f.Add(hello, 64)
	f.Add(append(bytes.Clone(hello), make([]byte, responseBytes)...), 9)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 3)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		a := accepting(newIdentity(testSecret, 0, 4))
		for step = max(1, step&127); len(data) > 0; {
			n := min(step, a.missing(), len(data))
			if n == 0 {
				break
			}
			if _, err := a.take(data[:n]); err != nil {
				break
			}
			data = data[n:]
		}
		if a.stage == proved {
			t.Fatal("it is taken for a peer")
		}
	})
}

// No bytes from an acceptor that does not know the secret pass the handshake.
func FuzzInitiator(f *testing.F) {
	a := accepting(newIdentity(testSecret, 0, 4))
	_, hello := initiating(newIdentity(testSecret, 1, 4), 0)
	challenge, _ := a.take(hello)
	f.Add(append(bytes.Clone(challenge), a.verdict(true)...), 13)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), 64)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		i, _ := initiating(newIdentity(testSecret, 1, 4), 0)
		for step = max(1, step&127); len(data) > 0; {
			n := min(step, i.missing(), len(data))
			if n == 0 {
				break
			}
			if _, err := i.take(data[:n]); err != nil {
				break
			}
			data = data[n:]
		}
		if i.stage == settled {
			t.Fatal("it is taken for the peer")
		}
	})
}
