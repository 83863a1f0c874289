package kernelgen

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// update has TestGenerated write what it would compare.
var update = flag.Bool("update", false, "write the kernels in assembly")

func TestGenerated(t *testing.T) {
	for _, a := range Architectures {
		for name, want := range map[string]string{
			"kernels_" + a.Name + ".s":  a.Assembly(),
			"kernels_" + a.Name + ".go": a.Declarations(),
		} {
			file := filepath.Join("..", name)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
				continue
			}
			got, err := os.ReadFile(file)
			require.NoError(t, err)
			// Not Equal, which would print the whole file.
			assert.True(t, want == string(got), "%s is not what is written now: go test ./gocore/op/kernelgen -update", name)
		}
	}
}
