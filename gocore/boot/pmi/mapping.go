package pmi

import (
	"fmt"
	"strconv"
	"strings"
)

// NodeRange is a part of a process mapping: Nodes nodes from number First on, each with
// Ranks consecutive ranks.
type NodeRange struct{ First, Nodes, Ranks int }

// ParseMapping parses a process mapping such as "(vector,(0,2,1))". The mapping has no
// ranges if the process manager left them out, as Hydra does for one rank.
func ParseMapping(text string) ([]NodeRange, error) {
	if text == "(vector,0)" || text == "(vector)" {
		return nil, nil
	}
	// Not a regular expression, whose compilation would slow down Python's import.
	list, begins := strings.CutPrefix(text, "(vector,(")
	list, ends := strings.CutSuffix(list, "))")
	bad := !begins || !ends
	var out []NodeRange
	for _, triple := range strings.Split(list, "),(") {
		numbers := strings.Split(triple, ",")
		if bad || len(numbers) != 3 {
			bad = true
			break
		}
		var n [3]int
		for i, s := range numbers {
			u, err := strconv.ParseUint(s, 10, 30)
			n[i], bad = int(u), bad || err != nil
		}
		if !bad && (n[1] == 0 || n[2] == 0) {
			return nil, fmt.Errorf("process mapping %q has a block without ranks", text)
		}
		out = append(out, NodeRange{n[0], n[1], n[2]})
	}
	if bad {
		return nil, fmt.Errorf("process mapping %q is not of the form (vector,(node,nodes,ranks),…)", text)
	}
	return out, nil
}

// Nodes returns the node number of each of size ranks. When the
// ranks outnumber the ranges, these are used again from the first one.
func Nodes(ranges []NodeRange, size int) []int {
	out := make([]int, 0, size)
	for len(out) < size && len(ranges) > 0 {
		for _, b := range ranges {
			for node := range b.Nodes {
				for range b.Ranks {
					if len(out) == size {
						return out
					}
					out = append(out, b.First+node)
				}
			}
		}
	}
	return out
}

// Mapping returns the process manager's mapping of ranks to nodes. The error is
// ErrNotFound if it has none.
func (c *Client) Mapping() ([]NodeRange, error) {
	text, err := c.get("PMI_process_mapping")
	if err != nil {
		return nil, err
	}
	return ParseMapping(text)
}
