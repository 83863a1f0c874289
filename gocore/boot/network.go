package boot

import (
	"fmt"
	"maps"
	"slices"

	"gormapy/gocore/fabric/registry"
	"gormapy/gocore/job"
	"gormapy/gocore/settings"
)

// # The network between the nodes
//
// The leader of each node tells the others the node's GORMAPY_FABRIC, which has to be the same
// everywhere, and, if that is auto, on which networks its host reaches others. Each leader then
// makes the same choice of what all have told, and writes it into its segment, for the other
// ranks of the node.

// networks is what a node tells of the networks between it and others.
type networks struct {
	Fabric  string            // its GORMAPY_FABRIC
	Between map[string]string // see registry.Between; only if Fabric is auto
}

const auto = "auto"

// ownNetworks returns what this node tells.
func ownNetworks() networks {
	n := networks{Fabric: settings.Fabric.Value()}
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
		if there := told[rank].Fabric; there != here {
			return fmt.Errorf("this rank has GORMAPY_FABRIC=%s and rank %d has %s: all must have the same", here, rank, there)
		}
		between = append(between, told[rank].Between)
	}
	if here == auto {
		seg.SetAcross(registry.Token(registry.Best(between)))
	}
	return nil
}
