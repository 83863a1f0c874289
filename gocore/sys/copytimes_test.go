package sys

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCopyTimes(t *testing.T) {
	kernel, processor, err := CopyTimes(1 << 20)
	require.NoError(t, err)
	require.Positive(t, kernel)
	require.Positive(t, processor)
	_, _, err = CopyTimes(-4096)
	require.Error(t, err)
}
