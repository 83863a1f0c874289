package pmi

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// maxRequest bounds one line of a rank, maxBlock a request of many lines
	// (mcmd=spawn … endcmd).
	maxRequest = 8 << 10
	maxBlock   = 64 << 10
	// maxBacklog is how many messages of a rank that has ended are read: more than a
	// socket holds. Its children may continue to send for ever.
	maxBacklog = 1 << 10
)

// rankConn is the server's end of one rank's connection. The server's mutex guards all
// fields.
type rankConn struct {
	server *Server
	rank   int
	fd     int // -1 before connect and once it is closed
	holder int // the process that is the rank; 0 while there is none

	pending []byte // the beginning of a line
	block   int    // bytes of an mcmd that has begun; 0 for none

	conduct Conduct
	stored  int  // bytes that the server stores for it
	noted   bool // a Refused was reported
	broken  bool // the connection was lost, or the rank does not speak PMI-1
	ended   bool // its process has ended
}

// connect makes the socket pair.
func (c *rankConn) connect() (client int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socketpair", err)
	}
	if err := unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		unix.Close(pair[0])
		unix.Close(pair[1])
		return -1, os.NewSyscallError("setsockopt", err)
	}
	c.fd = pair[0]
	return pair[1], nil
}

func (c *rankConn) open() bool { return c.fd >= 0 }

// close closes the connection. The rank can still read answers that were sent.
func (c *rankConn) close() {
	if c.open() {
		unix.Close(c.fd)
		c.fd = -1
	}
}

// receive handles one received message, and reports whether there may be more.
func (c *rankConn) receive() bool {
	var buf [4096]byte
	var oob [64]byte
	n, oobn, _, _, err := unix.Recvmsg(c.fd, buf[:], oob[:], unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	switch {
	case err == unix.EINTR:
		return true
	case err == unix.EAGAIN:
		return false
	case err != nil || n == 0:
		// A living rank may have closed it and continue without, as after finalize.
		c.broken = !c.conduct.Finalized
		c.close()
		c.leaveBarrier()
		c.server.checkStuck()
		return false
	}
	switch pid := sender(oob[:oobn]); {
	case pid != 0 && c.holder != 0 && pid != c.holder:
		c.answerChild(pid, buf[:n])
	default:
		c.feed(buf[:n], pid)
	}
	return c.open()
}

// sender returns the process that sent a message, by the kernel's credentials, or 0 if
// the kernel can't name it (it is in another branch of PID namespaces).
func sender(oob []byte) int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0
	}
	pid := 0
	for i := range messages {
		if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			pid = int(cred.Pid)
		} else if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			for _, fd := range fds { // descriptors are not part of the protocol
				unix.Close(fd)
			}
		}
	}
	return pid
}

// feed appends b to the pending input and handles its complete lines.
func (c *rankConn) feed(b []byte, pid int) {
	c.pending = append(c.pending, b...)
	for c.open() {
		end := bytes.IndexByte(c.pending, '\n')
		if end < 0 {
			if len(c.pending) > maxRequest {
				c.abandon(fmt.Sprintf("sent %d bytes without an end of line, which is no PMI-1 request", len(c.pending)))
			}
			return
		}
		line := string(c.pending[:end])
		c.pending = c.pending[end+1:]
		switch {
		case len(line) > maxRequest:
			c.abandon(fmt.Sprintf("sent a line of %d bytes, which is no PMI-1 request", len(line)))
		case c.block > 0:
			if c.block += len(line) + 1; c.block > maxBlock {
				c.abandon(fmt.Sprintf("sent a request of more than %d bytes", maxBlock))
			} else if line == "endcmd" {
				c.block = 0
				c.server.handle(c, "cmd=spawn")
			}
		case line == "mcmd=spawn":
			c.block = 1
		default:
			if c.holder == 0 && parse(line)["cmd"] == "init" {
				c.holder = pid
			}
			c.server.handle(c, line)
		}
	}
}

// answerChild handles a message of a process that inherited the connection of a rank. It
// answers only init: the rank would read the answers to the child's last requests. It
// does not answer while the rank waits in a barrier, since the rank would take the
// answer for its own.
func (c *rankConn) answerChild(pid int, message []byte) {
	c.note(fmt.Sprintf("is process %d, and process %d can't be it too: a program that mpiexec starts can be one MPI process only", c.holder, pid))
	if !c.conduct.Waits && bytes.HasPrefix(message, []byte("cmd=init ")) {
		c.answer("cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1 msg=rank_is_taken")
	}
}

// answer sends a line.
func (c *rankConn) answer(line string) {
	if !c.open() {
		return
	}
	b := []byte(line + "\n")
	n, err := unix.SendmsgN(c.fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	if err == nil && n == len(b) {
		return
	}
	if err != nil && err != unix.EAGAIN { // the rank closed it, or ended
		return
	}
	c.abandon("asks without reading the answers")
}

// abandon ends the connection of a rank that does not speak PMI-1.
func (c *rankConn) abandon(why string) {
	c.note(why)
	c.broken = true
	if c.open() {
		_, _ = unix.SendmsgN(c.fd, []byte("cmd=error rc=-1 msg=no_pmi1\n"), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		c.close()
	}
	c.leaveBarrier()
	c.server.checkStuck()
}

func (c *rankConn) leaveBarrier() {
	if c.conduct.Waits {
		c.conduct.Waits = false
		c.server.inside--
	}
}

// note reports the rank's first error.
func (c *rankConn) note(text string) {
	if !c.noted {
		c.noted = true
		c.server.report <- Report{Kind: Refused, Rank: c.rank, Text: text}
	}
}
