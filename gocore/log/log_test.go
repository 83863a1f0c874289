package log

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The settings are read once in a process, so each case runs in a process of its own.
const caseVariable = "GORMAPY_TEST_LOG"

func TestMain(m *testing.M) {
	if os.Getenv(caseVariable) != "" {
		Debugf("area", "before the rank is known")
		SetRank(3)
		Errorf("area", "error %d", 1)
		Warnf("area", "warn")
		Infof("area", "info")
		Debugf("area", "two\nlines\n")
		if Debugging() {
			Debugf("area", "dear")
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lines runs a process that writes one line of each level, and returns its output.
func lines(t *testing.T, env ...string) []string {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(append(os.Environ(), caseVariable+"=1"), env...)
	var output strings.Builder
	c.Stderr = &output
	require.NoError(t, c.Run())
	return strings.Split(strings.TrimSuffix(output.String(), "\n"), "\n")
}

const stamp = `^gormapy \d\d:\d\d:\d\d\.\d{6} `

func TestLevels(t *testing.T) {
	for level, want := range map[string][]string{
		"error": {"error area: error 1"},
		"":      {"error area: error 1", "warn area: warn"},
		"Info":  {"error area: error 1", "warn area: warn", "info area: info"},
	} {
		t.Run(level, func(t *testing.T) {
			got := lines(t, "GORMAPY_LOG="+level)
			require.Len(t, got, len(want))
			for i := range want {
				assert.Regexp(t, stamp+"rank 3 "+want[i]+"$", got[i])
			}
		})
	}
}

func TestDebugNamesTheRankAndIndentsFurtherLines(t *testing.T) {
	got := lines(t, "GORMAPY_LOG=debug")
	require.Len(t, got, 7)
	assert.Regexp(t, stamp+`pid \d+ debug area: before the rank is known$`, got[0])
	assert.Regexp(t, stamp+`rank 3 debug area: two$`, got[4])
	assert.Equal(t, "  lines", got[5])
	assert.Regexp(t, stamp+`rank 3 debug area: dear$`, got[6])
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	for range 2 { // appended
		assert.Equal(t, []string{""}, lines(t, "GORMAPY_LOG=info", "GORMAPY_LOG_FILE="+file))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, 6, strings.Count(string(text), "\n"), string(text))
}

func TestFileThatCannotBeOpened(t *testing.T) {
	got := lines(t, "GORMAPY_LOG_FILE="+filepath.Join(t.TempDir(), "no", "log"))
	require.Len(t, got, 3)
	assert.Contains(t, got[0], "can't be opened: no such file or directory")
	assert.Contains(t, got[1], "error 1")
}
