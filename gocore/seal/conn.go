package seal

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"gormapy/gocore/handshake"
)

const (
	lengthBytes = 4
	maxData     = 64 << 10
	// The buffer for what is received grows with the records.
	firstBuf   = 4 << 10
	longestBuf = lengthBytes + maxData + Overhead
)

// Conn is a connection on which everything is encrypted. One goroutine may read while others
// write. Deadlines are those of the connection below: a write that has not ended by its deadline
// ends writing.
type Conn struct {
	net.Conn

	writing sync.Mutex
	out     *Way
	record  []byte
	failed  error // a record was not written as a whole

	in      *Way
	buf     []byte // buf[r:w] has been received and not opened: one read may bring several records
	r, w    int
	data    []byte // opened, and not read yet
	refused error
}

// Secure returns the connection that x was the handshake of, on which everything is encrypted from now
// on.
func Secure(conn net.Conn, x *handshake.Exchange) (*Conn, error) {
	out, in, err := Ways(x)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: conn, out: out, in: in}, nil
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for n := 0; n < len(b); {
		if c.failed != nil {
			return n, c.failed
		}
		part := b[n:min(len(b), n+maxData)]
		c.record = binary.LittleEndian.AppendUint32(c.record[:0], uint32(len(part)))
		c.record = append(c.record, part...)
		c.record = append(c.record, make([]byte, Overhead)...)
		c.out.Seal(c.record, lengthBytes)
		if _, c.failed = c.Conn.Write(c.record); c.failed == nil {
			n += len(part)
		}
	}
	return len(b), c.failed
}

// Read implements net.Conn. A deadline that passes in the middle of a record loses nothing.
func (c *Conn) Read(b []byte) (int, error) {
	for len(c.data) == 0 && len(b) > 0 {
		if c.refused != nil {
			return 0, c.refused
		}
		if err := c.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.data)
	c.data = c.data[n:]
	return n, nil
}

// receive receives a record.
func (c *Conn) receive() error {
	if err := c.fill(lengthBytes); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(c.buf[c.r:])
	if n == 0 || n > maxData {
		c.refused = fmt.Errorf("a record of %d bytes, there are 1 to %d: %w", n, maxData, ErrForged)
		return c.refused
	}
	whole := lengthBytes + int(n) + Overhead
	if err := c.fill(whole); err != nil {
		return err
	}
	record := c.buf[c.r:][:whole:whole]
	c.r += whole
	if c.refused = c.in.Open(record, lengthBytes); c.refused == nil {
		c.data = record[lengthBytes:][:n]
	}
	return c.refused
}

// fill receives until n bytes of the record are there, and what has come behind them. All that was
// opened has been read.
func (c *Conn) fill(n int) error {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	switch room := len(c.buf) - c.r; {
	case len(c.buf) < n:
		longer := make([]byte, max(n, firstBuf, min(2*len(c.buf), longestBuf)))
		c.w = copy(longer, c.buf[c.r:c.w])
		c.buf, c.r = longer, 0
	case room < n:
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	for c.w-c.r < n {
		got, err := c.Conn.Read(c.buf[c.w:])
		c.w += got
		if err == io.EOF && c.w > c.r {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && c.w-c.r < n {
			return err
		}
	}
	return nil
}
