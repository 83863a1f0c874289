package mpi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// meetingModel is two leaders with a channel of messages in each direction. A leader that is
// interrupted calls again; what it has sent stays in the channel, and so does what it has not received.
type meetingModel struct {
	leaders  [2]greeting
	over     [2]bool
	calls    [2]int
	unlucky  bool         // a leader was interrupted that had answered the other's call
	channels [2][][]int64 // to each leader
}

const modelCalls = 2 // interruptions of each

func (m *meetingModel) call(i int) {
	if g := &m.leaders[i]; g.card != nil && g.card[cardNumber] == m.leaders[1-i].number {
		m.unlucky = true
	}
	m.calls[i]++
	m.leaders[i] = greeting{number: int64(10*(i+1) + m.calls[i])}
	m.channels[1-i] = append(m.channels[1-i], []int64{cardNumber: m.leaders[i].number, cardDrawer: int64(i), cardGroup: int64(i)})
}

func (m *meetingModel) receive(i int) {
	message := m.channels[i][0]
	m.channels[i] = m.channels[i][1:]
	if answer := m.leaders[i].take(message); answer != nil {
		m.channels[1-i] = append(m.channels[1-i], answer)
	}
	m.over[i] = m.leaders[i].met()
}

func (m *meetingModel) clone() *meetingModel {
	c := *m
	for i := range c.channels {
		c.channels[i] = append([][]int64(nil), c.channels[i]...)
	}
	return &c
}

func (m *meetingModel) key() string { return fmt.Sprint(*m) }

// Leaders that are interrupted and call again meet in every interleaving, and each has the card of the other's last call.
// They may not if one is interrupted that has answered the other's call, which no protocol can avoid; but never do both
// meet another call than the last one.
func TestInterruptedLeadersMeet(t *testing.T) {
	first := &meetingModel{}
	first.call(0)
	first.call(1)
	seen, list := map[string]bool{first.key(): true}, []*meetingModel{first}
	met := 0
	for len(list) > 0 {
		m := list[len(list)-1]
		list = list[:len(list)-1]
		moved := false
		next := func(c *meetingModel) {
			if !seen[c.key()] {
				seen[c.key()] = true
				list = append(list, c)
			}
		}
		for i := range 2 {
			if m.over[i] {
				continue
			}
			if len(m.channels[i]) > 0 {
				moved = true
				c := m.clone()
				c.receive(i)
				next(c)
			}
			if m.calls[i] <= modelCalls && !m.over[1-i] {
				c := m.clone()
				c.call(i)
				next(c)
			}
		}
		if moved {
			continue
		}
		if both := m.over[0] && m.over[1]; both || !m.unlucky {
			require.True(t, both, "nothing is left to come: %v", m)
			for i := range 2 {
				require.Equal(t, m.leaders[1-i].number, m.leaders[i].card[cardNumber], "%v", m)
			}
			met++
		}
	}
	assert.Greater(t, met, 10)
	assert.Greater(t, len(seen), 200)
}

func TestMessagesThatAreNoneOfAMeeting(t *testing.T) {
	g := greeting{number: 5}
	for _, message := range [][]int64{{}, {0}, {0, 4}, {7, 1, 2}, {-1, 2, 3, 4}, {0, 5, 6}} {
		assert.Nil(t, g.take(message))
	}
	assert.False(t, g.met())
	assert.Equal(t, []int64{0, 9}, g.take([]int64{9, 1, 2, 3, 4}))
	g.take([]int64{0, 5})
	assert.True(t, g.met())
}
