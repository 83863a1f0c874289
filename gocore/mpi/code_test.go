package mpi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
)

func TestCodeHasTheClassAndTheTextOfAnError(t *testing.T) {
	for _, e := range []*errs.Error{
		errs.New(errs.Rank, "there is no rank %d", 7),
		errs.New(errs.Errhandler, "the class with the largest number"),
		errs.New(errs.Truncate, ""),
	} {
		t.Run(e.Class.String(), func(t *testing.T) {
			code := CodeOf(e)
			assert.Positive(t, code)
			assert.Equal(t, e.Class, errs.Class(code&0xff))
			assert.Equal(t, e.Error(), ErrorText(code))
			assert.Equal(t, e, toError(code))
		})
	}
	assert.Zero(t, CodeOf(nil))
	assert.NoError(t, toError(0))
}

func TestCodeOfAnyError(t *testing.T) {
	assert.Zero(t, codeOfErr(nil))
	fails(t, errs.Win, "no window", codeOfErr(errs.New(errs.Win, "no window")))
	fails(t, errs.Other, "disk on fire", codeOfErr(errors.New("disk on fire")))
}

func TestBareClassHasTheTextOfTheStandard(t *testing.T) {
	assert.Equal(t, errs.Success.Text(), ErrorText(0))
	assert.Equal(t, errs.RMASync.Text(), ErrorText(int(errs.RMASync)))
	assert.Equal(t, errs.RMASync.Text(), ErrorText(int(errs.RMASync)|1<<30), "a slot that does not exist")
	assert.Contains(t, ErrorText(200), "unknown error class")
}

func TestErrorThatPythonDetectsHasACode(t *testing.T) {
	fails(t, errs.Dims, "dims has 2 items", NewError(int(errs.Dims), "dims has 2 items"))
	assert.Equal(t, "MPI_ERR_ARG: 100%", ErrorText(NewError(int(errs.Arg), "100%")), "the text is no format")
}

func TestTextsOfTheLatestErrorsAreKept(t *testing.T) {
	first := NewError(int(errs.Arg), "first")
	slots := len(texts.ring) - 1 // slot 0 means that there is no text
	codes := make([]Code, slots)
	for i := range codes {
		codes[i] = NewError(int(errs.Arg), fmt.Sprint("number ", i))
	}
	for i, code := range codes {
		require.NotZero(t, code>>8)
		require.Equal(t, fmt.Sprint("MPI_ERR_ARG: number ", i), ErrorText(code))
	}
	assert.Equal(t, ErrorText(codes[slots-1]), ErrorText(first), "the oldest text made room")
}

func TestPanicBecomesAnErrorCode(t *testing.T) {
	code := func() (code Code) {
		defer Contain(&code)
		panic("a mistake")
	}()
	fails(t, errs.Intern, "internal error: a mistake", code)
	assert.Contains(t, ErrorText(code), "TestPanicBecomesAnErrorCode", "the text has the stack")

	negated := func() (n int64) {
		defer containNegated(&n)
		panic("another one")
	}()
	require.Negative(t, negated)
	fails(t, errs.Intern, "another one", int(-negated))

	fine := func() (code Code) {
		defer Contain(&code)
		return 5
	}()
	assert.Equal(t, 5, fine)
}

func TestNilDereferenceIsAnInternalError(t *testing.T) {
	code := func() (code Code) {
		defer Contain(&code)
		var c *Comm
		return c.rank
	}()
	fails(t, errs.Intern, "nil pointer dereference", code)
}

func TestFaultNamesItsAddress(t *testing.T) {
	fails(t, errs.Buffer, "0xdead0000", Faulted(0xdead0000))
}

func TestClassErrorFormatsOnce(t *testing.T) {
	text := ErrorText(classError(errs.Arg, "%s", "50%d"))
	assert.True(t, strings.HasSuffix(text, ": 50%d"), text)
}
