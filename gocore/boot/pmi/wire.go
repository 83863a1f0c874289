package pmi

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// wire is the connection to the process manager. Its descriptor and system calls are
// blocking: it is used before the rest of the process runs, and an inherited socket may
// be shared with a wrapper program.
type wire struct {
	fd      int
	mu      sync.Mutex // orders sends and close
	closed  bool
	pending []byte // received, not yet returned
}

// inherit returns the wire for the socket that PMI_FD names. Programs that this process
// starts must not inherit it: the manager would take them for the rank.
func inherit(number string) (*wire, error) {
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 0 {
		return nil, fmt.Errorf("PMI_FD is %q, not a descriptor", number)
	}
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil, fmt.Errorf("PMI_FD is %d, but that is no open socket (%w): PMI_* variables of another process, or a wrapper that closes descriptors", fd, err)
	}
	unix.CloseOnExec(fd)
	return &wire{fd: fd}, nil
}

// Withhold marks the socket of PMI_FD close-on-exec if its peer is the process with the id
// managerPID. It is for a rank that does not use the connection itself: a child must not be taken
// for the rank.
func Withhold(managerPID int) {
	fd, err := strconv.Atoi(os.Getenv("PMI_FD"))
	if err != nil || fd < 0 {
		return
	}
	// A wrapper may have closed it, and the number may be another file's by now.
	if peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && int(peer.Pid) == managerPID {
		unix.CloseOnExec(fd)
	}
}

// dial connects to the address that PMI_PORT names.
func dial(address string) (*wire, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to the process manager at PMI_PORT=%s: %w", address, err)
	}
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return nil, fmt.Errorf("connect to the process manager at PMI_PORT=%s: %w", address, err)
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return &wire{fd: fd}, nil
}

var (
	// errClosed reports the end of the manager, or of the job.
	errClosed    = errors.New("the process manager closed the connection")
	errFinalized = errors.New("this rank has said that it is done")
)

// send writes one line.
func (w *wire) send(line string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed { // the number may be another file's by now
		return errFinalized
	}
	for b := []byte(line + "\n"); len(b) > 0; {
		// Not write(2): a closed socket is an error, never a SIGPIPE.
		n, err := unix.SendmsgN(w.fd, b, nil, nil, unix.MSG_NOSIGNAL)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			w.poll(unix.POLLOUT)
		case err == unix.EPIPE || err == unix.ECONNRESET:
			return errClosed
		case err != nil:
			return fmt.Errorf("send to the process manager: %w", err)
		default:
			b = b[n:]
		}
	}
	return nil
}

// receive returns the next line without its end.
func (w *wire) receive() (string, error) {
	buf := make([]byte, 4096)
	for {
		if i := bytes.IndexByte(w.pending, '\n'); i >= 0 {
			line := string(w.pending[:i])
			w.pending = w.pending[i+1:]
			return line, nil
		}
		n, err := unix.Read(w.fd, buf)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			w.poll(unix.POLLIN)
		case err == unix.ECONNRESET || err == nil && n == 0:
			return "", errClosed
		case err != nil:
			return "", fmt.Errorf("receive from the process manager: %w", err)
		default:
			w.pending = append(w.pending, buf[:n]...)
		}
	}
}

// poll waits for a socket that another process made non-blocking.
func (w *wire) poll(events int16) {
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(w.fd), Events: events}}, -1)
}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		unix.Close(w.fd)
	}
}

// words is a parsed line.
type words map[string]string

// parse reads "key=value key=value"; values may contain '='.
func parse(line string) words {
	out := words{}
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		out[key] = value
	}
	return out
}

// number returns the value of key as an integer.
func (w words) number(key string) (int, error) {
	n, err := strconv.Atoi(w[key])
	if err != nil {
		return 0, fmt.Errorf("the process manager's answer has %s=%q, not a number", key, w[key])
	}
	return n, nil
}
