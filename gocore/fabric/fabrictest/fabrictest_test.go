package fabrictest_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
	"gormapy/gocore/fabric/fabrictest"
	"gormapy/gocore/fabric/shm"
	"gormapy/gocore/job"
)

// The shared-memory transport fulfils the contract.
func TestSharedMemory(t *testing.T) {
	var seg *job.Segment
	t.Cleanup(func() { seg.Close() })
	fabrictest.Run(t, func(dir fabric.Directory) (fabric.Transport, error) {
		if dir.Rank() == 0 {
			if seg != nil {
				seg.Close()
			}
			var err error
			seg, err = job.Create(dir.Size())
			require.NoError(t, err)
			for r := range seg.Ranks {
				seg.Ranks[r].Claim = uint32(os.Getpid())
			}
		}
		return shm.New(seg, dir.Rank(), true), nil
	})
}
