package op

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/op/kernelgen"
)

// update has TestGeneratedKernels write what it would compare.
var update = flag.Bool("update", false, "write the kernels in assembly")

func TestGeneratedKernels(t *testing.T) {
	for _, a := range kernelgen.Architectures {
		for file, want := range map[string]string{
			"kernels_" + a.Name + ".s":  a.Assembly(),
			"kernels_" + a.Name + ".go": a.Declarations(),
		} {
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
				continue
			}
			got, err := os.ReadFile(file)
			require.NoError(t, err)
			// Not Equal, which would print the whole file.
			assert.True(t, want == string(got), "%s is not what kernelgen writes: go test ./gocore/op -run Generated -update", file)
		}
	}
}
