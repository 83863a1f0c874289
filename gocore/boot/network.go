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
// The leader of each node tells the others the node's GORMAPY_FABRIC, GORMAPY_TLS and
// GORMAPY_TCP_MAC, which have to be the same everywhere, and, if that is auto, on which networks its host reaches others. Each leader then
// makes the same choice of what all have told, and writes it into its segment, for the other
// ranks of the node.

// networks is what a node tells of the networks between it and others.
type networks struct {
	Fabric  string            // its GORMAPY_FABRIC
	TLS     string            // its GORMAPY_TLS
	MAC     string            // its GORMAPY_TCP_MAC
	Between map[string]string // see registry.Between; only if Fabric is auto
}

const auto = "auto"

// ownNetworks returns what this node tells.
func ownNetworks() networks {
	n := networks{Fabric: settings.Fabric.Value(), TLS: tcp.TLS.Value(), MAC: tcp.MAC.Value()}
	if n.Fabric == auto {
		n.Between = registry.Between()
	}
	return n
}

// agree chooses the network between the nodes and writes it into this node's segment. told has
// what each node tells, by its first rank.
func agree(seg *job.Segment, told map[int]networks) error {
	here := settings.Fabric.Value()
	between := make([]map[string]string, 0, len(told))
	for _, rank := range slices.Sorted(maps.Keys(told)) {
		there := told[rank]
		for s, value := range map[*settings.Setting]string{settings.Fabric: there.Fabric, tcp.TLS: there.TLS, tcp.MAC: there.MAC} {
			if here := s.Value(); value != here {
				return fmt.Errorf("this rank has %s=%s and rank %d has %s: all must have the same", s.Name, here, rank, cmp.Or(value, "another version of gormapy"))
			}
		}
		between = append(between, told[rank].Between)
	}
	if here == auto {
		seg.SetAcross(registry.Token(registry.Best(between)))
	}
	return nil
}
