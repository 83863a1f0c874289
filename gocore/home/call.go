package home

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"gormapy/gocore/seal"
)

// The variables by which a rank finds its home. They are consumed with the launcher's: a
// child of a rank is none.
const (
	envWhere   = "GORMAPY_JOB_HOME"
	envSecret  = "GORMAPY_JOB_HOME_SECRET"
	envRecord  = "GORMAPY_JOB_HOME_RECORD"
	envTimeout = "GORMAPY_JOB_HOME_TIMEOUT"
)

// Names are the names of the variables.
var Names = []string{envWhere, envSecret, envRecord, envTimeout}

// Where is where the mpiexec of a job listens.
type Where struct {
	Addresses []string // host:port
	Secret    []byte
	Record    bool // whether the ranks are to record what they do
	// Timeout is that of the job, 0 for none. mpiexec keeps it; the ranks do if they don't
	// reach mpiexec.
	Timeout time.Duration
}

// Variables returns the environment variables of w.
func (w *Where) Variables() []string {
	v := []string{envWhere + "=" + strings.Join(w.Addresses, " "), envSecret + "=" + hex.EncodeToString(w.Secret)}
	if w.Record {
		v = append(v, envRecord+"=1")
	}
	if w.Timeout > 0 {
		v = append(v, envTimeout+"="+w.Timeout.String())
	}
	return v
}

// Given takes the variables out of the environment. It returns nil if there are none.
func Given() *Where {
	w := &Where{Addresses: strings.Fields(os.Getenv(envWhere)), Record: os.Getenv(envRecord) != ""}
	w.Timeout, _ = time.ParseDuration(os.Getenv(envTimeout))
	w.Secret, _ = hex.DecodeString(os.Getenv(envSecret))
	for _, name := range Names {
		os.Unsetenv(name)
	}
	if len(w.Addresses) == 0 || len(w.Secret) == 0 {
		return nil
	}
	return w
}

// Call connects to the first of the addresses at which the mpiexec of this job answers. It
// tries them all at once:
//
//	each attempt                         hello ->, <- challenge with mpiexec's proof
//	the one that holds first             Hello and proof ->, <- an empty message; the others end
//
// So nobody but the mpiexec of this job is told which rank calls, and somebody else who answers, and then is
// silent, holds nothing up. An attempt that fails passes first on.
func (w *Where) Call(hello Hello) (*Link, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	results := make(chan error, len(w.Addresses))
	first := make(chan struct{}, 1) // held by the attempt that says which rank this is
	first <- struct{}{}
	found := make(chan *Link, 1)
	for _, address := range w.Addresses {
		go func() {
			l, err := w.again(ctx, address, hello, first)
			if err == nil {
				found <- l
			}
			results <- err
		}()
	}
	var errs []error
	for range w.Addresses {
		select {
		case l := <-found:
			return l, nil
		case err := <-results:
			if err == nil {
				return <-found, nil
			}
			errs = append(errs, err)
		}
	}
	return nil, errors.Join(errs...)
}

// evictedTime is how long a rank calls again whose connections end in their handshakes, because mpiexec has
// to do with many at once.
const evictedTime = 4 * time.Second

// again repeats an attempt whose connection mpiexec has evicted.
func (w *Where) again(ctx context.Context, address string, hello Hello, first chan struct{}) (*Link, error) {
	var end time.Time
	for pause := 5 * time.Millisecond; ; pause *= 2 {
		l, err := w.attempt(ctx, address, hello, first)
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			return l, err
		}
		if end.IsZero() {
			end = time.Now().Add(evictedTime)
		}
		if time.Now().Add(pause).After(end) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

func (w *Where) attempt(ctx context.Context, address string, hello Hello, first chan struct{}) (*Link, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(answerLimit))
	l := &Link{Hello: hello}
	err = func() (err error) {
		x, err := protocol.Call(conn, w.Secret)
		if err != nil {
			return err
		}
		select {
		case <-first:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() {
			if err != nil {
				first <- struct{}{}
			}
		}()
		body, err := json.Marshal(hello)
		if err != nil {
			return err // impossible: numbers and text
		}
		if err := x.Tell(conn, body); err != nil {
			return err
		}
		if _, err = x.Hear(conn); err != nil {
			return err
		}
		l.conn, err = seal.Secure(conn, x)
		return err
	}()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	_ = conn.SetDeadline(time.Time{})
	return l, nil
}
