package tcp

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Silent reports whether the host of peer has acknowledged nothing for a time, although something
// is to be acknowledged. It does so of a peer whose connection has ended, and not of one to which
// a connection is only being made.
func (t *Transport) Silent(peer int, d time.Duration) bool {
	p := &t.pairs[peer]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != open {
		return p.state == broken
	}
	return slices.ContainsFunc(p.openLanes(), func(q *pair) bool { return q.silent(d) })
}

func (p *pair) silent(d time.Duration) bool {
	waiting, err := unix.IoctlGetInt(p.fd, unix.SIOCOUTQ)
	if err != nil || waiting == 0 && !p.waiting() {
		return err != nil
	}
	info, err := unix.GetsockoptTCPInfo(p.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err != nil || time.Duration(info.Last_ack_recv)*time.Millisecond >= d
}
