package monitor

import (
	"time"

	"gormapy/gocore/home"
	"gormapy/gocore/job"
	"gormapy/gocore/log"
	"gormapy/gocore/trace"
)

const (
	clockTries = 8
	clockTime  = 5 * time.Second
)

// roundTrip returns what to add to this host's clock for that of the home, which said its
// time between two moments here.
func roundTrip(asked, said, now int64) int64 { return said - (asked + (now-asked)/2) }

// offset compares the clocks: the comparison that took the shortest is the most exact one.
func (m *Monitor) offset() int64 {
	best, shortest := int64(0), int64(1<<62)
	for range clockTries {
		begun := job.Now()
		if m.link.Send(&home.Message{Kind: home.Clock, Times: [2]int64{begun, 0}}) != nil {
			break
		}
		select {
		case o := <-m.clock:
			if took := job.Now() - begun; took < shortest {
				best, shortest = o, took
			}
		case <-time.After(clockTime):
			return best
		}
	}
	return best
}

// send sends what this rank has recorded, once. Records that threads of the program are
// about to write are left out.
func (m *Monitor) send() {
	m.record.Do(func() {
		p := trace.Stop()
		if p == nil {
			_ = m.link.Send(&home.Message{Kind: home.Record})
			return
		}
		err := m.link.Send(&home.Message{Kind: home.Record, Times: [2]int64{m.begun, m.offset()}, Data: p.Bytes()})
		if err != nil {
			log.Infof("monitor", "send the recording: %v", err)
		}
	})
}
