//go:build !amd64

package op

import "unsafe"

const (
	hasStream  = false
	streamLine = 1
)

func stream(to, from unsafe.Pointer, n int) { replace(to, from, n) }

func streamFence() {}
