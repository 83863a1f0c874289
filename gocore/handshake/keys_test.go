package handshake

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var withKeys = &Protocol{Name: "test", Version: 3, Limits: four.Limits, Keyed: true}

func TestBothSidesHaveTheSameKeys(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		a := withKeys.Accept(known(withKeys, secret))
		i, hello := withKeys.Initiate(secret)
		_, _, err := i.Keys()
		assert.ErrorContains(t, err, "when it is over")
		_, err = shake(i, a, hello, 7, nil)
		require.NoError(t, err)
		out, in, err := i.Keys()
		require.NoError(t, err)
		theirs, ours, err := a.Keys()
		require.NoError(t, err)
		assert.Equal(t, out, ours)
		assert.Equal(t, in, theirs)
		for _, key := range [][]byte{out, in} {
			assert.Len(t, key, keyBytes)
			assert.False(t, seen[string(key)], "each handshake has keys of its own, one for each direction")
			seen[string(key)] = true
		}
	}
}

// Keys depend on all that was said, on the secret and on the private keys.
func TestKeysAreOfOneHandshake(t *testing.T) {
	a := withKeys.Accept(known(withKeys, secret))
	i, hello := withKeys.Initiate(secret)
	_, err := shake(i, a, hello, 1<<20, nil)
	require.NoError(t, err)
	out, _, err := i.Keys()
	require.NoError(t, err)
	for what, change := range map[string]func(x *Exchange){
		"secret": func(x *Exchange) { x.Use(another) },
		"said":   func(x *Exchange) { x.said = append([]byte{}, x.said...); x.said[len(x.said)-1] ^= 1 },
		"private": func(x *Exchange) {
			other, _ := withKeys.Initiate(secret)
			x.private = other.private
		},
	} {
		x := *i
		change(&x)
		other, _, err := x.Keys()
		require.NoError(t, err, what)
		assert.NotEqual(t, out, other, what)
	}
}

func TestHandshakesWithoutKeys(t *testing.T) {
	a := four.Accept(known(four, secret))
	i, hello := four.Initiate(secret)
	_, err := shake(i, a, hello, 1<<20, nil)
	require.NoError(t, err)
	_, _, err = i.Keys()
	assert.ErrorContains(t, err, "if its protocol is keyed")
}

// A nonce that gives the same with every private key is refused.
func TestNoncesThatAreNoKeys(t *testing.T) {
	a := withKeys.Accept(known(withKeys, secret))
	i, hello := withKeys.Initiate(secret)
	_, err := shake(i, a, hello, 1<<20, nil)
	require.NoError(t, err)
	clear(a.said[openingBytes+tagBytes:][:nonceBytes])
	_, _, err = a.Keys()
	assert.ErrorContains(t, err, "its nonce is no public key")
}

// A program without X25519 gets errors, and no nil key.
func TestWithoutX25519(t *testing.T) {
	const inside = "HANDSHAKE_TEST_WITHOUT_X25519"
	if os.Getenv(inside) == "" {
		assert.NoError(t, Usable())
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), inside+"=1", "GODEBUG=fips140=only")
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s", out)
		return
	}
	assert.ErrorIs(t, Usable(), ErrNoKeys)
	i, hello := withKeys.Initiate(secret)
	assert.Empty(t, hello)
	_, err := i.Take([]byte{1})
	assert.ErrorIs(t, err, ErrNoKeys)
	_, err = withKeys.Call(&bytes.Buffer{}, secret)
	assert.ErrorIs(t, err, ErrNoKeys)
	_, _, err = i.Keys()
	assert.Error(t, err)

	tag := withKeys.Tag(secret)
	a := withKeys.Accept(known(withKeys, secret))
	answer, err := takeAll(a, append(append(withKeys.opening(), tag[:]...), make([]byte, nonceBytes)...))
	assert.ErrorIs(t, err, ErrNoKeys)
	assert.Empty(t, answer)

	a = four.Accept(known(four, secret)) // needs none
	i, hello = four.Initiate(secret)
	_, err = shake(i, a, hello, 1<<20, nil)
	assert.NoError(t, err)
}
