//go:build !interleave

package atom

// Publish32 is Store32 for a word that others poll, on the cache line of data that the caller has just written. Store32 is
// an exchange, which waits until the data has reached the cache: meanwhile those who poll take the line away, so that it
// moves between the cores three times instead of once. This is a plain store, which x86-64 makes after those before it,
// and a barrier.
//
//go:noescape
func Publish32(p *uint32, v uint32)

// Publish64 is Store64, likewise.
//
//go:noescape
func Publish64(p *uint64, v uint64)
