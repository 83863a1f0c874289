//go:build !amd64 && !arm64

package op

const (
	hasVectors  = false
	vectorBlock = 1
)

var assembled []assembly
