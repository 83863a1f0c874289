package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"gormapy/gocore/errs"
)

// talk is what the roots of two groups that connect tell each other, over a socket:
//
//	both:  the card of their group
//	(each root tells its group the other card; all members connect to those of the other group)
//	both:  whether that has succeeded in their group
//
// A frame is a class (0: no error), a length and that many bytes: a card, or the text of an error. Only if both have
// succeeded do the groups have a communicator. A root that is interrupted, or dies, closes the socket, which the other one takes for a
// failure. (That one of them has the other's second frame and the other is interrupted before it has its, no protocol can
// avoid.)
type talk struct {
	mu   sync.Mutex
	conn net.Conn // nil: not connected yet
	over bool     // given up
}

// frameLimit bounds a frame: a card of more processes than can be connected.
const frameLimit = 1 << 20

// use makes the talk go over conn. It returns false if the talk has been given up.
func (t *talk) use(conn net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		conn.Close()
		return false
	}
	t.conn = conn
	return true
}

// giveUp ends the talk, also while another goroutine is in exchange.
func (t *talk) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over && t.conn != nil {
		t.conn.Close()
	}
	t.over = true
}

func (t *talk) givenUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// errGivenUp is the error of a call that the program has given up.
func errGivenUp(call string) *errs.Error { return errs.New(errs.Other, "%s was given up", call) }

// exchange sends a frame and receives one. An error of the other side is an error.
func (t *talk) exchange(failed *errs.Error, payload []byte) (answer []byte, e *errs.Error) {
	class := int64(0)
	if failed != nil {
		class, payload = int64(failed.Class), []byte(failed.Error())
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(class))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(payload)))
	_, err := t.conn.Write(append(head, payload...))
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return nil, lostTalk(err)
	}
	if _, err := io.ReadFull(t.conn, head); err != nil {
		return nil, lostTalk(err)
	}
	n := binary.LittleEndian.Uint32(head[8:])
	if n > frameLimit {
		return nil, errs.New(errs.Other, "what connects is no process of gormapy")
	}
	answer = make([]byte, n)
	if _, err := io.ReadFull(t.conn, answer); err != nil {
		return nil, lostTalk(err)
	}
	if class := errs.Class(binary.LittleEndian.Uint64(head)); class != 0 {
		return nil, errs.New(class, "the other group could not connect: %s", answer)
	}
	return answer, nil
}

func lostTalk(err error) *errs.Error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return errs.New(errs.ProcFailed, "the root of the other group has given up, or has ended")
	}
	return errs.New(errs.Other, "the connection to the root of the other group failed: %v", err)
}

// wordsToBytes returns words as a frame.
func wordsToBytes(words []int64) (frame []byte) {
	for _, w := range words {
		frame = binary.LittleEndian.AppendUint64(frame, uint64(w))
	}
	return frame
}

// bytesToWords is the inverse. A rest of less than a word is left out.
func bytesToWords(frame []byte) (words []int64) {
	for ; len(frame) >= 8; frame = frame[8:] {
		words = append(words, int64(binary.LittleEndian.Uint64(frame)))
	}
	return words
}

// ownUser returns an error if the process at the other end of a Unix socket is another user's.
func ownUser(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return e
	}
	if err == nil && int(cred.Uid) != os.Geteuid() {
		err = fmt.Errorf("process %d belongs to another user (%d)", cred.Pid, cred.Uid)
	}
	return err
}
