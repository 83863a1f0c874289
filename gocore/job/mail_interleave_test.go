//go:build interleave

package job

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"

	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// The sender overwrites its mail, and may die. The receiver must never take a mixture of
// two mails, and must receive the last.
func TestEveryInterleavingOfMail(t *testing.T) {
	for _, deaths := range []int{0, 1} {
		t.Run(fmt.Sprintf("deaths=%d", deaths), func(t *testing.T) {
			explore.Run(t, explore.Options{Deaths: deaths, FreeYield: true, Weak: true}, func(w *explore.World) {
				m := new(mail)
				explore.Watch(w, "mail", m)
				w.Name(unsafe.Pointer(&m.seq), "seq")
				sender := w.Thread("sender", func(*explore.Thread) {
					for k := 1; k <= 3; k++ {
						m.write(bytes.Repeat([]byte{byte(k)}, k))
					}
				})
				if deaths > 0 {
					sender.Mortal()
				}
				w.Thread("receiver", func(t *explore.Thread) {
					for seen := uint32(0); seen < 6; {
						t.Forget(uint64(seen))
						msg, seq, ok := m.read(seen)
						if !ok {
							if sender.Dead() {
								return
							}
							atom.Yield()
							continue
						}
						k := int(seq / 2)
						t.Check(bytes.Equal(msg, bytes.Repeat([]byte{byte(k)}, k)), "%v with number %d", msg, seq)
						if seen = seq; sender.Dead() {
							return
						}
					}
				})
			})
		})
	}
}
