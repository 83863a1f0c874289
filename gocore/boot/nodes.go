package boot

import (
	"fmt"

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
// which no other rank reads. After another fence, when the network between the nodes is chosen,
// the agents connect in the background.

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
	o.Connections, o.Measure = 1, false
	return o, err
}

const (
	agentKey   = "agent"
	networkKey = "network"
	// several is a number of hosts where only that there may be others is known.
	several = 2
)

// meet connects the nodes of a job whose segment this rank has claimed its place in. It
// returns the node's agent if this rank is to be it, nil for other ranks.
func meet(seg *job.Segment, s store.Store, o tcp.Options) (a *agent.Agent, err error) {
	leads := seg.RanksOf(seg.Node())[0] == s.Rank()
	if leads {
		if a, err = newAgent(seg, s.Rank(), o); err != nil {
			return nil, fmt.Errorf("make the agent of node %d: %w", seg.Node(), err)
		}
		defer func(made *agent.Agent) {
			if err != nil {
				made.Leave()
			}
		}(a)
		if err = s.Put(agentKey, a.Card()); err == nil {
			err = put(s, networkKey, ownNetworks())
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.Fence(); err != nil {
		return nil, err
	}
	cards, told := map[int][]byte{}, map[int]networks{}
	for node := 0; leads && node < seg.Nodes(); node++ {
		first := seg.RanksOf(node)[0]
		if cards[first], err = s.Get(first, agentKey); err != nil {
			return nil, fmt.Errorf("find the agent of node %d: %w", node, err)
		}
		var there networks
		if err := get(s, first, networkKey, &there); err != nil {
			return nil, fmt.Errorf("find the network of node %d: %w", node, err)
		}
		told[first] = there
	}
	if leads {
		if err := agree(seg, told, int(seg.Head.Hosts)); err != nil {
			return nil, err
		}
	}
	// The other ranks of the node use what its leader has chosen.
	if err := s.Fence(); err != nil || !leads {
		return nil, err
	}
	return a, a.Start(cards)
}
