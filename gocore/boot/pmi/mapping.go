package pmi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// NodeRange is a part of a process mapping: Nodes nodes from number First on, each with
// Ranks consecutive ranks.
type NodeRange struct{ First, Nodes, Ranks int }

const (
	// maxRanges bounds the memory for a mapping, and maxNested its repetitions in
	// repetitions.
	maxRanges = 1 << 20
	maxNested = 8
)

// ParseMapping parses a process mapping such as "(vector,(0,2,1))". Hydra shortens it: "3" is
// one rank on node 3, and "[(0,2,1),1]x5" is what is in brackets five times. The mapping
// has no ranges if the process manager does not tell.
func ParseMapping(text string) ([]NodeRange, error) {
	// Not a regular expression, whose compilation would slow down Python's import.
	list, begins := strings.CutPrefix(text, "(vector")
	list, ends := strings.CutSuffix(list, ")")
	if begins && ends && list == "" {
		return nil, nil
	}
	list, comma := strings.CutPrefix(list, ",")
	var err error
	var out []NodeRange
	if !begins || !ends || !comma {
		err = errors.New("it is not of the form (vector,(node,nodes,ranks),…)")
	} else if out, list, err = parseRanges(list, 0); err == nil && list != "" {
		err = fmt.Errorf("what is %q?", clip(list))
	}
	if err != nil {
		return nil, fmt.Errorf("process mapping %q: %w", clip(text), err)
	}
	return out, nil
}

// parseRanges parses a list of ranges up to the end of text or a closing bracket.
func parseRanges(text string, depth int) (out []NodeRange, rest string, err error) {
	for rest = text; ; rest = rest[1:] {
		var more []NodeRange
		switch {
		case strings.HasPrefix(rest, "("):
			more, rest, err = parseTriple(rest[1:])
		case strings.HasPrefix(rest, "["):
			more, rest, err = parseRepeated(rest[1:], depth+1)
		default:
			var node int
			node, rest, err = parseNumber(rest)
			more = []NodeRange{{node, 1, 1}}
		}
		if err != nil {
			return nil, "", err
		}
		if out = append(out, more...); len(out) > maxRanges {
			return nil, "", fmt.Errorf("it has more than %d parts", maxRanges)
		}
		if !strings.HasPrefix(rest, ",") {
			return out, rest, nil
		}
	}
}

// parseTriple parses what follows the opening parenthesis of a range.
func parseTriple(text string) (out []NodeRange, rest string, err error) {
	var n [3]int
	rest = text
	for i, end := range []string{",", ",", ")"} {
		if n[i], rest, err = parseNumber(rest); err != nil {
			return nil, "", err
		}
		var ok bool
		if rest, ok = strings.CutPrefix(rest, end); !ok {
			return nil, "", errors.New("a range is not of the form (node,nodes,ranks)")
		}
	}
	if n[1] == 0 || n[2] == 0 {
		return nil, "", errors.New("it has a block without ranks")
	}
	return []NodeRange{{n[0], n[1], n[2]}}, rest, nil
}

// parseRepeated parses what follows an opening bracket.
func parseRepeated(text string, depth int) (out []NodeRange, rest string, err error) {
	if depth > maxNested {
		return nil, "", errors.New("its brackets are nested too deeply")
	}
	once, rest, err := parseRanges(text, depth)
	if err != nil {
		return nil, "", err
	}
	rest, ok := strings.CutPrefix(rest, "]x")
	if !ok {
		return nil, "", errors.New("a repetition is not of the form [ranges]xtimes")
	}
	times, rest, err := parseNumber(rest)
	if err == nil && times*len(once) > maxRanges {
		err = fmt.Errorf("it has more than %d parts", maxRanges)
	}
	if err != nil {
		return nil, "", err
	}
	for range times {
		out = append(out, once...)
	}
	return out, rest, nil
}

// parseNumber parses the digits at the beginning of text.
func parseNumber(text string) (n int, rest string, err error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	u, err := strconv.ParseUint(text[:digits], 10, 30)
	if err != nil {
		return 0, "", fmt.Errorf("%q is no number from 0 to 2^30-1", clip(text[:max(digits, min(1, len(text)))]))
	}
	return int(u), text[digits:], nil
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
