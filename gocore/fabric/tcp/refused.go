package tcp

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Refused reports whether no process listens at any address of a card any more. It is false if
// an address does not answer within limit, or if anybody answers there.
func Refused(card []byte, limit time.Duration) bool {
	list, err := decodeCard(card)
	if err != nil {
		return false
	}
	for _, where := range list {
		c, err := net.DialTimeout("tcp", where.String(), limit)
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, unix.ECONNREFUSED) {
			return false
		}
	}
	return true
}
