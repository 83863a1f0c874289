package rma

import (
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"gormapy/gocore/engine"
	"gormapy/gocore/fabric"
)

// part is a target's memory, of which some bytes can't be written.
type part struct {
	mem   []byte
	bad   []int
	calls int
	times []int // how often each byte was written
}

func (p *part) writable(at int) bool { return !slices.Contains(p.bad, at) }

// all writes runs until the first byte that can't be written, as the kernel does.
func (p *part) all(b *Bundle) func(runs []fabric.Run) int {
	return func(runs []fabric.Run) int {
		p.calls++
		n := 0
		for _, r := range runs {
			for i := range r.N {
				if !p.writable(int(r.Addr) + i) {
					return n
				}
				p.put(int(r.Addr)+i, b.Data[n])
				n++
			}
		}
		return n
	}
}

func (p *part) put(at int, v byte) {
	p.mem[at] = v
	p.times[at]++
}

var errRefused, errGone = errors.New("refused"), errors.New("gone")

func (p *part) one(data unsafe.Pointer, r fabric.Run) error {
	p.calls++
	for i := range r.N {
		if !p.writable(int(r.Addr) + i) {
			return errRefused
		}
	}
	for i, v := range engine.Bytes(data, r.N) {
		p.put(int(r.Addr)+i, v)
	}
	return nil
}

func TestBundleIsWrittenOnce(t *testing.T) {
	runs := []fabric.Run{{Addr: 0, N: 4}, {Addr: 10, N: 3}, {Addr: 20, N: 1}, {Addr: 30, N: 5}}
	for _, c := range []struct {
		name    string
		bad     []int
		written int // by C, which has found that there is more
		calls   int
		lost    []int // runs
	}{
		{name: "all at once", calls: 1},
		{name: "the first run", bad: []int{0}, calls: 5, lost: []int{0}},
		{name: "a run in the middle", bad: []int{10}, calls: 4, lost: []int{1}},
		{name: "two", bad: []int{10, 30}, calls: 4, lost: []int{1, 3}},
		{name: "the last", bad: []int{30}, calls: 2, lost: []int{3}},
		{name: "C has written a part", written: 4, calls: 3},
		{name: "and part of a run", written: 6, calls: 3},
		{name: "and there it fails", written: 5, bad: []int{11}, calls: 3, lost: []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, p := new(Bundle), &part{mem: make([]byte, 40), bad: c.bad, times: make([]int, 40)}
			for _, r := range runs {
				b.Runs[b.Used] = r
				for range r.N {
					b.Data[b.Bytes] = byte(b.Bytes) + 1
					b.Bytes++
				}
				b.Used++
			}
			b.Written = uint32(c.written)
			n := 0
			for _, r := range runs {
				for i := range r.N {
					if n++; n <= c.written {
						p.put(int(r.Addr)+i, byte(n))
					}
				}
			}
			err := b.write(p.all(b), p.one, func(err error) bool { return err == errGone })
			assert.Equal(t, c.calls, p.calls)
			if c.lost == nil {
				assert.NoError(t, err)
			} else {
				assert.Equal(t, errRefused, err)
			}
			n = 0
			for i, r := range runs {
				for k := range r.N {
					n++
					if !slices.Contains(c.lost, i) {
						assert.Equal(t, byte(n), p.mem[int(r.Addr)+k], "run %d", i)
						assert.Equal(t, 1, p.times[int(r.Addr)+k], "run %d", i)
					}
				}
			}
		})
	}
}

func TestBundleOfTargetThatHasEnded(t *testing.T) {
	b, calls := &Bundle{Used: 3, Bytes: 3}, 0
	for i := range b.Used {
		b.Runs[i] = fabric.Run{Addr: uint64(i), N: 1}
	}
	err := b.write(func([]fabric.Run) int { return 0 }, func(unsafe.Pointer, fabric.Run) error {
		calls++
		return errGone
	}, func(err error) bool { return err == errGone })
	assert.Equal(t, errGone, err)
	assert.Equal(t, 1, calls)
}
