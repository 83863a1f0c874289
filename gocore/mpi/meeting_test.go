package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
)

// The leaders draw, who need not be the first ranks of their groups. The context is that of the leader whose group comes
// first in the union, and it is he who is named if he had none.
func TestTheLeaderOfTheFirstGroupDraws(t *testing.T) {
	const left = 7
	for name, c := range map[string]struct {
		local  []int
		remote []int64
		drawer int64
		ctx    int64
	}{
		"own":   {[]int{1, 2}, identity(3, 0), 2, noCtx},
		"other": {[]int{3, 2}, identity(1, 4), 4, left},
	} {
		t.Run(name, func(t *testing.T) {
			m := &meeting{local: &Comm{group: &Group{ranks: c.local}}, remote: c.remote,
				mine: append([]int64{cardContext: noCtx, cardDrawer: 2}, identity(c.local...)...), greeting: greeting{card: []int64{cardContext: left, cardDrawer: 4}}}
			told := m.choice()
			assert.Equal(t, notice{ctx: c.ctx, drawer: c.drawer, words: 2 * identityWords}, told)
			d, e := takeCtx(told.ctx, int(told.drawer))
			if c.ctx != noCtx {
				assert.Nil(t, e)
				assert.EqualValues(t, left, d.ctx)
				return
			}
			require.NotNil(t, e)
			assert.Contains(t, e.Error(), "world rank 2, the first rank or a leader of the new communicator, was to number it")
		})
	}
}

// identity returns the identities of ranks of one job.
func identity(ranks ...int) (words []int64) {
	for _, r := range ranks {
		words = append(words, 1, 2, int64(r), 3, 4)
	}
	return words
}

// A leader that could not meet the other one tells its group the class of its error.
func TestTheGroupLearnsWhyTheLeadersDidNotMeet(t *testing.T) {
	m := &meeting{failed: errs.New(errs.ProcFailed, "it has ended")}
	assert.Equal(t, notice{ctx: noCtx, class: int64(errs.ProcFailed)}, m.choice())
}

func TestIntracommunicatorsHaveNoRemoteGroup(t *testing.T) {
	_, code := CommCreateIntercomm(CommWorld, 1, CommWorld, 0, 0)
	fails(t, errs.Rank, "the local leader 1 is not in the communicator", code)
	for name, got := range map[string]int64{
		"remote size":  int64(CommRemoteSize(CommWorld)),
		"remote group": CommRemoteGroup(CommWorld),
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, errs.Comm, "this is an intracommunicator, which has no remote group", Code(-got))
		})
	}
	assert.Zero(t, CommTestInter(CommWorld))
}
