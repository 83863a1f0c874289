package sockets

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Dial connects to an address of a network within timeout. If the host of a TCP address is
// a name, it tries the host's addresses in turn, each with an equal part of the time that is left.
func Dial(ctx context.Context, timeout time.Duration, network, address string) (conn net.Conn, err error) {
	deadline := time.Now().Add(timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	addresses, err := literal(ctx, network, address)
	for i, a := range addresses {
		within := time.Until(deadline) / time.Duration(len(addresses)-i)
		if conn, err = dial(ctx, within, network, a); err == nil {
			break
		}
	}
	return conn, err
}

// Listen listens at an address of a network.
func Listen(network, address string) (net.Listener, error) {
	ctx := context.Background()
	addresses, err := literal(ctx, network, address)
	if err != nil {
		return nil, err
	}
	listed := begin()
	defer listed()
	c := net.ListenConfig{Control: noting(listed)}
	return c.Listen(ctx, network, addresses[0])
}

// literal returns the addresses that a name of a host in a TCP address stands for, since no fork
// shall wait for a name server; the address itself if its host is no name.
func literal(ctx context.Context, network, address string) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	if network != "tcp" || err != nil || host == "" {
		return []string{address}, nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{address}, nil
	}
	hosts, err := net.DefaultResolver.LookupHost(ctx, host)
	for i, h := range hosts {
		hosts[i] = net.JoinHostPort(h, port)
	}
	return hosts, err
}

// dial connects to an address that is no name. Its socket is listed before it is connected.
func dial(ctx context.Context, within time.Duration, network, address string) (net.Conn, error) {
	listed := begin()
	defer listed()
	d := net.Dialer{Timeout: within, Control: noting(listed)}
	return d.DialContext(ctx, network, address)
}

// noting returns the function that a dialer or listener calls with its socket: it lists the socket.
func noting(listed func()) func(network, address string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		note(raw)
		listed()
		return nil
	}
}
