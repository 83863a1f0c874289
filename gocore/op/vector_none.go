//go:build !amd64 && !arm64

package op

import "unsafe"

const (
	hasVectors     = false
	hasWideVectors = false
	vectorBlock    = 1
)

var assembled []assembly

// What only other kernels need.

func widenBFloat16(_, _ unsafe.Pointer, _ int) {}

func narrowBFloat16(_, _ unsafe.Pointer, _ int) {}
