package agreement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// world is a set of processes, with the messages that are under way.
type world struct {
	n, calls  int // processes; instances that each calls
	deaths    int // how many more may die or leave
	members   []*Member
	status    []status
	called    []int
	channels  [][]*Message // from*n + to, in order
	decisions [][]string   // by process and instance
}

type status uint8

const (
	lives status = iota
	died
	left
)

func newWorld(n, calls, deaths int) *world {
	w := &world{n: n, calls: calls, deaths: deaths, status: make([]status, n), called: make([]int, n), channels: make([][]*Message, n*n), decisions: make([][]string, n)}
	for p := range n {
		w.members = append(w.members, New(p, n, nil, combine, nil))
		w.connect(p)
	}
	return w
}

// combine returns who has contributed.
func combine(contributions [][]byte, absent []bool) []byte {
	out := []byte{0}
	for r, c := range contributions {
		if c == nil && !absent[r] {
			panic("combined without a contribution of a process that is not absent")
		}
		if c != nil {
			out[0] |= c[0]
		}
	}
	return out
}

// connect makes member p send and decide in this world.
func (w *world) connect(p int) {
	m := w.members[p]
	m.send = func(to int, msg *Message) { w.channels[p*w.n+to] = append(w.channels[p*w.n+to], msg) }
	m.decided = func(instance uint32, value []byte) {
		if int(instance) != len(w.decisions[p])+1 {
			panic("decisions out of order")
		}
		w.decisions[p] = append(w.decisions[p], string(value))
	}
}

// clone returns a copy that shares only messages, which do not change.
func (w *world) clone() *world {
	c := *w
	c.members, c.status, c.called = slices.Clone(w.members), slices.Clone(w.status), slices.Clone(w.called)
	c.channels, c.decisions = make([][]*Message, len(w.channels)), make([][]string, w.n)
	for i, ch := range w.channels {
		c.channels[i] = slices.Clone(ch)
	}
	for p, m := range w.members {
		c.decisions[p] = slices.Clone(w.decisions[p])
		x := *m
		x.absent, x.calls, x.accepts = slices.Clone(m.absent), slices.Clone(m.calls), slices.Clone(m.accepts)
		x.states, x.next = slices.Clone(m.states), slices.Clone(m.next)
		c.members[p] = &x
		c.connect(p)
	}
	return &c
}

// key describes the state.
func (w *world) key() string {
	var b strings.Builder
	msg := func(m *Message) {
		if m == nil {
			b.WriteByte('-')
			return
		}
		fmt.Fprintf(&b, "%d.%d.%x.%x.%d,", m.Kind, m.Instance, m.Value, m.Accepted, m.By)
	}
	for p, m := range w.members {
		fmt.Fprintf(&b, "|%d %d ", w.status[p], w.called[p])
		if w.status[p] == died {
			continue
		}
		fmt.Fprintf(&b, "%v %x %d %x %v %x %d %x %d %d %x %v ", m.absent, m.calls, m.last, m.lastValue, m.started, m.mine, m.told, m.accepted, m.acceptedBy, m.phase, m.proposal, m.accepts)
		for _, s := range m.states {
			msg(s)
		}
		for _, s := range m.next {
			msg(s)
		}
	}
	for _, ch := range w.channels {
		b.WriteByte('/')
		for _, m := range ch {
			msg(m)
		}
	}
	fmt.Fprintf(&b, "%d%q", w.deaths, w.decisions)
	return b.String()
}

// moves returns what can happen next. A move changes the world that it is given.
func (w *world) moves() (list []func(w *world)) {
	for p := range w.n {
		if w.status[p] != lives {
			continue
		}
		if w.called[p] < w.calls {
			list = append(list, func(w *world) {
				w.called[p]++
				w.members[p].Call([]byte{1 << p})
			})
		}
		for q := range w.n {
			if len(w.channels[q*w.n+p]) > 0 {
				list = append(list, func(w *world) {
					ch := &w.channels[q*w.n+p]
					msg := (*ch)[0]
					*ch = (*ch)[1:]
					w.members[p].Receive(q, msg)
				})
			}
			if w.status[q] == died && !w.members[p].absent[q] {
				list = append(list, func(w *world) { w.members[p].Gone(q) })
			}
		}
		if w.deaths > 0 {
			list = append(list, func(w *world) {
				w.deaths--
				w.members[p].Leave()
				w.status[p] = left
			})
			for _, kept := range w.prefixes(p) {
				list = append(list, func(w *world) {
					w.deaths--
					w.status[p] = died
					for q, n := range kept {
						ch := &w.channels[p*w.n+q]
						*ch = (*ch)[:n]
					}
				})
			}
		}
	}
	return list
}

// prefixes returns, for all ways in which p can die, how many of the messages to each process that are under way arrive.
func (w *world) prefixes(p int) [][]int {
	out := [][]int{{}}
	for q := range w.n {
		var longer [][]int
		for _, kept := range out {
			for n := range len(w.channels[p*w.n+q]) + 1 {
				longer = append(longer, append(slices.Clone(kept), n))
			}
		}
		out = longer
	}
	return out
}

// check returns what is wrong with the state; over reports whether nothing can happen any more.
func (w *world) check(over bool) error {
	for k := range w.calls {
		value := ""
		for p, list := range w.decisions {
			switch {
			case k >= len(list):
				if over && w.status[p] == lives {
					return fmt.Errorf("process %d has no decision of instance %d", p, k+1)
				}
				continue
			case value == "":
				value = list[k]
			case value != list[k]:
				return fmt.Errorf("instance %d: process %d has decided %x, another one %x", k+1, p, list[k], value)
			}
			for q, s := range w.status {
				if s == lives && value[0]&(1<<q) == 0 {
					return fmt.Errorf("instance %d: the decision %x does not count process %d, which lives", k+1, value, q)
				}
			}
		}
	}
	return nil
}

// explore visits all states.
func explore(t *testing.T, w *world) (states int) {
	seen := map[string]struct{}{w.key(): {}}
	stack := []*world{w}
	for len(stack) > 0 {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		moves := w.moves()
		require.NoError(t, w.check(len(moves) == 0), "in state %s", w.key())
		for _, move := range moves {
			next := w.clone()
			move(next)
			if k := next.key(); !has(seen, k) {
				seen[k] = struct{}{}
				stack = append(stack, next)
			}
		}
	}
	return len(seen)
}

func has(seen map[string]struct{}, k string) bool {
	_, yes := seen[k]
	return yes
}

func TestAllOrders(t *testing.T) {
	for _, c := range []struct{ n, calls, deaths int }{{1, 2, 1}, {2, 2, 2}, {3, 1, 2}, {3, 2, 1}, {3, 2, 2}, {4, 1, 1}} {
		t.Run(fmt.Sprintf("%d processes, %d calls, %d deaths", c.n, c.calls, c.deaths), func(t *testing.T) {
			t.Logf("%d states", explore(t, newWorld(c.n, c.calls, c.deaths)))
		})
	}
}

func TestRandomOrders(t *testing.T) {
	runs := 20000
	if testing.Short() {
		runs = 2000
	}
	for seed := range runs {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		n := 2 + rng.IntN(6)
		w := newWorld(n, 1+rng.IntN(4), rng.IntN(n+1))
		for {
			moves := w.moves()
			require.NoError(t, w.check(len(moves) == 0), "seed %d, in state %s", seed, w.key())
			if len(moves) == 0 {
				break
			}
			moves[rng.IntN(len(moves))](w)
		}
	}
}
