package chrome

import (
	"maps"
	"slices"
)

// orderMessages moves the times of hosts whose clocks were not compared exactly enough: hosts compare them by messages,
// of which one may take longer than the answer if the machines are busy. No message is received before it was sent. So the
// correction d of a sender's host is at most that of the receiver's plus the least time that a message between the two
// seems to have taken. The corrections that are nearest to 0 follow from these bounds as shortest paths do
// (Bellman and Ford). The first host keeps its times. If no corrections satisfy all bounds, because clocks have run apart, the times stay.
func (r *Recording) orderMessages(hosts map[int]string) {
	least := map[[2]string]int64{}
	for i := range r.messages {
		m := &r.messages[i]
		if m.sent < 0 || m.received < 0 || hosts[m.source] == hosts[m.dest] {
			continue
		}
		pair := [2]string{hosts[m.source], hosts[m.dest]}
		if took, ok := least[pair]; !ok || m.received-m.sent < took {
			least[pair] = m.received - m.sent
		}
	}
	d := map[string]int64{}
	for _, host := range hosts {
		d[host] = 0
	}
	for changes, round := true, 0; changes; round++ {
		if round > len(d) {
			return
		}
		changes = false
		for pair, took := range least {
			if most := d[pair[1]] + took; d[pair[0]] > most {
				d[pair[0]], changes = most, true
			}
		}
	}
	first := d[slices.Min(slices.Collect(maps.Keys(d)))]
	for i := range r.calls {
		c := &r.calls[i]
		c.begin += d[hosts[c.rank]] - first
		c.end += d[hosts[c.rank]] - first
	}
	for i := range r.messages {
		m := &r.messages[i]
		if m.sent >= 0 {
			m.sent += d[hosts[m.source]] - first
		}
		if m.received >= 0 {
			m.received += d[hosts[m.dest]] - first
		}
	}
}
