package job

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"gormapy/gocore/sys/atom"
)

// Directory lets the transports of different ranks exchange addresses before they can
// communicate: it has a card of each rank, and a slot for mail from each rank to each
// (fabric.Directory). It is part of the job segment. The agents carry it to the other
// nodes, see nodes.go.
//
// # Protocol
//
// A card is written once: its bytes, then its length, which is 0 until then.
//
// The sequence number of a slot is odd while its sender writes. Then the sender makes
// it even, adds 1 to the receiver's Mails, and rings the receiver's doorbells. The
// receiver copies the mail if the number is even and one that it has not seen, and
// takes the copy only if the number is still the same; else the mail was overwritten,
// and Mails will grow. A sender that dies while it writes leaves the number odd, and
// the receiver never takes that mail.
type Directory struct {
	seg  *Segment
	rank int
	seen []uint32 // by sender: the sequence number of the last mail taken
}

type card struct {
	n    uint32
	_    uint32
	data [480]byte
	_    [24]byte
}

type mail struct {
	seq  uint32
	n    uint32
	data [232]byte
	_    [16]byte
}

// Directory returns the directory of rank. It is not safe for concurrent use.
func (s *Segment) Directory(rank int) *Directory {
	return &Directory{seg: s, rank: rank, seen: make([]uint32, len(s.Ranks))}
}

// Rank returns this rank.
func (d *Directory) Rank() int { return d.rank }

// Size returns the number of ranks.
func (d *Directory) Size() int { return len(d.seg.Ranks) }

// Hosts returns the number of hosts of the job.
func (d *Directory) Hosts() int { return int(d.seg.Head.Hosts) }

// OnNode returns the number of this rank among those of its node.
func (d *Directory) OnNode() int { return slices.Index(d.seg.RanksOf(d.seg.NodeOf(d.rank)), d.rank) }

// Address waits until the node has found by which of its addresses it and other nodes reach each
// other, or until end. It returns no valid address if that is not known.
func (d *Directory) Address(end time.Time) netip.Addr {
	for {
		a := d.seg.Address()
		if a.IsValid() || time.Now().After(end) {
			return a
		}
		time.Sleep(time.Millisecond)
	}
}

// Secret returns bytes that only the ranks of this job know.
func (d *Directory) Secret() []byte { return d.seg.Head.Secret[:] }

// Publish makes card visible to all ranks.
func (d *Directory) Publish(card []byte) error {
	c := &d.seg.Ranks[d.rank].Card
	if len(card) == 0 || len(card) > len(c.data) {
		return fmt.Errorf("publish a card of %d bytes: it has 1 to %d", len(card), len(c.data))
	}
	copy(c.data[:], card)
	atom.Store32(&c.n, uint32(len(card)))
	d.seg.RingAgent()
	return nil
}

// Card returns the card that rank has published, nil if it has not yet.
func (d *Directory) Card(rank int) []byte {
	c := &d.seg.Ranks[rank].Card
	n := int(atom.Load32(&c.n))
	if n == 0 || n > len(c.data) {
		return nil
	}
	return bytes.Clone(c.data[:n])
}

func (d *Directory) slot(from, to int) *mail {
	size := len(d.seg.Ranks)
	off := d.seg.Head.MailOff + uint64(to*size+from)*uint64(unsafe.Sizeof(mail{}))
	return (*mail)(unsafe.Pointer(&d.seg.shm.Mem[off]))
}

// Mail stores msg for rank to, in place of any earlier mail.
func (d *Directory) Mail(to int, msg []byte) error {
	m := d.slot(d.rank, to)
	if len(msg) > len(m.data) {
		return fmt.Errorf("mail of %d bytes: it has at most %d", len(msg), len(m.data))
	}
	m.write(msg)
	atom.Add32(&d.seg.Ranks[to].Mails, 1)
	d.seg.Ranks[to].Ring()
	d.seg.Ranks[to].RingProgress()
	if !d.seg.Local(to) {
		d.seg.RingAgent()
	}
	return nil
}

// write stores msg. The sender calls it.
func (m *mail) write(msg []byte) {
	seq := atom.Load32(&m.seq) | 1
	// This is not a store, since the bytes written next could be seen before a store.
	// The exchange is ordered with the receiver's compare-and-swap of the same word,
	// and so are the bytes.
	atom.Swap32(&m.seq, seq)
	m.n = uint32(copy(m.data[:], msg))
	atom.Store32(&m.seq, seq+1)
}

// read returns a copy of the mail and its number, if the number is not seen and the mail
// is not being overwritten. The receiver calls it.
func (m *mail) read(seen uint32) (msg []byte, seq uint32, ok bool) {
	seq = atom.Load32(&m.seq)
	if seq&1 != 0 || seq == seen {
		return nil, 0, false
	}
	msg = bytes.Clone(m.data[:min(int(m.n), len(m.data))])
	// This is not a load, which could be made before those of the bytes.
	return msg, seq, atom.CAS32(&m.seq, seq, seq)
}

// Mailed returns the last mail from rank from, nil if there is none since the previous
// call.
func (d *Directory) Mailed(from int) []byte {
	msg, seq, ok := d.slot(from, d.rank).read(d.seen[from])
	if !ok {
		return nil
	}
	d.seen[from] = seq
	return msg
}

// Mails returns how many mails have been stored for this rank.
func (d *Directory) Mails() uint32 { return atom.Load32(&d.seg.Ranks[d.rank].Mails) }
