//go:build interleave

package explore

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/sys/atom"
)

type memory struct {
	a, b, c, in uint32
}

func TestFindsEveryOutcome(t *testing.T) {
	seen := map[uint32]bool{}
	Run(t, Options{}, func(w *World) {
		m := &memory{}
		Watch(w, "m", m)
		for range 3 {
			w.Thread("adder", func(*Thread) { atom.Store32(&m.a, atom.Load32(&m.a)+1) })
		}
		w.Finally(func() error {
			seen[m.a] = true
			return nil
		})
	})
	require.Equal(t, map[uint32]bool{1: true, 2: true, 3: true}, seen)
}

// Two stores and two loads: of the four results only 0, 0 is impossible.
func TestIsSequentiallyConsistent(t *testing.T) {
	seen := map[uint32]bool{}
	Run(t, Options{}, func(w *World) {
		m := &memory{}
		Watch(w, "m", m)
		w.Thread("x", func(*Thread) { atom.Store32(&m.a, 1); atom.Add32(&m.c, atom.Load32(&m.b)) })
		w.Thread("y", func(*Thread) { atom.Store32(&m.b, 1); atom.Add32(&m.c, 2*atom.Load32(&m.a)) })
		w.Finally(func() error {
			seen[m.c] = true
			return nil
		})
	})
	require.Equal(t, map[uint32]bool{1: true, 2: true, 3: true}, seen)
}

// peterson returns a world with Peterson's lock, correct or with its two stores swapped.
func peterson(swapped bool) func(w *World) {
	return func(w *World) {
		m := &struct {
			want [2]uint32
			turn uint32
			in   uint32
		}{}
		Watch(w, "m", m)
		for i := range 2 {
			w.Thread([]string{"p", "q"}[i], func(t *Thread) {
				for range 2 {
					if swapped {
						atom.Store32(&m.turn, uint32(1-i))
						atom.Store32(&m.want[i], 1)
					} else {
						atom.Store32(&m.want[i], 1)
						atom.Store32(&m.turn, uint32(1-i))
					}
					for atom.Load32(&m.want[1-i]) == 1 && atom.Load32(&m.turn) == uint32(1-i) {
						atom.Yield()
					}
					m.in++
					t.Check(m.in == 1, "both are in")
					t.Pause()
					m.in--
					atom.Store32(&m.want[i], 0)
				}
			})
		}
	}
}

func TestMutualExclusion(t *testing.T) {
	Run(t, Options{}, peterson(false))
	res := Explore(Options{}, peterson(true))
	require.Contains(t, res.Failure, "both are in")
	require.Contains(t, res.Failure, "schedule")
}

// sleeper returns a world with a thread that waits for a, and one that sets a and looks
// for sleepers afterwards, or, if wrong, before.
func sleeper(wrong bool) func(w *World) {
	return func(w *World) {
		m := &memory{}
		Watch(w, "m", m)
		w.Thread("sleeper", func(t *Thread) {
			for atom.Load32(&m.a) == 0 {
				atom.Add32(&m.c, 1)
				bell := atom.Load32(&m.b)
				if atom.Load32(&m.a) == 0 {
					atom.Wait(&m.b, bell, 0)
				}
				atom.Add32(&m.c, ^uint32(0))
			}
		})
		w.Thread("waker", func(t *Thread) {
			if wrong {
				n := atom.Load32(&m.c)
				atom.Store32(&m.a, 1)
				if n == 0 {
					return
				}
			} else {
				atom.Store32(&m.a, 1)
				if atom.Load32(&m.c) == 0 {
					return
				}
			}
			atom.Add32(&m.b, 1)
			atom.Wake(&m.b)
		})
	}
}

func TestLostWakeUp(t *testing.T) {
	Run(t, Options{}, sleeper(false))
	require.Contains(t, Explore(Options{}, sleeper(true)).Failure, "deadlock")
	Run(t, Options{Timeouts: true}, sleeper(true))
	require.Contains(t, Explore(Options{EarlyTimeouts: 1}, sleeper(true)).Failure, "deadlock")
}

func TestLivelock(t *testing.T) {
	// x spins until a is 0 again; if hopeless, y never sets it to 0.
	world := func(hopeless bool) func(w *World) {
		return func(w *World) {
			m := &memory{}
			Watch(w, "m", m)
			spin := func(t *Thread) {
				for atom.Load32(&m.a) == 1 {
					t.Forget()
				}
			}
			w.Thread("x", spin)
			w.Thread("y", func(t *Thread) {
				atom.Store32(&m.a, 1)
				if !hopeless {
					atom.Store32(&m.a, 0)
				}
			})
		}
	}
	Run(t, Options{}, world(false))
	require.Contains(t, Explore(Options{}, world(true)).Failure, "livelock")
}

func TestYieldWaitsForWrite(t *testing.T) {
	Run(t, Options{}, func(w *World) {
		m := &memory{}
		Watch(w, "m", m)
		w.Thread("waiter", func(*Thread) {
			for atom.Load32(&m.a) != 3 {
				atom.Yield()
			}
		})
		w.Thread("counter", func(*Thread) {
			for range 3 {
				atom.Add32(&m.a, 1)
			}
		})
	})
	res := Explore(Options{}, func(w *World) {
		m := &memory{}
		Watch(w, "m", m)
		w.Thread("waiter", func(*Thread) {
			for atom.Load32(&m.a) == 0 {
				atom.Yield()
			}
		})
	})
	require.Contains(t, res.Failure, "deadlock")
}

func TestDeath(t *testing.T) {
	seen := map[uint32]bool{}
	world := func(w *World) {
		m := &memory{}
		Watch(w, "m", m)
		a := w.Thread("a", func(t *Thread) {
			atom.Store32(&m.a, 1)
			atom.Store32(&m.a, 2)
		}).Mortal()
		w.Thread("b", func(t *Thread) {
			t.Await("end of a", func() bool { return a.Dead() || m.a == 2 })
		})
		w.Finally(func() error {
			seen[m.a] = true
			return nil
		})
	}
	Run(t, Options{Deaths: 1}, world)
	require.Equal(t, map[uint32]bool{0: true, 1: true, 2: true}, seen)
	// Nothing may depend on a death, which need not happen.
	res := Explore(Options{Deaths: 1}, func(w *World) {
		m := &memory{}
		Watch(w, "m", m)
		a := w.Thread("a", func(t *Thread) { t.Await("nothing", func() bool { return false }) }).Mortal()
		w.Thread("b", func(t *Thread) { t.Await("death", a.Dead) })
	})
	require.Contains(t, res.Failure, "deadlock")
}

func TestPlain(t *testing.T) {
	// The payload is written after the flag: found only if the two are separated.
	world := func(w *World) {
		m := &memory{}
		Watch(w, "m", m)
		w.Thread("writer", func(t *Thread) {
			atom.Store32(&m.a, 1)
			m.b = 7
		})
		w.Thread("reader", func(t *Thread) {
			if atom.Load32(&m.a) == 1 {
				t.Check(m.b == 7, "the flag came before the payload")
			}
		})
	}
	Run(t, Options{}, world)
	require.Contains(t, Explore(Options{Plain: true}, world).Failure, "before the payload")
}

// seqlock returns a world with a number that is odd while two words are changed: open
// makes it odd and a store even again. Readers copy between two equal even numbers.
func seqlock(open func(seq *uint32, v uint32)) func(w *World) {
	return func(w *World) {
		m := &struct{ seq, a, b uint32 }{}
		Watch(w, "m", m)
		w.Name(unsafe.Pointer(&m.seq), "seq")
		w.Thread("writer", func(*Thread) {
			open(&m.seq, 1)
			m.a, m.b = 7, 7
			atom.Store32(&m.seq, 2)
		})
		w.Thread("reader", func(t *Thread) {
			seq := atom.Load32(&m.seq)
			if seq&1 != 0 {
				return
			}
			a := m.a
			t.Pause()
			b := m.b
			if atom.CAS32(&m.seq, seq, seq) {
				t.Check(a == b && a == 7*(seq/2), "%d and %d at number %d", a, b, seq)
			}
		})
	}
}

func TestWeak(t *testing.T) {
	byStore := seqlock(atom.Store32)
	byExchange := seqlock(func(seq *uint32, v uint32) { atom.Swap32(seq, v) })
	Run(t, Options{Plain: true}, byStore) // as on processors with a total order of stores
	require.Contains(t, Explore(Options{Weak: true}, byStore).Failure, "at number 0")
	Run(t, Options{Weak: true}, byExchange)

	// What is written before a store is seen before it, and stores keep their order.
	Run(t, Options{Weak: true}, func(w *World) {
		m := &memory{}
		Watch(w, "m", m)
		w.Thread("writer", func(*Thread) {
			m.b = 7
			atom.Store32(&m.a, 1)
			atom.Store32(&m.a, 2)
		})
		w.Thread("reader", func(t *Thread) {
			first := atom.Load32(&m.a)
			t.Check(first == 0 || m.b == 7, "the flag came before the payload")
			t.Check(atom.Load32(&m.a) >= first, "the stores were seen in another order")
		})
		w.Finally(func() error {
			if m.a != 2 {
				return fmt.Errorf("a store was lost: %d", m.a)
			}
			return nil
		})
	})

	// A store is seen before what the same thread loads after it.
	Run(t, Options{Weak: true}, func(w *World) {
		m := &memory{}
		Watch(w, "m", m)
		a, b := uint32(1), uint32(1)
		w.Thread("a", func(*Thread) {
			atom.Store32(&m.a, 1)
			b = atom.Load32(&m.b)
		})
		w.Thread("b", func(*Thread) {
			atom.Store32(&m.b, 1)
			a = atom.Load32(&m.a)
		})
		w.Finally(func() error {
			if a == 0 && b == 0 {
				return errors.New("both were before the other")
			}
			return nil
		})
	})
}

func TestPreemptionBound(t *testing.T) {
	full := Run(t, Options{}, peterson(false))
	bound := Run(t, Options{Preemptions: 1}, peterson(false))
	require.Less(t, bound.Schedules, full.Schedules)
}

func TestReportsFinallyAndForeignMemory(t *testing.T) {
	res := Explore(Options{}, func(w *World) {
		w.Finally(func() error { return errors.New("not well") })
	})
	require.Contains(t, res.Failure, "not well")
	res = Explore(Options{}, func(w *World) {
		m := &memory{}
		w.Thread("a", func(*Thread) { atom.Store32(&m.a, 1) })
	})
	require.Contains(t, res.Failure, "World.Memory")
}
