package mpi

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
)

// The tests of this package run in one process without a launcher, which is a job of one
// rank. What needs several ranks is tested from Python.
func TestMain(m *testing.M) {
	// Neither settings nor a launcher of the tests may have an effect.
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		for _, prefix := range []string{"GORMAPY_", "PMI_", "PMIX_", "SLURM_"} {
			if strings.HasPrefix(name, prefix) {
				os.Unsetenv(name)
			}
		}
	}
	if os.Getenv(lifeVariable) != "" {
		os.Exit(live())
	}
	if code := Init(); code != 0 {
		fmt.Fprintln(os.Stderr, ErrorText(code))
		os.Exit(1)
	}
	status := m.Run()
	if code := Finalize(true); code != 0 && status == 0 {
		fmt.Fprintln(os.Stderr, ErrorText(code))
		status = 1
	}
	os.Exit(status)
}

// noHandle has an index that no table reaches.
const noHandle = 1<<30 | 1<<32

// typeOf returns the handle of a predefined datatype.
func typeOf(name string) int64 { return int64(dtype.ByName(name).ID()) }

// memory returns values and their address, which stays the same until the test ends.
func memory[T any](t testing.TB, values ...T) ([]T, int64) {
	t.Helper()
	var pin runtime.Pinner
	pin.Pin(&values[0])
	t.Cleanup(pin.Unpin)
	return values, int64(uintptr(unsafe.Pointer(&values[0])))
}

// succeeds fails the test if code is that of an error.
func succeeds(t testing.TB, code Code) {
	t.Helper()
	if code != 0 {
		require.FailNow(t, "an MPI call failed", ErrorText(code))
	}
}

// fails fails the test unless code is that of an error of a class whose text has text.
func fails(t testing.TB, class errs.Class, text string, code Code) {
	t.Helper()
	require.NotEqual(t, Interrupted, code)
	assert.Equal(t, class, errs.Class(code&0xff))
	assert.Contains(t, ErrorText(code), text)
}

// made returns a handle that a call returned in place of a negative code.
func made(t testing.TB, h int64) int64 {
	t.Helper()
	if h < 0 {
		require.FailNow(t, "an MPI call failed", ErrorText(int(-h)))
	}
	return h
}

// done waits for the request of a call that has started an operation.
func done(t testing.TB, req int64, code Code) Status {
	t.Helper()
	succeeds(t, code)
	var st Status
	succeeds(t, waited(Interrupted, req, &st))
	return st
}

// result waits for the request of a call that makes an object, and returns its handle.
func result(t testing.TB, req int64, code Code) int64 {
	t.Helper()
	succeeds(t, code)
	var h int64
	for code = Interrupted; code == Interrupted; {
		code = Result(req, &h)
	}
	succeeds(t, code)
	return h
}

// blocking returns the code of a call that waits, of which an interruption has left a
// request in *pending.
func blocking(call func(pending *int64) Code) Code {
	var pending int64
	return waited(call(&pending), pending, nil)
}

// eventually makes progress until a condition holds.
func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !condition(); Progress() {
		require.True(t, time.Now().Before(end), "the condition never holds")
	}
}
