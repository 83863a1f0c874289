//go:build !interleave && !amd64

package atom

// Publish32 is Store32 for a word that others poll, on the cache line of data that the caller has just written.
func Publish32(p *uint32, v uint32) { Store32(p, v) }

// Publish64 is Store64, likewise.
func Publish64(p *uint64, v uint64) { Store64(p, v) }
