package job

import (
	"bytes"
	"fmt"
	"unsafe"

	"gormapy/gocore/sys/atom"
)

// Directory is what a rank's transports know of the others before they can
// communicate: a card of each rank, and a slot for mail from each rank to each
// (fabric.Directory). It lies in the job segment, so it reaches one host.
//
// # Protocol
//
// A card is written once: its bytes, then its length, which is 0 until then.
//
// A slot's sequence number is odd while its sender writes. The sender makes it
// even, adds 1 to the receiver's Mails, and rings its progress engine. The
// receiver copies what it finds at an even number that it has not seen, and
// takes it only if the number is still the same; else it was overwritten, and
// Mails will grow. A sender that dies while it writes leaves the number odd:
// its mail was never there.
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

// Directory is that of one rank. It is for one thread at a time.
func (s *Segment) Directory(rank int) *Directory {
	return &Directory{seg: s, rank: rank, seen: make([]uint32, len(s.Ranks))}
}

// Rank is this rank, Size how many there are.
func (d *Directory) Rank() int { return d.rank }

// Size is for Rank.
func (d *Directory) Size() int { return len(d.seg.Ranks) }

// Secret is known to the ranks of this job and to nobody else.
func (d *Directory) Secret() []byte { return d.seg.Head.Secret[:] }

// Publish makes card known to all ranks.
func (d *Directory) Publish(card []byte) error {
	c := &d.seg.Ranks[d.rank].Card
	if len(card) == 0 || len(card) > len(c.data) {
		return fmt.Errorf("publish a card of %d bytes: it has 1 to %d", len(card), len(c.data))
	}
	copy(c.data[:], card)
	atom.Store32(&c.n, uint32(len(card)))
	return nil
}

// Card is what rank has published, nil as long as it has not.
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

// Mail leaves msg for rank to, in place of any earlier one.
func (d *Directory) Mail(to int, msg []byte) error {
	m := d.slot(d.rank, to)
	if len(msg) > len(m.data) {
		return fmt.Errorf("mail of %d bytes: it has at most %d", len(msg), len(m.data))
	}
	m.write(msg)
	atom.Add32(&d.seg.Ranks[to].Mails, 1)
	d.seg.Ranks[to].Ring()
	d.seg.Ranks[to].RingProgress()
	return nil
}

// write is the sender's side.
func (m *mail) write(msg []byte) {
	seq := atom.Load32(&m.seq) | 1
	// Not a store: what is written next could be seen before it. This comes before or
	// after the receiver's exchange of the same word, and so do the bytes.
	atom.Swap32(&m.seq, seq)
	m.n = uint32(copy(m.data[:], msg))
	atom.Store32(&m.seq, seq+1)
}

// read is the receiver's: a copy and its number, if there is one other than seen that
// is not being overwritten.
func (m *mail) read(seen uint32) (msg []byte, seq uint32, ok bool) {
	seq = atom.Load32(&m.seq)
	if seq&1 != 0 || seq == seen {
		return nil, 0, false
	}
	msg = bytes.Clone(m.data[:min(int(m.n), len(m.data))])
	// Not a load: that could be made before those of the bytes.
	return msg, seq, atom.CAS32(&m.seq, seq, seq)
}

// Mailed is what rank from has left since it was last asked for, nil if nothing.
func (d *Directory) Mailed(from int) []byte {
	msg, seq, ok := d.slot(from, d.rank).read(d.seen[from])
	if !ok {
		return nil
	}
	d.seen[from] = seq
	return msg
}

// Mails counts what has been left here.
func (d *Directory) Mails() uint32 { return atom.Load32(&d.seg.Ranks[d.rank].Mails) }
