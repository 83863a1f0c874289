package fabrictest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"gormapy/gocore/fabric"
)

// Directory is a fabric.Directory in the memory of one process.
type Directory struct {
	rank int
	all  *store
}

type store struct {
	mu     sync.Mutex
	size   int
	secret []byte
	cards  [][]byte
	mail   map[[2]int][]byte // by sender and receiver
	mails  []uint32
}

var _ fabric.Directory = (*Directory)(nil)

// Directories makes the directories of n ranks.
func Directories(n int) []*Directory {
	all := &store{size: n, secret: make([]byte, 32), cards: make([][]byte, n), mail: map[[2]int][]byte{}, mails: make([]uint32, n)}
	_, _ = rand.Read(all.secret) // it never fails
	dirs := make([]*Directory, n)
	for r := range dirs {
		dirs[r] = &Directory{rank: r, all: all}
	}
	return dirs
}

// Rank implements fabric.Directory.
func (d *Directory) Rank() int { return d.rank }

// Size implements fabric.Directory.
func (d *Directory) Size() int { return d.all.size }

// Hosts implements fabric.Directory.
func (d *Directory) Hosts() int { return 1 }

// OnNode implements fabric.Directory.
func (d *Directory) OnNode() int { return d.rank }

// Address implements fabric.Directory.
func (d *Directory) Address(time.Time) netip.Addr { return netip.Addr{} }

// Secret implements fabric.Directory.
func (d *Directory) Secret() []byte { return slices.Clone(d.all.secret) }

// Publish implements fabric.Directory.
func (d *Directory) Publish(card []byte) error {
	if len(card) == 0 || len(card) > fabric.CardBytes {
		return fmt.Errorf("publish a card of %d bytes: it has 1 to %d", len(card), fabric.CardBytes)
	}
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	if d.all.cards[d.rank] != nil {
		return fmt.Errorf("rank %d publishes a second card", d.rank)
	}
	d.all.cards[d.rank] = bytes.Clone(card)
	return nil
}

// Card implements fabric.Directory.
func (d *Directory) Card(rank int) []byte {
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	return bytes.Clone(d.all.cards[rank])
}

// Mail implements fabric.Directory.
func (d *Directory) Mail(to int, msg []byte) error {
	if len(msg) > fabric.MailBytes {
		return fmt.Errorf("mail of %d bytes: it has at most %d", len(msg), fabric.MailBytes)
	}
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	d.all.mail[[2]int{d.rank, to}] = append([]byte{}, msg...)
	d.all.mails[to]++
	return nil
}

// Mailed implements fabric.Directory.
func (d *Directory) Mailed(from int) []byte {
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	msg := d.all.mail[[2]int{from, d.rank}]
	delete(d.all.mail, [2]int{from, d.rank})
	return msg
}

// Mails implements fabric.Directory.
func (d *Directory) Mails() uint32 {
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	return d.all.mails[d.rank]
}
