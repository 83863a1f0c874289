//go:build interleave

package job

// Posts is for the test; see posts.go.
const Posts = 2
