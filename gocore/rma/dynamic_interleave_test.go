//go:build interleave

package rma

import (
	"fmt"
	"testing"
	"unsafe"

	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// TestEveryInterleavingOfAttach has an owner attach and detach, and perhaps end. Readers
// must never read a mixture of two tables, and must see the last one.
func TestEveryInterleavingOfAttach(t *testing.T) {
	for _, deaths := range []int{0, 1} {
		t.Run(fmt.Sprintf("deaths=%d", deaths), func(t *testing.T) {
			explore.Run(t, explore.Options{Deaths: deaths, FreeYield: true, Plain: true, Weak: true}, func(w *explore.World) {
				var mem struct {
					attachWords
					entries [3]attachment
				}
				table := newAttachTable(unsafe.Slice((*byte)(unsafe.Pointer(&mem)), unsafe.Sizeof(mem)))
				explore.Watch(w, "table", &mem)
				w.Name(unsafe.Pointer(&table.version), "version")
				w.Name(unsafe.Pointer(&table.count), "count")
				owner := w.Thread("owner", func(t *explore.Thread) {
					// In version 2k there are k entries with k in each.
					for k := uint64(1); k <= 3; k++ {
						table.change(func([]attachment) []attachment {
							var list []attachment
							for range k {
								list = append(list, attachment{k, k, k})
							}
							return list
						})
					}
				})
				if deaths > 0 {
					owner.Mortal()
				}
				for range 2 {
					w.Thread("reader", func(t *explore.Thread) {
						for last := uint32(0); last < 6; {
							t.Forget(uint64(last))
							a := table.read()
							if a == nil {
								if owner.Dead() {
									return
								}
								atom.Yield()
								continue
							}
							t.Check(a.version >= last, "version %d after %d", a.version, last)
							t.Check(len(a.list) == int(a.version)/2, "%d entries in version %d", len(a.list), a.version)
							for _, x := range a.list {
								k := uint64(a.version) / 2
								t.Check(x == attachment{k, k, k}, "%v in version %d", x, a.version)
							}
							if last = a.version; owner.Dead() {
								return
							}
						}
					})
				}
			})
		})
	}
}
