//go:build amd64 || arm64

package trace

// storeRelease stores a value after all that the caller has stored before. An atomic store of Go
// would also wait until that has reached the cache, which takes as long as the rest of a record. It is
// in release_amd64.s and release_arm64.s.
//
//go:noescape
func storeRelease(word *uint32, value uint32)
