package launch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		ws     unix.WaitStatus
		status int
		text   string
	}{
		{0, 0, "ended with exit status 0"},
		{3 << 8, 3, "ended with exit status 3"},
		{255 << 8, 255, "ended with exit status 255"},
		{unix.WaitStatus(unix.SIGSEGV), 139, "was killed by signal 11 (SIGSEGV)"},
		{unix.WaitStatus(unix.SIGSEGV) | 0x80, 139, "was killed by signal 11 (SIGSEGV)"}, // with a core dump
		{unix.WaitStatus(unix.SIGKILL), 137, "was killed by signal 9 (SIGKILL)"},
		{61, 189, "was killed by signal 61"},
	} {
		assert.Equal(t, c.status, exitStatus(c.ws), c.text)
		assert.Equal(t, c.text, endText(c.ws))
		r := rank{status: c.ws}
		assert.Equal(t, c.status != 0, r.failed(), c.text)
	}
}

func TestTexts(t *testing.T) {
	assert.Equal(t, "", stoppingText(0, 1))
	assert.Equal(t, "; stopping the other rank", stoppingText(1, 2))
	assert.Equal(t, "; stopping the other 3 ranks", stoppingText(3, 4))
	assert.Equal(t, "; stopping 4 ranks", stoppingText(4, 4))
	assert.Equal(t, "rank 2", rankList([]int{2}))
	assert.Equal(t, "ranks 0, 2", rankList([]int{0, 2}))
	assert.Equal(t, "ranks 0, 1, 2, 3, 4, 5, 6, 7, … (9 in all)", rankList([]int{0, 1, 2, 3, 4, 5, 6, 7, 8}))
}

func TestAbortStatus(t *testing.T) {
	for code, want := range map[int]int{0: 0, 5: 5, 255: 255, 256: 1, -1: 255, 261: 5, -256: 1} {
		assert.Equal(t, want, abortStatus(code), code)
	}
}
