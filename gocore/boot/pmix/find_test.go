package pmix

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMapped(t *testing.T) {
	maps := `55d0-55d1 r--p 00000000 08:01 12   /opt/ompi/bin/prterun
7f00-7f01 r-xp 00000000 08:01 34                         /opt/my ompi/lib/openmpi/libpmix.so.2.13.1
7f01-7f02 rw-p 00001000 08:01 34                         /opt/my ompi/lib/openmpi/libpmix.so.2.13.1
7f02-7f03 rw-p 00001000 08:01 35                         /usr/lib/libpmix.so.2
7f03-7f04 rw-p 00001000 08:01 36                         /tmp/libpmix.so.2 (deleted)
7f04-7f05 rw-p 00001000 08:01 37                         /usr/lib/libpmixutil.so.1
7f05-7f06 rw-p 00000000 00:00 0                          [stack]
`
	assert.Equal(t, []string{"/opt/my ompi/lib/openmpi/libpmix.so.2.13.1", "/usr/lib/libpmix.so.2"}, mapped(strings.NewReader(maps)))
	assert.Empty(t, mapped(strings.NewReader("")))
}

func TestCandidates(t *testing.T) {
	for _, name := range []string{Library.Name, "PMIX_PREFIX", "OPAL_PREFIX", "PRTE_PREFIX"} {
		t.Setenv(name, "")
	}
	all := candidates()
	assert.Contains(t, all, candidate{"libpmix.so.2", "the dynamic linker's search"})

	dir := filepath.Join(t.TempDir(), "a*[b")
	inside := filepath.Join(dir, "lib", "openmpi", "libpmix.so.2")
	require.NoError(t, os.MkdirAll(filepath.Dir(inside), 0o700))
	require.NoError(t, os.WriteFile(inside, nil, 0o600))
	t.Setenv("PMIX_PREFIX", dir)
	t.Setenv("OPAL_PREFIX", dir)
	all = candidates()
	assert.Equal(t, candidate{inside, "PMIX_PREFIX"}, all[0])
	assert.NotContains(t, all, candidate{inside, "OPAL_PREFIX"})

	t.Setenv(Library.Name, "/my/libpmix.so")
	assert.Equal(t, []candidate{{"/my/libpmix.so", "GORMAPY_PMIX_LIBRARY"}}, candidates())
}

// FuzzMapped: what is found is named in the list.
func FuzzMapped(f *testing.F) {
	f.Add("7f00-7f01 r-xp 00000000 08:01 34 /opt/my ompi/lib/libpmix.so.2.13.1\n")
	f.Fuzz(func(t *testing.T, maps string) {
		for _, path := range mapped(strings.NewReader(maps)) {
			assert.Contains(t, maps, path)
			assert.Contains(t, path, "/libpmix.so.")
		}
	})
}
