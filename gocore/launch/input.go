package launch

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// isTerminal reports whether fd is a terminal.
func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// copyTerminal passes the terminal's input to rank 0, whose process group is never the
// terminal's foreground one, so that it can't read itself. It reads only while the
// launcher is in the foreground: a background job must not take the shell's input, nor
// be stopped for trying. It returns at the end of the input, or when rank 0 has closed
// its end, and closes to.
func copyTerminal(terminal int, to *os.File) {
	defer to.Close()
	buf := make([]byte, 4096)
	for {
		poll := []unix.PollFd{{Fd: int32(terminal), Events: unix.POLLIN}, {Fd: int32(to.Fd())}}
		if _, err := unix.Poll(poll, 200); err != nil && err != unix.EINTR {
			return
		}
		if poll[1].Revents&unix.POLLERR != 0 { // further input is for the shell
			return
		}
		if poll[0].Revents == 0 {
			continue
		}
		if inBackground(terminal) {
			time.Sleep(200 * time.Millisecond)
			continue
		}
		n, err := unix.Read(terminal, buf)
		switch {
		case err == unix.EINTR, err == unix.EAGAIN:
		case err == unix.EIO && inBackground(terminal): // became one just now
		case err != nil || n == 0:
			return
		default:
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
}

func inBackground(terminal int) bool {
	front, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP)
	return err == nil && front != unix.Getpgrp()
}
