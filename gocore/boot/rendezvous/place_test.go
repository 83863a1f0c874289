package rendezvous

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFirstHost(t *testing.T) {
	for list, want := range map[string]string{
		"a": "a", "a,b": "a", "host[0-3]": "host0", "a[1-3,07-09]b,c": "a1b", "a[07]": "a07", "a[07,9]": "a07",
		"rack[2-3]node[10-20]-ib": "rack2node10-ib", "": "", "a[": "a", "a]": "a]", "[3-4": "3",
	} {
		assert.Equal(t, want, firstHost(list), list)
	}
}

// FuzzFirstHost: any list gives a part of itself, without brackets that open.
func FuzzFirstHost(f *testing.F) {
	f.Add("a[1-3,07-09]b,c")
	f.Add("a[[,]")
	f.Fuzz(func(t *testing.T, list string) {
		host := firstHost(list)
		assert.LessOrEqual(t, len(host), len(list))
		if !strings.ContainsAny(list, "[,") {
			assert.Equal(t, list, host)
		}
	})
}

func TestDerivedPorts(t *testing.T) {
	a := derivedPorts("a")
	assert.Len(t, a, candidates)
	assert.Equal(t, a, derivedPorts("a"))
	assert.NotEqual(t, a, derivedPorts("b"))
	for _, p := range a {
		assert.True(t, p >= firstPort && p < firstPort+portRange)
	}
}

func TestSecrets(t *testing.T) {
	assert.NotEqual(t, derivedSecret(nil, "a"), derivedSecret(nil, "b"))
	assert.NotEqual(t, derivedSecret(nil, "a"), derivedSecret([]byte("x"), "a"))
	assert.Equal(t, derivedSecret([]byte("x"), "a"), derivedSecret([]byte("x"), "a"))
}

func TestBind(t *testing.T) {
	for host, want := range map[string]string{"localhost": "127.0.0.1", "127.0.0.1": "127.0.0.1", "::1": "::1", "10.0.0.1": "", "node3": ""} {
		assert.Equal(t, want, place{hosts: []string{host}}.bind(), host)
		assert.Empty(t, place{hosts: []string{host}, wide: true}.bind(), host)
	}
}
