package verbs

import (
	"encoding/binary"
	"fmt"

	"gormapy/gocore/fabric"
)

// States of the sender's queue pair in a mail.
const (
	mailInit = 1 + iota
	mailReady
	mailClosed
)

// mail is what ranks exchange by the directory to connect, see the package comment.
type mail struct {
	state  uint8
	link   uint8 // link layer of the port
	mtu    uint8 // enum
	lid    uint16
	qp     uint32
	psn    uint32
	yours  uint32 // the receiver's queue pair that this one is connected to
	gid    [16]byte
	reason string // of closed
}

const (
	mailMagic = 0x31766d67 // "gmv1"
	mailFixed = 40
	maxReason = fabric.MailBytes - mailFixed
)

func (m *mail) encode() []byte {
	b := make([]byte, mailFixed, fabric.MailBytes)
	order := binary.LittleEndian
	order.PutUint32(b, mailMagic)
	b[4], b[5], b[6] = m.state, m.link, m.mtu
	order.PutUint16(b[8:], m.lid)
	order.PutUint32(b[12:], m.qp)
	order.PutUint32(b[16:], m.psn)
	order.PutUint32(b[20:], m.yours)
	copy(b[24:], m.gid[:])
	return append(b, m.reason[:min(len(m.reason), maxReason)]...)
}

// decodeMail decodes what encode has made, and returns an error for anything else.
func decodeMail(b []byte) (mail, error) {
	order := binary.LittleEndian
	if len(b) < mailFixed || order.Uint32(b) != mailMagic {
		return mail{}, fmt.Errorf("a mail of %d bytes is not of this version's verbs transport", len(b))
	}
	m := mail{
		state: b[4], link: b[5], mtu: b[6], lid: order.Uint16(b[8:]), qp: order.Uint32(b[12:]), psn: order.Uint32(b[16:]),
		yours: order.Uint32(b[20:]), gid: [16]byte(b[24:]), reason: string(b[mailFixed:]),
	}
	switch {
	case m.state < mailInit || m.state > mailClosed:
		return mail{}, fmt.Errorf("a mail with state %d", m.state)
	case m.state != mailClosed && (m.qp == 0 || m.qp > 0xffffff || m.psn > 0xffffff || m.mtu < 1 || m.mtu > 5):
		return mail{}, fmt.Errorf("a mail with queue pair %d, sequence number %d and MTU %d", m.qp, m.psn, m.mtu)
	}
	return m, nil
}
