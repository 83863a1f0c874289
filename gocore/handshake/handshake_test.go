package handshake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	secret   = []byte("a secret of thirty-two bytes....")
	another  = []byte("another one of thirty-two bytes.")
	four     = &Protocol{Name: "test", Version: 3, Limits: []int{100, 0, 2000, 5}}
	messages = [][]byte{[]byte("from 1 to 2"), {}, bytes.Repeat([]byte("long "), 400), []byte("done")}
)

// known returns a function that finds one secret.
func known(p *Protocol, secret []byte) func(Tag) []byte {
	return func(t Tag) []byte {
		if t == p.Tag(secret) {
			return secret
		}
		return nil
	}
}

// shake runs both sides to the end, or until one of them has an error. tamper may change
// each message on its way; number counts them from 0, the hello. Bytes are taken step at
// a time. stuck reports that a side waits for bytes that don't come.
func shake(i, a *Exchange, hello []byte, step int, tamper func(number int, m []byte) []byte) (stuck bool, err error) {
	m := hello
	for number := 0; ; number++ {
		m = bytes.Clone(m)
		if tamper != nil {
			m = tamper(number, m)
		}
		to := []*Exchange{a, i}[number%2]
		var answer []byte
		for len(m) > 0 && err == nil {
			n := min(step, len(m), max(1, to.Missing()))
			answer, err = to.Take(m[:n])
			m = m[n:]
		}
		switch {
		case err != nil && len(answer) > 0:
			_, late := i.Take(answer[:min(len(answer), i.Missing())])
			return false, errors.Join(err, late)
		case err != nil:
			return false, err
		case len(answer) > 0:
			m = answer
		case to.Missing() > 0:
			return true, nil
		case to.Over():
			return false, nil
		default:
			m = to.Say(messages[to.Steps()-2])
		}
	}
}

func TestBothSidesGetTheMessages(t *testing.T) {
	for _, step := range []int{1, 7, 1 << 20} {
		a := four.Accept(known(four, secret))
		i, hello := four.Initiate(secret)
		var wire []byte
		var got [][]byte
		stuck, err := shake(i, a, hello, step, func(number int, m []byte) []byte {
			wire = append(wire, m...)
			for _, x := range []*Exchange{a, i} {
				if b := x.Body(); number > 2 && x.initiator == (number%2 == 0) {
					got = append(got, bytes.Clone(b))
				}
			}
			return m
		})
		require.NoError(t, err)
		require.False(t, stuck)
		for k := range got {
			assert.True(t, bytes.Equal(messages[k], got[k]), "message %d", k)
		}
		assert.Len(t, got, 3)
		assert.Equal(t, messages[3], i.Body())
		for _, x := range []*Exchange{i, a} {
			assert.True(t, x.Over())
			assert.Zero(t, x.Missing())
			assert.Equal(t, 6, x.Steps())
		}
		assert.False(t, bytes.Contains(wire, secret[:8]), "the secret is never sent")
		_, err = i.Take([]byte{1})
		assert.ErrorContains(t, err, "1 bytes more than the handshake has")
	}
}

// No message passes that differs in a bit from what was said.
func TestEachChangedBitIsDetected(t *testing.T) {
	for number, size := range []int{helloBytes, challengeBytes, 47, 36, 36 + 2000, 40} {
		for bit := range size * 8 {
			if number == 4 && bit > 40*8 && bit%97 != 0 {
				continue // the middle of a long message
			}
			a := four.Accept(known(four, secret))
			i, hello := four.Initiate(secret)
			stuck, err := shake(i, a, hello, 1<<20, func(at int, m []byte) []byte {
				if at == number {
					require.Len(t, m, size)
					m[bit/8] ^= 1 << (bit % 8)
				}
				return m
			})
			assert.True(t, err != nil || stuck && number >= 2 && bit < 32, "message %d, bit %d", number, bit)
			if number < 2 {
				assert.Nil(t, a.Body(), "message %d, bit %d", number, bit)
				assert.Nil(t, i.Body(), "message %d, bit %d", number, bit)
				continue
			}
			receiver := []*Exchange{a, i}[number%2]
			assert.Equal(t, number, receiver.Steps(), "message %d, bit %d", number, bit)
		}
	}
}

// A side whose peer stops in the middle waits, and has nothing but complete messages.
func TestMessagesThatAreCutOff(t *testing.T) {
	for number, size := range []int{helloBytes, challengeBytes, 47, 36, 36 + 2000, 40} {
		for cut := range size {
			a := four.Accept(known(four, secret))
			i, hello := four.Initiate(secret)
			stuck, err := shake(i, a, hello, 1<<20, func(at int, m []byte) []byte {
				if at == number {
					return m[:cut]
				}
				return m
			})
			require.NoError(t, err)
			require.True(t, stuck, "message %d, %d bytes", number, cut)
			receiver := []*Exchange{a, i}[number%2]
			require.Equal(t, number, receiver.Steps(), "message %d, %d bytes", number, cut)
			require.Positive(t, receiver.Missing())
		}
	}
}

func TestPeersThatAreRefused(t *testing.T) {
	newer, renamed, stranger := *four, *four, *four
	newer.Version = 4
	renamed.Name = "tests"
	stranger.Name = "else"
	for _, c := range []struct {
		name      string
		initiator *Protocol
		secret    []byte
		want      error
		answered  bool
	}{
		{"another secret", four, another, ErrUnknown, true},
		{"a secret that begins alike", four, secret[:31], ErrUnknown, true},
		{"another protocol", &stranger, secret, ErrForeign, false},
		{"a protocol whose name begins alike", &renamed, secret, ErrForeign, false},
		{"another version", &newer, secret, &VersionError{Theirs: 4, Ours: 3}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := four.Accept(known(four, secret))
			i, hello := c.initiator.Initiate(c.secret)
			var answer []byte
			var err error
			for b := hello; len(b) > 0 && err == nil; {
				n := min(len(b), a.Missing())
				answer, err = a.Take(b[:n])
				b = b[n:]
			}
			assert.Equal(t, c.want, err)
			assert.Zero(t, a.Steps())
			_, again := a.Take([]byte{1})
			assert.Equal(t, err, again, "the error stays")
			if !c.answered {
				assert.Empty(t, answer)
				return
			}
			for err = nil; len(answer) > 0 && err == nil; {
				n := min(len(answer), i.Missing())
				_, err = i.Take(answer[:n])
				answer = answer[n:]
			}
			if v, ok := c.want.(*VersionError); ok {
				c.want = &VersionError{Theirs: v.Ours, Ours: v.Theirs}
			}
			assert.Equal(t, c.want, err, "the initiator learns why")
		})
	}
}

// Who answers with something else is recognised before a whole challenge has come.
func TestAnotherServer(t *testing.T) {
	i, _ := four.Initiate(secret)
	_, err := i.Take([]byte("SSH-2.0-OpenSSH\r")[:i.Missing()])
	assert.Equal(t, ErrForeign, err)
}

// A liar knows the tag, which is no secret, and not what is behind it.
func TestTheTagProvesNothing(t *testing.T) {
	liar := func(p *Protocol) (*Exchange, []byte) {
		x, hello := p.Initiate(another)
		tag := p.Tag(secret)
		copy(hello[openingBytes:], tag[:])
		copy(x.said, hello)
		return x, hello
	}
	i, hello := liar(four)
	a := four.Accept(known(four, secret))
	challenge, err := takeAll(a, hello)
	require.NoError(t, err)
	_, err = takeAll(i, challenge)
	assert.Equal(t, ErrProof, err, "it can't even check what the acceptor says")
	_, err = takeAll(a, i.Say(messages[0]))
	assert.Equal(t, ErrProof, err)

	// One that answers is found out by the challenge: the initiator has said nothing but the hello.
	i, hello = four.Initiate(secret)
	a = four.Accept(func(Tag) []byte { return another })
	challenge, err = takeAll(a, hello)
	require.NoError(t, err)
	_, err = takeAll(i, challenge)
	assert.Equal(t, ErrProof, err)
	assert.Equal(t, 1, i.Steps())

	i, a = opened(t, four)
	_, err = takeAll(a, i.Say(messages[0]))
	require.NoError(t, err)
	a.Use(another)
	_, err = takeAll(i, a.Say(messages[1]))
	assert.Equal(t, ErrProof, err)
}

// takeAll gives an exchange bytes as it asks for them, and returns the last answer.
func takeAll(x *Exchange, b []byte) (answer []byte, err error) {
	for len(b) > 0 && err == nil {
		n := max(1, min(len(b), x.Missing()))
		answer, err = x.Take(b[:n])
		b = b[n:]
	}
	return answer, err
}

// record runs a handshake and returns its messages.
func record(t *testing.T, p *Protocol) (said [][]byte) {
	t.Helper()
	i, hello := p.Initiate(secret)
	_, err := shake(i, p.Accept(known(p, secret)), hello, 1<<20, func(_ int, m []byte) []byte {
		said = append(said, bytes.Clone(m))
		return m
	})
	require.NoError(t, err)
	return said
}

// opened returns both sides, after the challenge.
func opened(t *testing.T, p *Protocol) (i, a *Exchange) {
	t.Helper()
	a = p.Accept(known(p, secret))
	i, hello := p.Initiate(secret)
	challenge, err := takeAll(a, hello)
	require.NoError(t, err)
	_, err = takeAll(i, challenge)
	require.NoError(t, err)
	return i, a
}

func TestRecordedMessages(t *testing.T) {
	said := record(t, four)
	t.Run("to an acceptor", func(t *testing.T) {
		again := four.Accept(known(four, secret))
		challenge, err := takeAll(again, said[0])
		require.NoError(t, err, "a hello can be repeated")
		assert.NotEqual(t, said[1], challenge)
		assert.Equal(t, 2, again.Steps())
		_, err = takeAll(again, said[2])
		assert.Equal(t, ErrProof, err)
	})
	t.Run("to an initiator", func(t *testing.T) {
		i, _ := four.Initiate(secret)
		_, err := takeAll(i, said[1])
		assert.Equal(t, ErrProof, err, "a challenge can't: it is of another hello")
		assert.Equal(t, 1, i.Steps())
		i, _ = opened(t, four)
		i.Say(messages[0])
		_, err = takeAll(i, said[3])
		assert.Equal(t, ErrProof, err)
	})
	t.Run("later in the same handshake", func(t *testing.T) {
		p := &Protocol{Name: "same", Limits: []int{9, 9, 9, 9}}
		i, a := opened(t, p)
		first := i.Say([]byte("x"))
		_, err := takeAll(a, first)
		require.NoError(t, err)
		a.Say([]byte("x"))
		_, err = takeAll(a, first)
		assert.Equal(t, ErrProof, err)
	})
}

// What a side has said is not valid as what its peer says.
func TestReflectedMessages(t *testing.T) {
	p := &Protocol{Name: "same", Limits: []int{9, 9, 9}}
	t.Run("as the answer", func(t *testing.T) {
		i, _ := opened(t, p)
		_, err := takeAll(i, i.Say([]byte("x")))
		assert.Equal(t, ErrProof, err)
	})
	t.Run("from the beginning", func(t *testing.T) {
		i, hello := p.Initiate(secret)
		_, err := takeAll(i, append(p.opening(), append(hello[openingBytes+tagBytes:], make([]byte, proofBytes)...)...))
		assert.Equal(t, ErrProof, err)
	})
	t.Run("from the acceptor to another one", func(t *testing.T) {
		i, a := opened(t, p)
		_, err := takeAll(a, i.Say([]byte("x")))
		require.NoError(t, err)
		answer := a.Say([]byte("x"))
		_, b := opened(t, p)
		_, err = takeAll(b, answer)
		assert.Equal(t, ErrProof, err)
	})
	t.Run("by a side that has the same transcript", func(t *testing.T) {
		i, a := opened(t, p)
		i.initiator, i.steps = false, 3 // it says with the role of the acceptor what is due from the initiator
		_, err := takeAll(a, i.Say([]byte("x")))
		assert.Equal(t, ErrProof, err)
	})
	t.Run("of a protocol of another name", func(t *testing.T) {
		i, a := opened(t, p)
		q := *p
		q.Name = "other"
		i.protocol = &q
		_, err := takeAll(a, i.Say([]byte("x")))
		assert.Equal(t, ErrProof, err)
	})
}

func TestTagsOfProtocolsDiffer(t *testing.T) {
	assert.NotEqual(t, four.Tag(secret), (&Protocol{Name: "tes"}).Tag(secret))
	assert.NotEqual(t, four.Tag(secret), four.Tag(another))
}

func TestLengthsAreBounded(t *testing.T) {
	for body, want := range map[int]error{100: nil, 101: ErrLength, 1 << 20: ErrLength} {
		i, a := opened(t, four)
		_, err := takeAll(a, i.Say(make([]byte, body)))
		assert.ErrorIs(t, err, want, "%d bytes", body)
		if want != nil {
			assert.ErrorContains(t, err, fmt.Sprintf("%d bytes; the limit is 100", body))
			assert.Less(t, len(a.said), helloBytes+challengeBytes+100, "nothing is kept of it")
		}
	}
	_, a := opened(t, four)
	_, err := a.Take([]byte{0xff, 0xff, 0xff, 0xff})
	assert.ErrorIs(t, err, ErrLength)
}

func TestLaterMessagesWithAnotherSecret(t *testing.T) {
	p := &Protocol{Name: "two", Limits: []int{9, 9, 9}}
	for name, c := range map[string]struct {
		initiator, acceptor []byte
		want                error
	}{
		"both change it": {another, another, nil}, "one does": {another, secret, ErrProof}, "the other does": {secret, another, ErrProof},
	} {
		i, a := opened(t, p)
		_, err := takeAll(a, i.Say(nil))
		require.NoError(t, err)
		i.Use(c.initiator)
		a.Use(c.acceptor)
		_, err = takeAll(i, a.Say([]byte("x")))
		assert.Equal(t, c.want, err, name)
		if err == nil {
			_, err = takeAll(a, i.Say([]byte("y")))
			assert.NoError(t, err)
			assert.True(t, a.Over())
		}
	}
}

func TestABindingIsOfOneHandshake(t *testing.T) {
	i, a := opened(t, four)
	bound := i.Bind(another, []byte("b"))
	assert.True(t, a.Bound(another, []byte("b"), bound))
	_, err := takeAll(a, i.Say(nil))
	require.NoError(t, err)
	assert.True(t, a.Bound(another, []byte("b"), bound), "later, too")
	assert.False(t, a.Bound(another, []byte("c"), bound))
	assert.False(t, a.Bound(secret, []byte("b"), bound))
	assert.False(t, a.Bound(another, []byte("b"), bound[:31]))
	_, other := opened(t, four)
	assert.False(t, other.Bound(another, []byte("b"), bound))
}

// pipe returns the two ends of a connection.
func pipe(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	a, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	for _, c := range []net.Conn{a, b} {
		require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	}
	return a, b
}

func TestOverAConnection(t *testing.T) {
	near, far := pipe(t)
	done := make(chan error, 1)
	go func() {
		a := four.Accept(known(four, secret))
		for k := 0; !a.Over(); k += 2 {
			body, err := a.Hear(far)
			if err == nil && !bytes.Equal(body, messages[k]) {
				err = fmt.Errorf("message %d is %q", k, body)
			}
			if err == nil {
				err = a.Tell(far, messages[k+1])
			}
			if err != nil {
				done <- err
				return
			}
		}
		_, err := far.Write([]byte("what follows"))
		done <- err
	}()
	i, err := four.Call(near, secret)
	require.NoError(t, err)
	for k := 0; !i.Over(); k += 2 {
		require.NoError(t, i.Tell(near, messages[k]))
		body, err := i.Hear(near)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(messages[k+1], body), "message %d", k+1)
	}
	b := make([]byte, len("what follows"))
	_, err = io.ReadFull(near, b)
	require.NoError(t, err)
	assert.Equal(t, "what follows", string(b))
	require.NoError(t, <-done)
}

func TestRefusalsOverAConnection(t *testing.T) {
	newer := *four
	newer.Version = 4
	for want, p := range map[string]*Protocol{"it does not know this secret": four, "it speaks version 3; this is version 4": &newer} {
		near, far := pipe(t)
		done := make(chan error, 1)
		go func() {
			_, err := four.Accept(known(four, another)).Hear(far)
			far.Close()
			done <- err
		}()
		x, hello := p.Initiate(secret)
		_, err := near.Write(hello)
		require.NoError(t, err)
		_, err = x.Hear(near)
		assert.EqualError(t, err, want)
		_, again := x.Hear(near)
		assert.Equal(t, err, again)
		assert.Error(t, <-done)
	}
}

func TestConnectionsThatEnd(t *testing.T) {
	near, far := pipe(t)
	go func() {
		_, _ = io.ReadFull(far, make([]byte, helloBytes))
		_, _ = far.Write(four.opening())
		far.Close()
	}()
	_, err := four.Call(near, secret)
	assert.Equal(t, io.EOF, err)
	near.Close()
	_, err = four.Call(near, secret)
	assert.ErrorIs(t, err, net.ErrClosed)
}

// No bytes of an initiator that does not know the secret pass.
func FuzzAcceptor(f *testing.F) {
	_, hello := four.Initiate(secret)
	f.Add(hello, 64)
	f.Add(append(bytes.Clone(hello), make([]byte, 200)...), 9)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 3)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		a := four.Accept(known(four, secret))
		feed(a, data, step)
		if a.Steps() > 2 {
			t.Fatal("it is taken for a peer")
		}
	})
}

// No bytes of an acceptor that does not know the secret pass.
func FuzzInitiator(f *testing.F) {
	_, hello := four.Initiate(secret)
	challenge, _ := takeAll(four.Accept(known(four, secret)), hello)
	f.Add(append(bytes.Clone(challenge), make([]byte, 36)...), 13)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), 64)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		i, _ := four.Initiate(secret)
		feed(i, data, step)
		if i.Steps() > 1 {
			t.Fatal("it is taken for the peer")
		}
	})
}

// feed gives an exchange bytes, at most step at a time. An initiator says its first
// message in between.
func feed(x *Exchange, data []byte, step int) {
	for step = max(1, step&127); len(data) > 0; {
		if x.initiator && x.Steps() == 2 {
			x.Say(messages[0])
		}
		n := min(step, x.Missing(), len(data))
		if n == 0 {
			return
		}
		if _, err := x.Take(data[:n]); err != nil {
			return
		}
		data = data[n:]
	}
}
