//go:build interleave

package agreement

import "testing"

func TestInterleavingOfFour(t *testing.T) {
	t.Logf("%d states", explore(t, newWorld(4, 1, 2)))
}
