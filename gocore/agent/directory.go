package agent

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"
	"time"

	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
)

// directory is the directory of the agents' transport. Agents have the numbers that their
// ranks have in the job.
type directory struct {
	rank   int
	cards  [][]byte // by rank; nil for ranks that are no agents
	secret []byte
}

var _ fabric.Directory = (*directory)(nil)

func newDirectory(seg *job.Segment, rank int) *directory {
	m := hmac.New(sha256.New, seg.Directory(rank).Secret())
	m.Write([]byte("gormapy agents"))
	return &directory{rank: rank, cards: make([][]byte, len(seg.Ranks)), secret: m.Sum(nil)}
}

func (d *directory) Rank() int                 { return d.rank }
func (d *directory) Size() int                 { return len(d.cards) }
func (d *directory) Hosts() int                { return 0 } // Options say where it listens
func (d *directory) Secret() []byte            { return d.secret }
func (d *directory) Publish(card []byte) error { d.cards[d.rank] = card; return nil }
func (d *directory) Card(rank int) []byte      { return d.cards[rank] }

// TCP needs no mail, and tries all addresses.

func (d *directory) OnNode() int                  { return 0 }
func (d *directory) Address(time.Time) netip.Addr { return netip.Addr{} }

func (d *directory) Mail(int, []byte) error { return nil }
func (d *directory) Mailed(int) []byte      { return nil }
func (d *directory) Mails() uint32          { return 0 }
