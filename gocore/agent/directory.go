package agent

import "gormapy/gocore/fabric"

// directory is the directory of the agents' transport. Its ranks are the nodes.
type directory struct {
	node   int
	cards  [][]byte // by node; set before Start returns, but for the own
	secret []byte
}

var _ fabric.Directory = (*directory)(nil)

func (d *directory) Rank() int                 { return d.node }
func (d *directory) Size() int                 { return len(d.cards) }
func (d *directory) Secret() []byte            { return d.secret }
func (d *directory) Publish(card []byte) error { d.cards[d.node] = card; return nil }
func (d *directory) Card(node int) []byte      { return d.cards[node] }

// TCP needs no mail.

func (d *directory) Mail(int, []byte) error { return nil }
func (d *directory) Mailed(int) []byte      { return nil }
func (d *directory) Mails() uint32          { return 0 }
