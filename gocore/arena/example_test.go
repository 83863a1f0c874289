package arena_test

import (
	"fmt"
	"unsafe"

	"gormapy/gocore/arena"
)

// Peers are told the offset of memory in the arena. Memory from elsewhere has none.
func ExampleFind() {
	mem, err := arena.Alloc(4096, 0)
	if err != nil {
		panic(err)
	}
	defer arena.Free(mem)
	start, _ := arena.Find(unsafe.Pointer(&mem[0]), 4096)
	off, shared := arena.Find(unsafe.Pointer(&mem[100]), 50)
	fmt.Println(off-start, shared)
	_, shared = arena.Find(unsafe.Pointer(new(int64)), 8)
	fmt.Println(shared)
	// Output:
	// 100 true
	// false
}
