package launch

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEnviron(t *testing.T) {
	own := []string{"HOME=/root", "PMI_RANK=3", "PMI_FD=4", "PMIX_NAMESPACE=x", "HYDI_CONTROL_FD=9", "GORMAPY_JOB_RANK=1",
		"GORMAPY_JOB_ID=old", "GORMAPY_EAGER=1", "PMIRROR=yes", "odd", "A=1"}
	got := environ(own, []string{"A=2", "B=x=y", "A=3", "PMI_RANK=7"})
	assert.Equal(t, []string{"HOME=/root", "GORMAPY_EAGER=1", "PMIRROR=yes", "odd", "A=3", "B=x=y", "PMI_RANK=7"}, got)
	assert.Equal(t, "/bin:/usr/bin", searchPath(got))
	assert.Equal(t, "/x:/y", searchPath([]string{"HOME=/", "PATH=/x:/y"}))
}
