//go:build interleave

package simulate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gormapy/gocore/fabric"
)

// transports are the transports by which the ranks reach each other.
var transports = []struct {
	name string
	copy bool
	net  *fabric.Caps
}{
	{"copies", true, nil},
	{"rings", false, nil},
	{"messages", false, &fabric.Caps{}},
	{"rdma", false, &fabric.Caps{OneSided: true, Keys: true}},
	{"atomics", false, &fabric.Caps{OneSided: true, Keys: true, Atomics: true}},
}

// options returns the options of a seed, each drawn independently, and their text.
func options(seed uint64) (string, Options) {
	chance := rand.New(rand.NewPCG(seed, 4))
	p := transports[chance.IntN(len(transports))]
	o := Options{Ranks: []int{2, 3, 4, 7}[chance.IntN(4)], Steps: 25, Copy: p.copy, Net: p.net,
		Kill: chance.IntN(3) == 0, Stops: chance.IntN(2) == 0, Reset: chance.IntN(3) > 0}
	return fmt.Sprintf("seed=%d,%s,ranks=%d,kill=%t,stops=%t,reset=%t", seed, p.name, o.Ranks, o.Kill, o.Stops, o.Reset), o
}

// TestInterleavingsOfSimulation runs the seeds of the variable SEEDS: as many as its
// number (default 100), or those of a range FROM-TO.
func TestInterleavingsOfSimulation(t *testing.T) {
	from, to := uint64(0), uint64(100)
	if text := os.Getenv("SEEDS"); text != "" {
		first, last, isRange := strings.Cut(text, "-")
		n, err := strconv.ParseUint(first, 10, 64)
		require.NoError(t, err)
		to = n
		if isRange {
			from = n
			to, err = strconv.ParseUint(last, 10, 64)
			require.NoError(t, err)
			to++
		}
	}
	total, killed := map[string]int{}, 0
	for seed := from; seed < to; seed++ {
		name, o := options(seed)
		res := Run(seed, o)
		if res.Failure != "" {
			t.Fatalf("%s: %s\nmake simulate SEEDS=%d-%d does the same again", name, res.Failure, seed, seed)
		}
		if res.Killed {
			killed++
		}
		for what, n := range res.Counts {
			total[what] += n
		}
		total["scheduling steps"] += res.Steps
	}
	t.Logf("%d seeds, a rank killed in %d: %v", to-from, killed, total)
}

// The same seed makes the same run.
func TestInterleavingsOfSimulationAreReplayed(t *testing.T) {
	for seed := range uint64(30) {
		name, o := options(seed)
		one, two := Run(seed, o), Run(seed, o)
		require.Empty(t, one.Failure, name)
		require.Equal(t, one, two, name)
	}
}
