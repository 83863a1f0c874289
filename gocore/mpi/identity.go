package mpi

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"gormapy/gocore/engine"
	"gormapy/gocore/errs"
	"gormapy/gocore/p2p"
)

// Groups in messages to processes that may be of another job, where world ranks have other meanings: identityWords
// words for each rank.
const (
	identityJob   = 0 // two words
	identityRank  = 2
	identityPID   = 3 // the process and its descriptor by which the segment of the job is opened
	identityFD    = 4
	identityWords = 5
)

// spans reports whether a list has processes of other jobs.
func spans(world []int) bool {
	return slices.ContainsFunc(world, func(r int) bool { return r >= proc.size })
}

// identities returns the identities of processes.
func identities(world []int) (words []int64) {
	for _, r := range world {
		id := proc.eng.Identity(r)
		var b [16]byte
		_, _ = hex.Decode(b[:], []byte(id.Job))
		words = append(words, int64(binary.BigEndian.Uint64(b[:])), int64(binary.BigEndian.Uint64(b[8:])),
			int64(id.Rank), int64(id.OpenerPID), int64(id.OpenerFD))
	}
	return words
}

// numbersOf returns the world ranks of identities, or the numbers that this process gives to those of other jobs.
func numbersOf(words []int64) ([]int, *errs.Error) {
	var list []int
	for id := range slices.Chunk(words, identityWords) {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], uint64(id[identityJob]))
		binary.BigEndian.PutUint64(b[8:], uint64(id[identityJob+1]))
		n, err := proc.eng.Number(engine.Identity{Job: hex.EncodeToString(b[:]), Rank: int(id[identityRank]), OpenerPID: int(id[identityPID]), OpenerFD: int(id[identityFD])})
		if err != nil {
			return nil, errs.New(errs.Other, "%v", err)
		}
		list = append(list, n)
	}
	return list, nil
}

// precedes reports whether the first of some identities comes before that of others, in an order on which all agree.
func precedes(a, b []int64) bool {
	return slices.Compare(a[:identityPID], b[:identityPID]) < 0
}

// names reports whether the program has an object in which a number occurs.
func names(number int) (yes bool) {
	in := func(world []int) { yes = yes || slices.Contains(world, number) }
	for _, c := range inUse.all() {
		in(c.group.ranks)
		if c.remote != nil {
			in(c.remote.ranks)
		}
	}
	groups.each(func(_ int64, g *Group) { in(g.ranks) })
	wins.each(func(_ int64, w *Window) { in(w.World) })
	msgs.each(func(_ int64, m *p2p.Matched) { in(m.World()) })
	reqs.each(func(_ int64, r *Request) {
		if r.ch != nil {
			in(r.ch.World)
		}
		switch o := r.op.(type) {
		case *joined:
			for _, part := range []*Request{o.recv, o.send} {
				if part.ch != nil {
					in(part.ch.World)
				}
			}
		case *partitionedSend:
			in(o.ch.World)
		case *partitionedRecv:
			in(o.ch.World)
		case *sequence:
			in(o.ch.World)
		}
	})
	return yes
}
