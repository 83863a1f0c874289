package sys

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestMoveOff(t *testing.T) {
	runtime.LockOSThread() // and not unlocked: the thread ends with the test
	allowed := Allowed()
	if len(allowed) < 2 {
		t.Skip("one processor")
	}
	assert.True(t, MoveOff([]int{CPU()}, allowed))
	assert.Equal(t, allowed, Allowed(), "the thread is not bound")
	assert.False(t, MoveOff(allowed, allowed), "there is no other processor")
	assert.Equal(t, allowed, Allowed())
}

func TestAThreadThatTheProgramHasBoundIsNotMoved(t *testing.T) {
	runtime.LockOSThread()
	allowed := Allowed()
	if len(allowed) < 2 {
		t.Skip("one processor")
	}
	for _, cpu := range allowed[:2] {
		var one unix.CPUSet
		one.Set(cpu)
		require.NoError(t, unix.SchedSetaffinity(0, &one))
		assert.False(t, MoveOff([]int{cpu}, allowed))
		assert.Equal(t, []int{cpu}, Allowed())
		assert.Equal(t, cpu, CPU())
	}
}
