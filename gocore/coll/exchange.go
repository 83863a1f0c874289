package coll

import "gormapy/gocore/p2p"

// Exchange starts a step of a collective call that is no collective of MPI's chapter on these, such as one of a file: all ranks get what each
// contributes, which is of the same size at all. name is that of the call, for errors. It returns nil if this has to use messages, as BoardOp
// does. A rank that gives it up tells the others, so that the ranks' numbers still agree.
func (c *Comm) Exchange(name string, mine, all p2p.Buf) *BoardOp {
	return c.BoardOp(&Args{Call: Call{Kind: KindComm, Bytes: mine.Bytes(), Objects: name}, Send: mine, Recv: all})
}

// SkipExchange gives up the next step, which is one by Exchange, if that is on the board.
func (c *Comm) SkipExchange() {
	if c.board != nil {
		c.Skip()
	}
}
