package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKeys(t *testing.T) {
	for _, good := range []string{"a", "Address-7", strings.Repeat("k", 32)} {
		assert.NoError(t, CheckKey(good))
	}
	for _, bad := range []string{"", strings.Repeat("k", 33), "a.b", "a b", "a_b", "ä", "a\n"} {
		assert.Error(t, CheckKey(bad), "%q", bad)
	}
	var k Keys
	assert.NoError(t, k.Add("a"))
	assert.NoError(t, k.Add("b"))
	assert.ErrorContains(t, k.Add("a"), "before")
	assert.ErrorContains(t, k.Add("a b"), "only letters")
}

func TestRanks(t *testing.T) {
	assert.NoError(t, CheckRank(0, 1))
	assert.NoError(t, CheckRank(3, 4))
	assert.ErrorContains(t, CheckRank(4, 4), "ranks 0 to 3")
	assert.Error(t, CheckRank(-1, 4))
}
