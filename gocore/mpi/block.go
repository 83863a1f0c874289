package mpi

import "sync/atomic"

// spareBlock is a barrier block that this process has taken and no communicator uses, so that ranks can offer blocks before
// they know whose is needed (derive.go): its number and 1; 0: there is none. A process that ends has one with it.
var spareBlock atomic.Int64

// offerBlock returns the number of a block that nobody uses, -1 if there is none.
func offerBlock() int64 {
	if b := spareBlock.Swap(0) - 1; b >= 0 {
		return b
	}
	return int64(proc.seg.TakeBlock())
}

// keepBlock takes back a block that nobody has used.
func keepBlock(b int64) {
	if b >= 0 && !spareBlock.CompareAndSwap(0, b+1) {
		proc.seg.GiveBlock(int(b))
	}
}

// takeBlock reserves a barrier block for ranks. It returns -1 if there is none, or they do
// not all share memory; their barriers and small collectives use messages then.
func takeBlock(ranks []int) int64 {
	if !canShareBlock(ranks) {
		return -1
	}
	return int64(proc.seg.TakeBlock())
}

// canShareBlock reports whether ranks, of which this is one, can have a barrier block. They all agree.
func canShareBlock(ranks []int) bool {
	return len(ranks) > 1 && proc.eng.AllLocal(ranks) && !spans(ranks)
}
