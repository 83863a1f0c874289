package home

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gormapy/gocore/handshake"
	"gormapy/gocore/seal"
)

// The kinds of messages, see the package comment.
const (
	Clock    = "clock"
	State    = "state"
	Record   = "record"
	Failed   = "failed"
	Peer     = "peer"
	Bye      = "bye"
	Describe = "describe"
	Stacks   = "stacks"
	Collect  = "collect"
	Heard    = "heard"
	End      = "end"

	Finalized = "finalized"
)

// Message is what one side says to the other.
type Message struct {
	Kind string `json:"kind"`
	Rank int    `json:"rank,omitempty"` // of Peer
	Code int    `json:"code,omitempty"` // an exit status; of Peer a wait status
	How  string `json:"how,omitempty"`  // of Failed: a clause, as "called Abort(7)"
	// Lines are those of State.
	Lines map[int][]string `json:"lines,omitempty"`
	// Times are of Clock the sender's and the answerer's, of Record what is to be added to
	// the rank's clock for mpiexec's, when the recording began and ended.
	Times [2]int64 `json:"times"`
	Data  []byte   `json:"-"`
}

// Hello says which rank a process is.
type Hello struct {
	Rank, Size, PID, Node int
	Host                  string
}

var protocol = &handshake.Protocol{Name: "home", Version: 3, Limits: []int{4 << 10, 0}, Keyed: true}

const (
	headLimit   = 1 << 20
	dataLimit   = 1 << 31
	answerLimit = 5 * time.Second  // bounds a handshake
	sendLimit   = 60 * time.Second // bounds the wait for room to send
)

// Link is a connection between a rank and mpiexec. Any number of threads may send, one
// receives.
type Link struct {
	Hello Hello // of the rank
	conn  *seal.Conn
	mu    sync.Mutex // of senders
}

// Send sends a message.
func (l *Link) Send(m *Message) error {
	head, err := json.Marshal(m)
	if err != nil {
		return err // impossible: numbers and text
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Data)))
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(sendLimit))
	if _, err := l.conn.Write(append(b, head...)); err != nil {
		return err
	}
	_, err = l.conn.Write(m.Data)
	return err
}

// Receive waits for a message.
func (l *Link) Receive() (*Message, error) {
	var sizes [8]byte
	if _, err := io.ReadFull(l.conn, sizes[:]); err != nil {
		return nil, err
	}
	head, data := binary.LittleEndian.Uint32(sizes[:]), binary.LittleEndian.Uint32(sizes[4:])
	if head > headLimit || data > dataLimit {
		return nil, fmt.Errorf("a message of %d and %d bytes: the limits are %d and %d", head, data, headLimit, dataLimit)
	}
	text := make([]byte, head)
	if _, err := io.ReadFull(l.conn, text); err != nil {
		return nil, err
	}
	m := &Message{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	m.Data = make([]byte, data)
	_, err := io.ReadFull(l.conn, m.Data)
	return m, err
}

// ended returns when the connection ended, after Receive has returned err. Of ranks that end shortly after one another,
// the kernel knows which ended first; this process may learn of both at the same time.
func (l *Link) ended(err error) time.Time {
	now := time.Now()
	conn, ok := l.conn.Conn.(syscall.Conn)
	if !ok || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return now
	}
	raw, e := conn.SyscallConn()
	if e != nil {
		return now
	}
	_ = raw.Control(func(fd uintptr) {
		if info, e := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); e == nil {
			now = now.Add(-time.Duration(info.Last_ack_recv) * time.Millisecond) // the last segment was the end
		}
	})
	return now
}

// Close ends the connection.
func (l *Link) Close() { _ = l.conn.Close() }
