package registry

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/job"
	"gormapy/gocore/settings"
)

var update = flag.Bool("update", false, "write the table of transports into docs/transports.md")

const (
	page         = "../../../docs/transports.md"
	settingsPage = "../../../docs/settings.md"
)

func TestEntriesAreWhole(t *testing.T) {
	seen := map[string]bool{"auto": true, "self": true}
	for _, e := range Entries() {
		assert.Regexp(t, `^[a-z][a-z0-9]*$`, e.Name)
		assert.False(t, seen[e.Name], "%s is listed twice", e.Name)
		seen[e.Name] = true
		assert.NotEmpty(t, e.What(), e.Name)
		assert.NotEmpty(t, e.OneSided, e.Name)
		assert.NotNil(t, e.Problem, e.Name)
		assert.DirExists(t, "../"+e.Name)
		for _, s := range e.Settings {
			assert.Contains(t, settings.All(), s)
			assert.Regexp(t, `^GORMAPY_[A-Z_]+$`, s.Name)
			assert.NotEmpty(t, s.Meaning, s.Name)
			assert.NotEmpty(t, s.Reader, s.Name)
		}
	}
}

func TestChoices(t *testing.T) {
	names := []string{"auto"}
	for _, e := range Entries() {
		names = append(names, e.Name)
		t.Setenv(settings.Fabric.Name, strings.ToUpper(e.Name))
		assert.Equal(t, e.Name, settings.Fabric.Value())
		assert.Empty(t, settings.Fabric.Problem())
	}
	assert.Equal(t, names, settings.Fabric.Choices)
	for _, name := range []string{"auto", "shm"} {
		t.Setenv(settings.Fabric.Name, name)
		transport, err := Open(name, nil)
		assert.NoError(t, err)
		assert.Nil(t, transport, "the engine has it")
	}
}

// A network that can't encrypt is not used where encryption is asked for.
func TestEncryption(t *testing.T) {
	t.Setenv(tcp.TLS.Name, "1")
	for _, e := range Entries() {
		if e.Network() && e.Name != tcp.Entry.Name {
			_, err := Open(e.Name, nil)
			assert.EqualError(t, err, "GORMAPY_TLS=1, and GORMAPY_FABRIC="+e.Name+" can't encrypt: leave one of them unset")
		}
	}
	assert.Empty(t, Between())
	t.Setenv(tcp.TLS.Name, "on")
	_, err := Open("tcp", fabrictest.Directories(1)[0])
	assert.EqualError(t, err, `GORMAPY_FABRIC=tcp: GORMAPY_TLS is "on", which it can't be: choose from 0, 1`)
}

// Ranks compare names of any length.
func TestTokens(t *testing.T) {
	seg, err := job.Create(1)
	require.NoError(t, err)
	defer seg.Close()
	const long, other = "a-transport-with-a-long-name", "a-transport-with-another-name"
	assert.Equal(t, Token(long), seg.AgreeFabric(Token(long)))
	assert.Equal(t, Token(long), seg.AgreeFabric(Token(other)))
	assert.NotEqual(t, Token(long), Token(other))
	seen := map[string]bool{}
	for _, name := range settings.Fabric.Choices {
		assert.Equal(t, name, Named(Token(name)))
		assert.False(t, seen[Token(name)], "two names have the token of %s", name)
		seen[Token(name)] = true
	}
}

// tableHead begins the table of transports in docs/transports.md.
const tableHead = "| `GORMAPY_FABRIC` | needs | one-sided operations |\n|---|---|---|\n"

func table(entries []fabric.Entry) string {
	text := tableHead
	for _, e := range entries {
		text += strings.ReplaceAll("| `"+e.Name+"` | "+e.Needs+" | "+e.OneSided+" |\n", "|  |", "| |")
	}
	return text
}

func TestDocsHaveTheTransports(t *testing.T) {
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	before, after, found := strings.Cut(string(b), tableHead)
	require.True(t, found, "docs/transports.md has no table that begins\n%s", tableHead)
	rows, rest, _ := strings.Cut(after, "\n\n")
	want := table(Entries())
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+want+"\n"+rest), 0o644))
		return
	}
	assert.Equal(t, want, tableHead+rows+"\n", "go test ./gocore/fabric/registry -update writes it")
	b, err = os.ReadFile(settingsPage)
	require.NoError(t, err)
	for _, e := range Entries() {
		for _, s := range e.Settings {
			assert.Contains(t, string(b), "`"+s.Name+"`", "a setting of %s", e.Name)
		}
	}
}
