package boot

import (
	"fmt"
	"strings"

	"gormapy/gocore/agent"
	"gormapy/gocore/boot/store"
	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/job"
	"gormapy/gocore/settings"
)

// # The agents meet
//
// The first rank of each node makes the node's agent (package agent) and puts its address
// into the job's store. After a fence it reads those of the other nodes: one record a node,
// which no other rank reads. The agents connect in the background.

// newAgent makes the agent of the node of a rank of this process.
func newAgent(seg *job.Segment, rank int, o tcp.Options) (*agent.Agent, error) {
	o, err := guarded(o)
	if err != nil {
		return nil, err
	}
	return agent.New(seg, rank, agent.Options{TCP: o})
}

// Succeed makes rank, of this process, the agent of its node in place of one that has ended.
func Succeed(seg *job.Segment, rank int) (*agent.Agent, error) {
	o, err := tcp.OptionsFor(int(seg.Head.Hosts))
	if err == nil {
		o, err = guarded(o)
	}
	if err != nil {
		return nil, err
	}
	return agent.Succeed(seg, rank, agent.Options{TCP: o})
}

// guarded returns the options of an agent, for any addresses. What agents say is little: it is
// authenticated in any case.
func guarded(o tcp.Options) (tcp.Options, error) {
	guard, err := tcp.GuardFor(several)
	o.Guard, o.Patience = max(guard, tcp.Authenticated), settings.PeerTimeout.Seconds()
	return o, err
}

const (
	agentKey   = "agent"
	networkKey = "network"
	// several is a number of hosts where only that there may be others is known.
	several = 2
)

// network returns the settings of the network that all ranks need alike, one a word.
func network() string {
	var words []string
	for _, s := range []*settings.Setting{settings.Fabric, tcp.TLS, tcp.MAC} {
		words = append(words, s.Name+"="+s.Value())
	}
	return strings.Join(words, " ")
}

// compareNetwork returns an error if a rank has said other settings of the network than this one's.
func compareNetwork(rank int, said string) error {
	there := strings.Fields(said)
	for i, here := range strings.Fields(network()) {
		if i >= len(there) || there[i] != here {
			name, _, _ := strings.Cut(here, "=")
			other := "another version of gormapy"
			if i < len(there) {
				other = strings.TrimPrefix(there[i], name+"=")
			}
			return fmt.Errorf("this rank has %s and rank %d has %s: all must have the same", here, rank, other)
		}
	}
	return nil
}

// meet connects the nodes of a job whose segment this rank has claimed its place in. It
// returns the node's agent if this rank is to be it, nil for other ranks.
func meet(seg *job.Segment, s store.Store, o tcp.Options) (a *agent.Agent, err error) {
	leads := seg.RanksOf(seg.Node())[0] == s.Rank()
	if leads {
		if a, err = newAgent(seg, s.Rank(), o); err != nil {
			return nil, fmt.Errorf("make the agent of node %d: %w", seg.Node(), err)
		}
		if err = s.Put(agentKey, a.Card()); err == nil {
			err = s.Put(networkKey, []byte(network()))
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.Fence(); err != nil || !leads {
		return nil, err
	}
	cards := map[int][]byte{}
	for node := range seg.Nodes() {
		first := seg.RanksOf(node)[0]
		if cards[first], err = s.Get(first, agentKey); err != nil {
			return nil, fmt.Errorf("find the agent of node %d: %w", node, err)
		}
		there, err := s.Get(first, networkKey)
		if err != nil {
			return nil, fmt.Errorf("find the network of node %d: %w", node, err)
		}
		if err := compareNetwork(first, string(there)); err != nil {
			return nil, err
		}
	}
	return a, a.Start(cards)
}
