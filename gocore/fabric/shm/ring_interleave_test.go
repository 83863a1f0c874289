//go:build interleave

package shm

import (
	"fmt"
	"testing"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/sys/atom"
	"gormapy/gocore/sys/atom/explore"
)

// payload returns the payload of message k: every byte depends on k, and none is
// 0, the value of a commit word where no message has arrived.
func payload(k, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(k<<4|i&15) | 0x80
	}
	return b
}

func intact(k int, h *fabric.Header, got []byte, n int) bool {
	if h.Tag != int32(k) || h.Len != uint64(n) || len(got) != n {
		return false
	}
	for i, c := range got {
		if c != byte(k<<4|i&15)|0x80 {
			return false
		}
	}
	return true
}

// ringWorld sends messages with payloads of these sizes through a ring of lines
// lines.
func ringWorld(lines int, sizes []int, mortal bool) func(w *explore.World) {
	return func(w *explore.World) {
		words := make([]uint64, (ringHeader+lines*line)/8)
		mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
		w.Memory("head", unsafe.Pointer(&words[0]), 8)
		w.Memory("ring", unsafe.Pointer(&mem[ringHeader]), uintptr(lines*line))
		for i := range lines {
			w.Name(unsafe.Pointer(&mem[ringHeader+i*line]), fmt.Sprintf("commit[%d]", i))
		}
		m := &struct{ got uint32 }{}
		explore.Watch(w, "model", m)
		sender := w.Thread("sender", func(t *explore.Thread) {
			r := newRing(mem)
			for k, n := range sizes {
				h := fabric.Header{Kind: fabric.KindEager, Tag: int32(k), Len: uint64(n)}
				for !r.send(&h, payload(k, n)) {
					t.Forget(uint64(k), r.pos, r.seen)
					atom.Yield()
				}
				t.Forget(uint64(k)+1, r.pos, r.seen)
			}
		})
		if mortal {
			sender.Mortal()
		}
		w.Thread("receiver", func(t *explore.Thread) {
			r := newRing(mem)
			for k := 0; k < len(sizes); {
				t.Forget(uint64(k), r.pos)
				last := sender.Dead()
				known := uint64(0)
				if last {
					known = 1
				}
				t.Note(known)
				ok := r.receive(func(h *fabric.Header, got []byte) {
					t.Check(intact(k, h, got, sizes[k]), "message %d came as %d bytes %x with tag %d", k, len(got), got, h.Tag)
					t.Forget(uint64(k), r.pos, known, 1)
					t.Pause()
					t.Check(intact(k, h, got, sizes[k]), "message %d was overwritten while it was read: %x", k, got)
				})
				if ok {
					k++
					m.got++
				} else if last {
					return // a message that a dead sender had not committed was never there
				} else {
					atom.Yield()
				}
			}
		})
		w.Finally(func() error {
			if int(m.got) != len(sizes) && !sender.Dead() {
				return fmt.Errorf("%d of %d messages came", m.got, len(sizes))
			}
			return nil
		})
	}
}

func TestEveryInterleavingOfRing(t *testing.T) {
	for _, c := range []struct {
		lines int
		sizes []int
	}{
		// A record takes less than half the ring, or it would never fit where a
		// skip record precedes it and a commit word follows; maxPayload keeps it to
		// a quarter.
		{2, []int{0, 8, 1, 4}},
		{3, []int{8, 0, 8, 8, 3}},
		{5, []int{72, 72, 8, 72, 72}}, // skip records of one line
		{5, []int{72, 8, 72, 72, 8, 8, 72}},
		{7, []int{8, 136, 136, 8, 72, 136, 8}}, // and of two
		{9, []int{8, 8, 136, 72, 200, 8, 136, 200}},
		{9, []int{8, 8, 8, 8, 8, 8, 8, 8, 200, 8, 8}}, // room for the record, not for the skip record too
	} {
		for _, mortal := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d lines mortal %v", c.lines, mortal), func(t *testing.T) {
				opt := explore.Options{Plain: true, Weak: true}
				if mortal {
					opt.Deaths = 1
				}
				explore.Run(t, opt, ringWorld(c.lines, c.sizes, mortal))
			})
		}
	}
}
