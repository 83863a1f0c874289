package op

import "unsafe"

// hasStream reports whether there are streamBlocks and streamFence.
var hasStream = hasVectors

// streamLine is the size of a line of the cache. A line that is written past the caches should
// be written whole.
const streamLine = 64

// stream copies n bytes past the caches, but for those in lines of the cache that it does not
// write whole. streamFence must follow.
func stream(to, from unsafe.Pointer, n int) {
	head := min(int(-uintptr(to)%streamLine), n)
	whole := (n - head) &^ (streamLine - 1)
	replace(to, from, head)
	if head == n {
		return
	}
	for at := head; at < head+whole; at += pieceSize {
		streamBlocks(unsafe.Add(to, at), unsafe.Add(from, at), min(head+whole-at, pieceSize))
	}
	if done := head + whole; done < n {
		replace(unsafe.Add(to, done), unsafe.Add(from, done), n-done)
	}
}
