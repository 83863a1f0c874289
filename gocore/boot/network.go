package boot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gormapy/gocore/fabric/registry"
	"gormapy/gocore/fabric/tcp"
	"gormapy/gocore/job"
	"gormapy/gocore/settings"
)

// # The network between the nodes
//
// The leader of each node tells the others the node's GORMAPY_FABRIC, which has to be the same everywhere, its
// GORMAPY_TLS and GORMAPY_TCP_MAC, which have to come to the same guard (auto may be the same as 1), and, if
// GORMAPY_FABRIC is auto, on which networks its host reaches others. Each leader then
// makes the same choice of what all have told, and writes it into its segment, for the other
// ranks of the node.

// networks is what a node tells of the networks between it and others.
type networks struct {
	Fabric  string            // its GORMAPY_FABRIC
	TLS     string            // its GORMAPY_TLS
	MAC     string            // its GORMAPY_TCP_MAC
	Guards  [2]string         // what these two come to, if the job is on one host, and on several
	Between map[string]string // see registry.Between; only if Fabric is auto
}

const auto = "auto"

// ownNetworks returns what this node tells. It may not know yet on how many hosts the job is. The settings
// are understood: the node has an agent.
func ownNetworks() networks {
	n := networks{Fabric: settings.Fabric.Value(), TLS: tcp.TLS.Value(), MAC: tcp.MAC.Value()}
	for k, hosts := range []int{1, several} {
		if guard, err := tcp.GuardFor(hosts); err == nil {
			n.Guards[k] = guard.String()
		}
	}
	if n.Fabric == auto {
		n.Between = registry.Between()
	}
	return n
}

// agree chooses the network between the nodes and writes it into this node's segment. told has
// what each node tells, by its first rank; the nodes are on a number of hosts.
func agree(seg *job.Segment, told map[int]networks, hosts int) error {
	own := ownNetworks()
	between := make([]map[string]string, 0, len(told))
	for _, rank := range slices.Sorted(maps.Keys(told)) {
		if err := own.differs(told[rank], rank, hosts); err != nil {
			return err
		}
		between = append(between, told[rank].Between)
	}
	if own.Fabric == auto {
		seg.SetAcross(registry.Token(registry.Best(between)))
	}
	return nil
}

// differs returns in which setting this node and another one, whose first rank is given, differ, in a job on a
// number of hosts; nil if they can communicate. Nodes on one host have to agree as on several, too: they stand
// for such.
func (n *networks) differs(there networks, rank, hosts int) error {
	alike := n.Guards[1] == there.Guards[1] && (hosts > 1 || n.Guards[0] == there.Guards[0])
	for _, s := range []struct {
		name, here, there string
		alike             bool
	}{
		{settings.Fabric.Name, n.Fabric, there.Fabric, false}, {tcp.TLS.Name, n.TLS, there.TLS, false}, {tcp.MAC.Name, n.MAC, there.MAC, alike},
	} {
		if s.here != s.there && !s.alike {
			return fmt.Errorf("this rank has %s=%s and rank %d has %s: all must have the same", s.name, s.here, rank, cmp.Or(s.there, "another version of gormapy"))
		}
	}
	if !alike {
		return fmt.Errorf("what this rank sends is %s and what rank %d sends is %s: all must have the same", n.Guards[1], rank, cmp.Or(there.Guards[1], "that of another version of gormapy"))
	}
	return nil
}
