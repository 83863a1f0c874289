package mpi

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/errs"
)

// A port is an abstract Unix socket at which a process listens from Open_port to Close_port. Its name is
// gormapy-port:HOST:NUMBER. So it ends with the process, and is nowhere in a file system.
//
// A published name is such a socket, too, which answers with the name of the port.

const portPrefix = "gormapy-port:"

// listeners are the ports, by name, or the published names, of this process.
type listeners struct {
	mu   sync.Mutex
	list map[string]*net.UnixListener
}

var ports, published listeners

// abstract returns the address of an abstract socket.
func abstract(name string) *net.UnixAddr { return &net.UnixAddr{Net: "unix", Name: "@" + name} }

// open listens at an abstract socket, under a name.
func (s *listeners) open(name string, at *net.UnixAddr) (*net.UnixListener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := net.ListenUnix("unix", at)
	if err != nil {
		return nil, err
	}
	if s.list == nil {
		s.list = map[string]*net.UnixListener{}
	}
	s.list[name] = l
	return l, nil
}

func (s *listeners) get(name string) *net.UnixListener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[name]
}

// close ends a listener, and reports whether there was one.
func (s *listeners) close(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.list[name]
	if l != nil {
		l.Close()
		delete(s.list, name)
	}
	return l != nil
}

// newPort opens a port.
func newPort() (string, *errs.Error) {
	if proc.seg.Nodes() > 1 || proc.eng.NetOnly() {
		return "", proc.unconnectable("Open_port")
	}
	var number [8]byte
	if _, err := rand.Read(number[:]); err != nil {
		return "", errs.New(errs.Other, "make the name of a port: %v", err)
	}
	key := hex.EncodeToString(number[:])
	name := portPrefix + hostWord() + ":" + key
	if _, err := ports.open(name, portAddress(key)); err != nil {
		return "", errs.New(errs.Other, "open a port: %v", err)
	}
	return name, nil
}

// unconnectable is the error of a call that connects jobs in one that can't be connected.
func (n *process) unconnectable(call string) *errs.Error {
	why := "it is on several nodes"
	if n.seg.Nodes() == 1 {
		why = "it uses a network inside the host (leave GORMAPY_FABRIC unset)"
	}
	return errs.New(errs.UnsupportedOperation, "%s: this job can't be connected to others, because %s: processes of different jobs communicate through the memory of one host", call, why)
}

func portAddress(key string) *net.UnixAddr { return abstract("gormapy-port-" + key) }

// hostWord returns the name of this host as it stands in names of ports.
func hostWord() string {
	return strings.Map(func(r rune) rune {
		if r == ':' || r <= ' ' {
			return '_'
		}
		return r
	}, ProcessorName())
}

// OpenPort opens a port and returns its name.
func OpenPort() (name string, code Code) {
	defer Contain(&code)
	if e := ready(); e != nil {
		return "", CodeOf(e)
	}
	name, e := newPort()
	return name, CodeOf(e)
}

// ClosePort closes a port.
func ClosePort(name string) (code Code) {
	defer Contain(&code)
	if e := ready(); e != nil {
		return CodeOf(e)
	}
	if !ports.close(name) {
		return classError(errs.Port, "Close_port: this process has no open port %q", name)
	}
	return 0
}

// acceptEvery is how often a thread that waits for a connection looks whether it has been given up.
const acceptEvery = 50 * time.Millisecond

// accept waits for a connection at a port of this process.
func (t *talk) accept(name string) *errs.Error {
	l := ports.get(name)
	if l == nil {
		return errs.New(errs.Port, "Accept: this process, the root, has no open port %q: MPI.Open_port opens one", name)
	}
	for {
		_ = l.SetDeadline(time.Now().Add(acceptEvery))
		conn, err := l.AcceptUnix()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if t.givenUp() {
				return errGivenUp("Accept")
			}
			continue
		case errors.Is(err, net.ErrClosed):
			return errs.New(errs.Port, "Accept: the port %q was closed", name)
		case err != nil:
			return errs.New(errs.Other, "Accept: %v", err)
		}
		if err := ownUser(conn); err != nil {
			conn.Close()
			continue
		}
		if !t.use(conn) {
			return errGivenUp("Accept")
		}
		return nil
	}
}

// connect connects to a port.
func (t *talk) connect(name string) *errs.Error {
	host, key, ok := strings.Cut(strings.TrimPrefix(name, portPrefix), ":")
	if !ok || !strings.HasPrefix(name, portPrefix) {
		return errs.New(errs.Port, "Connect: %q is not the name of a port: MPI.Open_port returns it in the process that accepts", name)
	}
	conn, err := net.DialUnix("unix", nil, portAddress(key))
	if err == nil {
		if err = ownUser(conn); err != nil {
			conn.Close()
		}
	}
	switch {
	case errors.Is(err, unix.ECONNREFUSED) && host != hostWord():
		return errs.New(errs.Port, "Connect: the port is one of host %s, and this is %s: jobs on different hosts can't be connected", host, hostWord())
	case errors.Is(err, unix.ECONNREFUSED):
		return errs.New(errs.Port, "Connect: there is no open port %q: the process that has opened it has closed it, or has ended", name)
	case err != nil:
		return errs.New(errs.Port, "Connect: %v", err)
	}
	if !t.use(conn) {
		return errGivenUp("Connect")
	}
	return nil
}

// answerTime is how long Lookup_name waits for the process that has published a name, and longestPort what it takes of it.
const (
	answerTime  = 10 * time.Second
	longestPort = 4096
)

// serviceAddress returns the socket of a published name. Each user has names of its own.
func serviceAddress(service string) *net.UnixAddr {
	sum := sha256.Sum256([]byte(service))
	return abstract(fmt.Sprintf("gormapy-name-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:16])))
}

// PublishName makes a port known by a name, on this host and to this user, until UnpublishName or the end of the process.
func PublishName(service, port string) (code Code) {
	defer Contain(&code)
	if e := ready(); e != nil {
		return CodeOf(e)
	}
	if port == "" || len(port) > longestPort {
		return classError(errs.Port, "Publish_name: the name of a port has 1 to %d characters, and this one has %d", longestPort, len(port))
	}
	l, err := published.open(service, serviceAddress(service))
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return classError(errs.Service, "Publish_name: the name %q is published already", service)
	case err != nil:
		return classError(errs.Other, "Publish_name: %v", err)
	}
	go func() {
		for {
			conn, err := l.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // no descriptors, for a while
				time.Sleep(acceptEvery)
				continue
			}
			if ownUser(conn) == nil {
				_, _ = io.WriteString(conn, port)
			}
			conn.Close()
		}
	}()
	return 0
}

// UnpublishName ends PublishName.
func UnpublishName(service string) (code Code) {
	defer Contain(&code)
	if e := ready(); e != nil {
		return CodeOf(e)
	}
	if !published.close(service) {
		return classError(errs.Service, "Unpublish_name: this process has not published the name %q", service)
	}
	return 0
}

// LookupName returns the port that is published by a name.
func LookupName(service string) (port string, code Code) {
	defer Contain(&code)
	if e := ready(); e != nil {
		return "", CodeOf(e)
	}
	conn, err := net.DialUnix("unix", nil, serviceAddress(service))
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(answerTime))
		var answer []byte
		if err = ownUser(conn); err == nil {
			if answer, err = io.ReadAll(io.LimitReader(conn, longestPort)); err == nil && len(answer) > 0 {
				return string(answer), 0
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "", classError(errs.Name, "Lookup_name: the process that has published the name %q does not answer", service)
		}
	}
	return "", classError(errs.Name, "Lookup_name: the name %q is not published on this host", service)
}
