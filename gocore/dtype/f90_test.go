package dtype

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestF90Types(t *testing.T) {
	for r, size := range map[int]int{-5: 1, 0: 1, 2: 1, 3: 2, 4: 2, 5: 4, 9: 4, 10: 8, 18: 8} {
		typ, err := F90Integer(r)
		require.NoError(t, err)
		assert.Equal(t, []int{size, size}, []int{typ.Size(), typ.ExternalSize()}, "r is %d", r)
		combiner, ints, _, types := typ.Envelope()
		assert.Equal(t, "F90_INTEGER", combiner)
		assert.Equal(t, []int{r}, ints)
		assert.Empty(t, types)
		assert.True(t, typ.IsPredefined())
	}
	for _, c := range []struct{ p, r, size int }{
		{6, 37, 4}, {0, 0, 4}, {3, 4, 4}, {Undefined, 37, 4}, {6, Undefined, 4},
		{7, 37, 8}, {6, 38, 8}, {15, 307, 8}, {Undefined, 307, 8}, {16, 307, 16}, {15, 308, 16}, {18, 4931, 16},
	} {
		re, err := F90Real(c.p, c.r)
		require.NoError(t, err)
		im, err := F90Complex(c.p, c.r)
		require.NoError(t, err)
		assert.Equal(t, []int{c.size, c.size, 2 * c.size, 2 * c.size}, []int{re.Size(), re.ExternalSize(), im.Size(), im.ExternalSize()}, "%v", c)
		combiner, ints, _, _ := im.Envelope()
		assert.Equal(t, "F90_COMPLEX", combiner)
		assert.Equal(t, []int{c.p, c.r}, ints)
	}
}

func TestF90TypesThatDoNotExist(t *testing.T) {
	_, err := F90Integer(19)
	require.ErrorIs(t, err, ErrArg)
	require.ErrorContains(t, err, "18 decimal digits")
	for _, c := range [][2]int{{34, 37}, {6, 4932}, {Undefined, Undefined}} {
		_, err := F90Real(c[0], c[1])
		require.ErrorIs(t, err, ErrArg)
		_, err = F90Complex(c[0], c[1])
		require.ErrorIs(t, err, ErrArg)
	}
	if x87 {
		_, err := F90Real(19, 37)
		require.ErrorContains(t, err, "a precision of 18 decimal digits")
	}
}
