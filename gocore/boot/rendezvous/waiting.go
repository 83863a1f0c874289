package rendezvous

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func (s *server) fence(m *member) error {
	if m.fencing {
		return fmt.Errorf("two fences at once")
	}
	m.fencing = true
	s.inside++
	s.arm()
	if s.inside == s.size {
		for _, m := range s.members {
			m.fencing = false
			m.link.send(frame{opFenced, nil})
		}
		s.inside = 0
		s.disarm()
	}
	s.checkWaiting()
	return nil
}

// answerNodes answers those who wait for the table, once all have joined.
func (s *server) answerNodes() {
	if s.joined < s.size || s.asking == 0 {
		s.checkWaiting()
		return
	}
	nodes := make([]int, s.size)
	for r, m := range s.members {
		nodes[r] = m.card.node
	}
	for _, m := range s.members {
		if m.asking {
			m.asking = false
			m.link.send(tableFrame(nodes))
		}
	}
	s.asking = 0
	s.disarm()
}

// arm starts the timer if nobody has waited until now.
func (s *server) arm() {
	if s.timer != nil {
		return
	}
	s.period++
	period := s.period
	s.timer = time.AfterFunc(s.timeout, func() { s.expire(period) })
}

// disarm stops the timer if nobody waits any more.
func (s *server) disarm() {
	if s.timer != nil && s.inside == 0 && s.asking == 0 {
		s.timer.Stop()
		s.timer = nil
	}
}

func (s *server) expire(period int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil || s.period != period {
		return
	}
	var absent, late []int
	for r, m := range s.members {
		switch {
		case m.link == nil:
			absent = append(absent, r)
		case s.inside > 0 && !m.fencing:
			late = append(late, r)
		}
	}
	var parts []string
	if len(absent) > 0 {
		parts = append(parts, Ranks(absent)+" never joined the job")
	}
	if len(late) > 0 {
		parts = append(parts, Ranks(late)+" joined but did not come as far as the others")
	}
	s.fail(fmt.Sprintf("%s within %v, of %d ranks (%s is the time-out in seconds)", strings.Join(parts, ", and "), s.timeout, s.size, Timeout.Name))
}

// checkWaiting fails those who wait for a rank that won't come.
func (s *server) checkWaiting() {
	if s.inside == 0 && s.asking == 0 {
		return
	}
	for _, m := range s.members {
		if s.failed == "" && m.finalized && !m.fencing && s.inside > 0 {
			s.failed = fmt.Sprintf("rank %d has finalized and won't come to a fence any more", m.rank)
		}
	}
	if s.failed != "" {
		s.fail(s.failed)
	}
}

// fail answers all who wait. Fences fail from now on: the ranks are not in step.
func (s *server) fail(why string) {
	if s.failed == "" {
		s.failed = why
	}
	for _, m := range s.members {
		if m.fencing || m.asking {
			m.link.send(frame{opFailed, []byte(s.failed)})
		}
		m.fencing, m.asking = false, false
	}
	s.inside, s.asking = 0, 0
	s.disarm()
}

// Ranks names ranks in a sentence: "rank 3", "ranks 0, 2-5 and 9". A long list is cut.
func Ranks(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + strconv.Itoa(ranks[0])
	}
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		switch j {
		case i:
			parts = append(parts, strconv.Itoa(ranks[i]))
		case i + 1:
			parts = append(parts, strconv.Itoa(ranks[i]), strconv.Itoa(ranks[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		}
		i = j + 1
	}
	if len(parts) > 8 {
		parts = append(parts[:8], "others")
	}
	if len(parts) == 1 {
		return "ranks " + parts[0]
	}
	return "ranks " + strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}
