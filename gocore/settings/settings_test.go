package settings

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTableIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		assert.Regexp(t, `^GORMAPY_[A-Z0-9_]+$`, s.Name)
		for _, mark := range Marks {
			assert.NotContains(t, s.Name, mark)
		}
		assert.False(t, seen[s.Name], "%s is listed twice", s.Name)
		seen[s.Name] = true
		assert.NotEmpty(t, s.Meaning, s.Name)
		assert.NotEmpty(t, s.Reader, s.Name)
		if s.Choices != nil {
			assert.Contains(t, s.Choices, s.Default, s.Name)
		}
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		setting *Setting
		given   string
		value   string
		problem string // a part of the text
	}{
		{OneCopy, "", "1", ""},
		{OneCopy, "0", "0", ""},
		{OneCopy, " 0 ", "0", ""},
		{OneCopy, "no", "1", `GORMAPY_ONE_COPY is "no", which it can't be: choose from 1, 0 (1 is taken)`},
		{Log, "", "warn", ""},
		{Log, "DEBUG", "debug", ""},
		{Log, "verbose", "warn", "error, warn, info, debug"},
		{Log, "a\nb", "warn", `"a\nb"`}, // in one line
		{LogFile, "a b", "a b", ""},
		{SharedArraysFrom, "4096", "4096", ""},
		{SharedArraysFrom, "64K", "32768", `GORMAPY_SHARED_ARRAYS_FROM is "64K", which it can't be: it is a number of bytes (32768 is taken)`},
		{SharedArraysKept, "-1", "134217728", "it is a number of bytes"},
	} {
		t.Run(c.setting.Name+"="+c.given, func(t *testing.T) {
			t.Setenv(c.setting.Name, c.given)
			assert.Equal(t, c.value, c.setting.Value())
			assert.Equal(t, c.given != "", c.setting.Given())
			if c.problem == "" {
				assert.Empty(t, c.setting.Problem())
				assert.Empty(t, Problems())
			} else {
				assert.Contains(t, c.setting.Problem(), c.problem)
				assert.Equal(t, []string{c.setting.Problem()}, Problems())
			}
		})
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	s := &Setting{Name: "GORMAPY_TEST_SECRET", Default: "none", Secret: true}
	assert.Equal(t, "none", s.Shown())
	t.Setenv(s.Name, "mellon")
	assert.Equal(t, "mellon", s.Value())
	assert.NotContains(t, s.Shown(), "mellon")
	t.Setenv(Log.Name, "debug")
	assert.Equal(t, "debug", Log.Shown())
}

func TestRanksIgnoreBuildSettings(t *testing.T) {
	t.Setenv(BuildToolchain.Name, "nonsense")
	assert.NotEmpty(t, BuildToolchain.Problem())
	assert.Empty(t, Problems())
}
