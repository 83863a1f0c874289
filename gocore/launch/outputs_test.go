package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// written reads the files of a directory by their names.
func written(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		out[e.Name()] = string(text)
	}
	return out
}

func TestOutputDir(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "not", "there")
	const script = "echo out $GORMAPY_JOB_RANK; echo err $GORMAPY_JOB_RANK >&2; printf 'no end'"
	for _, c := range []struct {
		opts []string
		want map[string]string
	}{
		{nil, map[string]string{"rank.0.out": "out 0\nno end", "rank.0.err": "err 0\n", "rank.1.out": "out 1\nno end", "rank.1.err": "err 1\n"}},
		{[]string{"-l"}, map[string]string{"rank.0.out": "[0] out 0\n[0] no end\n", "rank.0.err": "[0] err 0\n",
			"rank.1.out": "[1] out 1\n[1] no end\n", "rank.1.err": "[1] err 1\n"}},
		{[]string{"--merge-stderr-to-stdout"}, map[string]string{"rank.0.out": "out 0\nerr 0\nno end", "rank.1.out": "out 1\nerr 1\nno end"}},
		{[]string{"--merge-stderr-to-stdout", "-l"}, map[string]string{"rank.0.out": "[0] out 0\n[0] err 0\n[0] no end\n",
			"rank.1.out": "[1] out 1\n[1] err 1\n[1] no end\n"}},
	} {
		r := run(t, sh(2, script, append(c.opts, "--output-dir", dir)...)...)
		assert.Equal(t, 0, r.status, r.err)
		assert.Empty(t, r.out+r.err, c.opts)
		assert.Equal(t, c.want, written(t, dir), c.opts)
		require.NoError(t, os.RemoveAll(top+"/not"))
	}
}

func TestOutputDirIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/notes", []byte("mine"), 0o644))
	require.Equal(t, 0, run(t, sh(3, "yes | head -n 1000", "--output-dir", dir)...).status)
	require.Equal(t, 0, run(t, sh(1, "echo short", "--output-dir", dir)...).status)
	got := written(t, dir)
	assert.Equal(t, "short\n", got["rank.0.out"])
	assert.Equal(t, "mine", got["notes"])
	assert.Len(t, got, 7)
}

func TestOutputDirOfAFailure(t *testing.T) {
	dir := t.TempDir()
	r := run(t, sh(2, "if [ $GORMAPY_JOB_RANK = 1 ]; then echo trace >&2; exit 3; fi; sleep 100", "--output-dir", dir)...)
	assert.Equal(t, 3, r.status)
	assert.Regexp(t, `^mpiexec: rank 1 \(pid \d+\) ended with exit status 3; stopping the other rank; see `+dir+`/rank.1.err\n$`, r.err)
	assert.Equal(t, "trace\n", written(t, dir)["rank.1.err"])
}

// TestOutputDirRefuses checks that files that can't be written are reported before any
// rank is started and before files of an earlier job are emptied.
func TestOutputDirRefuses(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/file", nil, 0o644))
	require.NoError(t, os.Mkdir(dir+"/full", 0o755))
	require.NoError(t, os.WriteFile(dir+"/full/rank.0.out", []byte("earlier"), 0o644))
	require.NoError(t, os.Mkdir(dir+"/full/rank.1.out", 0o755))
	require.NoError(t, os.Mkdir(dir+"/fifo", 0o755))
	require.NoError(t, unix.Mkfifo(dir+"/fifo/rank.0.err", 0o644))
	for where, text := range map[string]string{
		"/file":     "can't make the directory " + dir + "/file: not a directory",
		"/file/sub": "can't make the directory " + dir + "/file/sub: not a directory",
		"/full":     "can't open " + dir + "/full/rank.1.out: is a directory",
		"/fifo":     "can't open " + dir + "/fifo/rank.0.err: no such device or address",
	} {
		r := run(t, sh(2, "echo started > "+dir+"/started", "--output-dir", dir+where)...)
		assert.Equal(t, 1, r.status, where)
		assert.Equal(t, "mpiexec: --output-dir: "+text+"\n", r.err)
	}
	assert.NoFileExists(t, dir+"/started")
	text, err := os.ReadFile(dir + "/full/rank.0.out")
	require.NoError(t, err)
	assert.Equal(t, "earlier", string(text))
}

func TestOutputDirOnAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/dev/full", dir+"/rank.1.out"))
	r := run(t, sh(2, "echo y; sleep 100", "--output-dir", dir, "-l")...)
	assert.Equal(t, 1, r.status)
	assert.True(t, strings.HasPrefix(r.err, "mpiexec: can't write "+dir+"/rank.1.out: no space left on device; stopping"), r.err)
}
