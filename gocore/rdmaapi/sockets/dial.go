package sockets

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Dial connects to an address of a network within timeout. If the host of a TCP address is
// a name, it tries the host's addresses in turn.
func Dial(ctx context.Context, timeout time.Duration, network, address string) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addresses := []string{address}
	if host, port, e := net.SplitHostPort(address); network == "tcp" && e == nil {
		if _, e := netip.ParseAddr(host); e != nil { // no fork shall wait for a name server
			hosts, err := net.DefaultResolver.LookupHost(ctx, host)
			if err != nil {
				return nil, err
			}
			addresses = addresses[:0]
			for _, h := range hosts {
				addresses = append(addresses, net.JoinHostPort(h, port))
			}
		}
	}
	for _, a := range addresses {
		if conn, err = dial(ctx, network, a); err == nil {
			break
		}
	}
	return conn, err
}

// dial connects to an address that is no name. Its socket is listed before it is connected.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	listed := begin()
	defer listed()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		note(raw)
		listed()
		return nil
	}}
	return d.DialContext(ctx, network, address)
}
