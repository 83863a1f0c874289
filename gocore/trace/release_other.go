//go:build !amd64 && !arm64

package trace

import "sync/atomic"

func storeRelease(word *uint32, value uint32) { atomic.StoreUint32(word, value) }
