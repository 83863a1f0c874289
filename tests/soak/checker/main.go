// Command checker reads the histories that the ranks of a soak have written and reports
// whether each word of their window was linearizable: whether there is an order of all
// operations on it, in which each lies between its call and its return, that explains
// what they returned. Package porcupine does the search.
//
// A history is a file for each rank. A line is "call ID TIME KEY KIND A B", "return ID
// TIME RESULT" or "over TIME": what was called before and has not returned by then has
// taken effect before or never (a collective reset has ended). What is called and
// neither returns nor is over may take effect at any later time, or never.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kinds of operations.
const (
	add  = "add"  // old value is returned, A is added
	cas  = "cas"  // old value is returned, B is stored if it was A
	swap = "swap" // old value is returned, A is stored
	read = "read" // the value is returned
)

type input struct {
	key  int64
	kind string
	a, b int64
}

// output is what an operation returned; unknown: it did not return.
type output struct {
	value   int64
	unknown bool
}

var model = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int64][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(input).key
			parts[key] = append(parts[key], o)
		}
		var out [][]porcupine.Operation
		for _, p := range parts {
			out = append(out, p)
		}
		return out
	},
	Init: func() []any { return []any{int64(0)} },
	Step: func(state, in, out any) []any {
		was, i, o := state.(int64), in.(input), out.(output)
		next := was
		switch i.kind {
		case add:
			next = was + i.a
		case swap:
			next = i.a
		case cas:
			if was == i.a {
				next = i.b
			}
		}
		switch {
		case o.unknown && next == was:
			return []any{was}
		case o.unknown: // it took effect, or never did
			return []any{was, next}
		case o.value != was:
			return nil
		}
		return []any{next}
	},
}

// parse reads the history of one rank.
func parse(path string, client int) ([]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	open, order := map[string]*porcupine.Operation{}, []*porcupine.Operation{}
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		number := func(i int) int64 {
			v, e := strconv.ParseInt(f[i], 10, 64)
			if e != nil && err == nil {
				err = fmt.Errorf("%s:%d: %w", path, n, e)
			}
			return v
		}
		switch {
		case len(f) == 7 && f[0] == "call":
			o := &porcupine.Operation{ClientId: client, Call: number(2), Input: input{number(3), f[4], number(5), number(6)},
				Output: output{unknown: true}, Return: math.MaxInt64}
			open[f[1]] = o
			order = append(order, o)
		case len(f) == 4 && f[0] == "return" && open[f[1]] != nil:
			open[f[1]].Return, open[f[1]].Output = number(2), output{value: number(3)}
			delete(open, f[1])
		case len(f) == 2 && f[0] == "over":
			for id, o := range open {
				o.Return = number(1)
				delete(open, id)
			}
		case lines.Text() == "" || len(f) < 2: // cut off by the end of the rank
		default:
			return nil, fmt.Errorf("%s:%d: %q is no line of a history", path, n, lines.Text())
		}
		if err != nil {
			return nil, err
		}
	}
	out := make([]porcupine.Operation, 0, len(order))
	for _, o := range order {
		out = append(out, *o)
	}
	return out, lines.Err()
}

func main() {
	var all []porcupine.Operation
	unknown := 0
	for i, path := range os.Args[1:] {
		list, err := parse(path, i)
		if err != nil {
			fmt.Fprintln(os.Stderr, "checker:", err)
			os.Exit(2)
		}
		all = append(all, list...)
	}
	for _, o := range all {
		if o.Output.(output).unknown {
			unknown++
		}
	}
	m := model.ToModel()
	bad, undecided := []string{}, 0
	parts := m.Partition(all)
	for _, part := range parts {
		switch porcupine.CheckOperationsTimeout(m, part, 20*time.Second) {
		case porcupine.Illegal:
			bad = append(bad, fmt.Sprint(part[0].Input.(input).key))
		case porcupine.Unknown:
			undecided++
		}
	}
	slices.Sort(bad)
	fmt.Printf("%d operations, %d of them without a result, on %d words; %d words undecided\n", len(all), unknown, len(parts), undecided)
	if len(bad) > 0 {
		fmt.Println("not linearizable: words", strings.Join(bad, " "))
		os.Exit(1)
	}
}
