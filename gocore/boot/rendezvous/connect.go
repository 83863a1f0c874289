package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gormapy/gocore/handshake"
	"gormapy/gocore/seal"
)

const (
	// answerLimit is the time for rank 0 to accept a connection, and then to answer it.
	answerLimit = 3 * time.Second
	// pause is the time between two attempts at all candidates.
	pause = 30 * time.Millisecond
)

// refusedError is what rank 0 of this job has said: trying again does not help.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// caller makes the connection of a rank that is not 0.
type caller struct {
	where  place
	secret []byte
	card   card
	end    time.Time
	// talk is held by the attempt that says which rank this is: one that has said so has
	// to hear the verdict before another may.
	talk   sync.Mutex
	joined bool // under talk: an attempt has
}

// call tries all candidates until rank 0 has accepted this rank, or the time is over.
func (c *caller) call() (net.Conn, error) {
	var errs []error
	for {
		conn, failed := c.round()
		if conn != nil {
			return conn, nil
		}
		// That the time is over in the last round tells less than the round before.
		if errs == nil || !slices.ContainsFunc(failed, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }) {
			errs = failed
		}
		var refused *refusedError
		for _, err := range errs {
			if errors.As(err, &refused) {
				return nil, refused
			}
		}
		if time.Now().After(c.end) {
			return nil, fmt.Errorf("no rank 0 of this job answers at %s (%s is the time-out in seconds): %w", c.where, Timeout.Name, errors.Join(errs...))
		}
		time.Sleep(pause)
	}
}

// round tries all hosts at once, and the ports of each in turn. It returns what is worth
// telling of the failures of each host.
func (c *caller) round() (net.Conn, []error) {
	ctx, cancel := context.WithDeadline(context.Background(), c.end)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, len(c.where.hosts))
	for _, host := range c.where.hosts {
		go func() {
			conn, err := c.host(ctx, host)
			results <- result{conn, err}
		}()
	}
	var found net.Conn
	var errs []error
	for range c.where.hosts {
		switch r := <-results; {
		case r.conn != nil:
			found = r.conn // only one can be: see shake
			cancel()
		default:
			errs = append(errs, r.err)
		}
	}
	return found, errs
}

func (c *caller) host(ctx context.Context, host string) (net.Conn, error) {
	var told error
	for _, port := range c.where.ports {
		conn, err := c.attempt(ctx, net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return conn, nil
		}
		if errors.As(err, new(*refusedError)) {
			return nil, err
		}
		// That somebody listens and is another tells more than that nobody does.
		if told == nil || strings.Contains(told.Error(), "connection refused") {
			told = err
		}
		if errors.As(err, new(*net.DNSError)) {
			break
		}
	}
	return nil, told
}

// attempt connects to an address and joins.
func (c *caller) attempt(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: answerLimit, KeepAliveConfig: keepAlive}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	secured, err := c.shake(ctx, conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		if errors.As(err, new(*refusedError)) {
			return nil, err
		}
		if over := ctx.Err(); over != nil { // its end has closed the connection
			return nil, fmt.Errorf("%s: no answer until the end: %w", address, over)
		}
		return nil, fmt.Errorf("%s: %w", address, foreignJob(err))
	}
	return secured, nil
}

// shake has the handshake, and returns the connection as it is to be used. Only one attempt gets as
// far as to be this rank's. Before it may, what answers has proved that it knows the secret (Call):
//
//	each attempt, at once:     hello ->, <- challenge with rank 0's proof
//	the one that holds talk:   card and proof ->, <- verdict
//
// So another program that answers, and then is silent, holds up neither the others nor this one.
func (c *caller) shake(ctx context.Context, conn net.Conn) (net.Conn, error) {
	_ = conn.SetDeadline(time.Now().Add(answerLimit))
	x, err := protocol.Call(conn, c.secret)
	if err != nil {
		return nil, err
	}
	c.talk.Lock()
	defer c.talk.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.joined {
		return nil, errJoined
	}
	// It knows the secret: it is rank 0, and may be slow.
	_ = conn.SetDeadline(c.end.Add(answerLimit))
	if err := x.Tell(conn, c.card.marshal()); err != nil {
		return nil, err
	}
	verdict, err := x.Hear(conn)
	if err != nil {
		return nil, err
	}
	if len(verdict) > 0 {
		return nil, &refusedError{string(verdict)}
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	secured, err := seal.Secure(conn, x)
	c.joined = err == nil
	return secured, err
}

var errJoined = errors.New("this rank has joined by another address")

// foreignJob says an error of the handshake in terms of jobs.
func foreignJob(err error) error {
	switch {
	case errors.Is(err, handshake.ErrUnknown), errors.Is(err, handshake.ErrProof):
		return errors.New("gormapy listens there for another job, or with another GORMAPY_SECRET")
	case errors.Is(err, handshake.ErrForeign):
		return errors.New("another program listens there")
	}
	return err
}
