package pmi

import (
	"fmt"
	"strconv"
	"strings"
)

// NodeRange is a part of a process mapping: Nodes nodes from number First on, each with
// Ranks consecutive ranks.
type NodeRange struct{ First, Nodes, Ranks int }

// ParseMapping parses a process mapping such as "(vector,(0,2,1))" or, of Hydra 5,
// "(vector,[(0,2,1)]x2)": the ranges in brackets so many times. The mapping has no ranges if
// the process manager left them out, as Hydra does for one rank, or a part of them, which it
// marks by a 0.
func ParseMapping(text string) ([]NodeRange, error) {
	if strings.HasSuffix(text, ",0)") || text == "(vector)" {
		return nil, nil
	}
	// Not a regular expression, whose compilation would slow down Python's import.
	p := mappingParser{rest: text}
	p.skip("(vector,")
	ranges := p.ranges()
	p.skip(")")
	if p.bad || p.rest != "" {
		return nil, fmt.Errorf("process mapping %q is not of the form (vector,(node,nodes,ranks),…)", text)
	}
	for _, r := range ranges {
		if r.Nodes == 0 || r.Ranks == 0 {
			return nil, fmt.Errorf("process mapping %q has a block without ranks", text)
		}
	}
	return ranges, nil
}

// mappingParser takes a mapping from the front. bad is set when it is not of the form.
type mappingParser struct {
	rest string
	bad  bool
}

// maxRanges bounds what repetitions make of a short text.
const maxRanges = 1 << 16

func (p *mappingParser) skip(text string) {
	rest, found := strings.CutPrefix(p.rest, text)
	p.rest, p.bad = rest, p.bad || !found
}

func (p *mappingParser) at(text string) bool { return !p.bad && strings.HasPrefix(p.rest, text) }

// ranges takes ranges and repeated ranges, separated by commas.
func (p *mappingParser) ranges() (all []NodeRange) {
	for {
		if p.at("[") {
			p.skip("[")
			some := p.ranges()
			p.skip("]x")
			times := p.number()
			if p.bad = p.bad || len(all)+len(some)*times > maxRanges; p.bad {
				return nil
			}
			for range times {
				all = append(all, some...)
			}
		} else {
			p.skip("(")
			first := p.number()
			p.skip(",")
			nodes := p.number()
			p.skip(",")
			all = append(all, NodeRange{first, nodes, p.number()})
			p.skip(")")
		}
		if p.bad || !p.at(",") || len(all) > maxRanges {
			return all
		}
		p.skip(",")
	}
}

func (p *mappingParser) number() int {
	n := 0
	for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
		n++
	}
	u, err := strconv.ParseUint(p.rest[:n], 10, 30)
	p.rest, p.bad = p.rest[n:], p.bad || err != nil
	return int(u)
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
