package coll

import "gormapy/gocore/p2p"

// barrierByNodes starts a barrier in which each node's leader waits for the node's ranks, then
// the leaders synchronise by a dissemination barrier, and then release their nodes.
func (c *Comm) barrierByNodes() *Op {
	d, none := c.nodes, raw(nil, 0)
	lead, near, n := d.leader(d.mine), d.near(), len(d.ranks)
	if c.Rank != lead {
		return c.stages(func(o *Op) {
			o.recv(none, lead)
			o.send(none, lead)
		})
	}
	steps := []func(o *Op){func(o *Op) {
		c.others(near, 0, func(_, r int) { o.recv(none, r) })
	}}
	for k := 1; k < n; k <<= 1 {
		steps = append(steps, func(o *Op) {
			o.recv(none, d.leader((d.mine-k+n)%n))
			o.send(none, d.leader((d.mine+k)%n))
		})
	}
	return c.stages(append(steps, func(o *Op) {
		c.others(near, 0, func(_, r int) { o.send(none, r) })
	})...)
}

// allgatherShort is up to how many bytes, of all ranks, the ranks of a node get from their
// leader in one message: what the leader copies for them costs less than messages.
const allgatherShort = 16 << 10

func (v *Vec) bytes() (n int) {
	for _, count := range v.Counts {
		n += count * v.Type.Size()
	}
	return n
}

// allgatherShortByNodes is allgatherByNodes of short data: each leader gathers the parts of its
// node, the leaders exchange them, and each passes on everything.
func (c *Comm) allgatherShortByNodes(send *p2p.Buf, all *Vec) *Op {
	d := c.nodes
	near, lead := d.near(), d.leader(d.mine)
	everyone := make([]int, c.Size)
	for i := range everyone {
		everyone[i] = i
	}
	own, inPlace := all.part(c.Rank), c.Rank
	if send != nil {
		own, inPlace = *send, -1
	}
	var whole block
	if c.Rank != lead {
		return c.stages(func(o *Op) {
			if send != nil {
				o.keep(all.part(c.Rank), own) // it comes once more with the others: this is for its error
			}
			whole = o.block(all, everyone)
			o.send(own, lead)
			o.recv(whole.Buf, lead)
		}, func(*Op) { whole.scatter(all, everyone, inPlace) })
	}
	blocks := make([]block, len(d.ranks))
	return c.stages(func(o *Op) {
		o.keep(all.part(c.Rank), own)
		c.others(near, 0, func(_, r int) { o.recv(all.part(r), r) })
	}, func(o *Op) {
		for i, ranks := range d.ranks {
			blocks[i] = o.block(all, ranks)
		}
		mine := &blocks[d.mine]
		mine.gather(all, near)
		leaders := d.leaders(lead)
		c.others(leaders, d.mine, func(i, r int) { o.recv(blocks[i].Buf, r) })
		c.others(leaders, d.mine, func(_, r int) { o.send(mine.Buf, r) })
	}, func(o *Op) {
		for i, ranks := range d.ranks {
			if i != d.mine {
				blocks[i].scatter(all, ranks, -1)
			}
		}
		whole = o.block(all, everyone)
		whole.gather(all, everyone)
		c.others(near, 0, func(_, r int) { o.send(whole.Buf, r) })
	})
}

// allgatherByNodes starts an allgather: the ranks of a node exchange their parts, the leaders
// those of the nodes, and each leader passes on to its node what it gets.
func (c *Comm) allgatherByNodes(send *p2p.Buf, all *Vec) *Op {
	if bytes := all.bytes(); bytes <= allgatherShort {
		return c.allgatherShortByNodes(send, all)
	}
	d := c.nodes
	near, n, lead := d.near(), len(d.ranks), d.leader(d.mine)
	blocks := make([]block, n) // what the ranks of other nodes contribute
	eachFar := func(f func(i int)) {
		for k := 1; k < n; k++ {
			f((d.mine + k) % n)
		}
	}
	unpack := func(*Op) {
		eachFar(func(i int) { blocks[i].scatter(all, d.ranks[i], -1) })
	}
	exchange := func(o *Op) {
		own := all.part(c.Rank)
		if send != nil {
			o.keep(own, *send)
			own = *send
		}
		c.others(near, d.at[c.Rank], func(_, r int) { o.recv(all.part(r), r) })
		c.others(near, d.at[c.Rank], func(_, r int) { o.send(own, r) })
		eachFar(func(i int) {
			if blocks[i] = o.block(all, d.ranks[i]); c.Rank != lead {
				o.recv(blocks[i].Buf, lead)
			}
		})
	}
	if c.Rank != lead {
		return c.stages(exchange, unpack)
	}
	return c.stages(exchange, func(o *Op) {
		own := o.block(all, near)
		own.gather(all, near)
		eachFar(func(i int) { o.recv(blocks[i].Buf, d.leader(i)) })
		eachFar(func(i int) { o.send(own.Buf, d.leader(i)) })
	}, func(o *Op) {
		eachFar(func(i int) {
			c.others(near, 0, func(_, r int) { o.send(blocks[i].Buf, r) })
		})
		unpack(o)
	})
}

// byParcel reports whether the data between rank r and the root of a call goes by r's leader.
// One that is on the root's node, or alone on its own, communicates with the root.
func (d *nodes) byParcel(r, root int) bool {
	return d.of[r] != d.of[root] && len(d.ranks[d.of[r]]) > 1
}

// eachParcel calls f with each node between which and the root go parcels.
func (d *nodes) eachParcel(root int, f func(ranks []int)) {
	for _, ranks := range d.ranks {
		if d.byParcel(ranks[0], root) {
			f(ranks)
		}
	}
}

// gatherByNodes is Gather with a parcel from each node.
func (c *Comm) gatherByNodes(send *p2p.Buf, all *Vec, root int) *Op {
	d := c.nodes
	var parcels []*incoming
	long := func(o *Op) { // last, see parcel
		if send.Bytes() > c.inParcel() {
			o.send(*send, root)
		}
	}
	near, lead := d.near(), d.leader(d.mine)
	switch {
	case c.Rank == root:
		return c.stages(func(o *Op) {
			for i := range c.Size {
				switch {
				case i == root && send != nil:
					o.keep(all.part(i), *send)
				case i != root && !d.byParcel(i, root):
					o.recv(all.part(i), i)
				}
			}
			d.eachParcel(root, func(ranks []int) { parcels = append(parcels, o.recvParcel(len(ranks), ranks[0])) })
		}, func(o *Op) {
			openAll(parcels)
			k := 0
			d.eachParcel(root, func(ranks []int) {
				for _, r := range ranks {
					parcels[k].deliver(all.part(r), r)
				}
				k++
			})
		})
	case !d.byParcel(c.Rank, root):
		return c.stages(func(o *Op) { o.send(*send, root) })
	case c.Rank != lead:
		return c.stages(func(o *Op) {
			p := o.parcel(1)
			p.add(*send)
			o.send(p.buf(), lead)
		}, long)
	}
	return c.stages(func(o *Op) {
		c.others(near, 0, func(_, r int) { parcels = append(parcels, o.recvParcel(1, r)) })
	}, func(o *Op) {
		openAll(parcels)
		p := o.parcel(len(near))
		p.add(*send)
		for _, one := range parcels {
			p.pass(one, 1)
		}
		o.send(p.buf(), root)
	}, long)
}

func openAll(parcels []*incoming) {
	for _, p := range parcels {
		p.open()
	}
}

// scatterByNodes is Scatter with a parcel to each node.
func (c *Comm) scatterByNodes(all *Vec, recv *p2p.Buf, root int) *Op {
	d := c.nodes
	var parcel *incoming
	near, lead := d.near(), d.leader(d.mine)
	switch {
	case c.Rank == root:
		return c.stages(func(o *Op) {
			d.eachParcel(root, func(ranks []int) {
				p := o.parcel(len(ranks))
				for _, r := range ranks {
					p.add(all.part(r))
				}
				o.send(p.buf(), ranks[0])
			})
			for i := range c.Size {
				switch part := all.part(i); {
				case i == root && recv != nil:
					o.keep(*recv, part)
				case i != root && (!d.byParcel(i, root) || part.Bytes() > c.inParcel()):
					o.send(part, i)
				}
			}
		})
	case !d.byParcel(c.Rank, root):
		return c.stages(func(o *Op) { o.recv(*recv, root) })
	}
	take := func(o *Op) {
		if c.Rank != lead {
			parcel.open()
		}
		parcel.deliver(*recv, root)
	}
	if c.Rank != lead {
		return c.stages(func(o *Op) { parcel = o.recvParcel(1, lead) }, take)
	}
	var own *outgoing
	return c.stages(func(o *Op) { parcel = o.recvParcel(len(near), root) }, func(o *Op) {
		parcel.open()
		own = o.parcel(1)
		own.pass(parcel, 1)
		for _, r := range near[1:] {
			p := o.parcel(1)
			p.pass(parcel, 1)
			o.send(p.buf(), r)
		}
		parcel = own.opened(o)
	}, take)
}

// alltoallByNodes is Alltoall with a parcel from each node to each other one. Blocks for the
// ranks of the own node go straight there. out returns the part for rank i.
func (c *Comm) alltoallByNodes(start func(o *Op) func(i int) p2p.Buf, recv *Vec) *Op {
	d := c.nodes
	near, lead, n := d.near(), d.leader(d.mine), len(d.ranks)
	var out func(i int) p2p.Buf
	eachFar := func(f func(ranks []int)) {
		for i, ranks := range d.ranks {
			if i != d.mine {
				f(ranks)
			}
		}
	}
	var mine *outgoing     // this rank's blocks for other nodes
	var parcel *incoming   // the blocks for this rank
	var inside []*incoming // of the leader: from the node's ranks
	begin := func(o *Op) {
		out = start(o)
		c.others(near, d.at[c.Rank], func(_, r int) { o.recv(recv.part(r), r) })
		c.others(near, d.at[c.Rank], func(_, r int) { o.send(out(r), r) })
		mine = o.parcel(d.far())
		eachFar(func(ranks []int) {
			for _, r := range ranks {
				mine.add(out(r))
			}
		})
		if c.Rank != lead {
			o.send(mine.buf(), lead)
			parcel = o.recvParcel(d.far(), lead)
			return
		}
		inside = append(inside, mine.opened(o))
		for _, r := range near[1:] {
			inside = append(inside, o.recvParcel(d.far(), r))
		}
	}
	end := func(o *Op) {
		if c.Rank != lead {
			parcel.open()
		}
		eachFar(func(ranks []int) {
			for _, r := range ranks {
				parcel.deliver(recv.part(r), r)
			}
		})
		eachFar(func(ranks []int) {
			for _, r := range ranks {
				if b := out(r); b.Bytes() > c.inParcel() {
					o.send(b, r)
				}
			}
		})
	}
	if c.Rank != lead {
		return c.stages(begin, end)
	}
	across := make([]*incoming, 0, n) // from the other leaders
	return c.stages(begin, func(o *Op) {
		openAll(inside[1:])
		eachFar(func(ranks []int) { across = append(across, o.recvParcel(len(ranks)*len(near), ranks[0])) })
		eachFar(func(ranks []int) {
			p := o.parcel(len(ranks) * len(near))
			for _, from := range inside {
				p.pass(from, len(ranks))
			}
			o.send(p.buf(), ranks[0])
		})
	}, func(o *Op) {
		openAll(across)
		to := make([]*outgoing, len(near))
		for i := range near {
			to[i] = o.parcel(d.far())
		}
		k := 0
		eachFar(func(ranks []int) {
			for range ranks {
				for i := range near {
					to[i].pass(across[k], 1)
				}
			}
			k++
		})
		for i, r := range near[1:] {
			o.send(to[i+1].buf(), r)
		}
		parcel = to[0].opened(o)
	}, end)
}
