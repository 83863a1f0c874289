package mpi

import "gormapy/gocore/errs"

// CommDrop forgets a communicator at this rank alone, which the program has never got: the call that made it failed
// afterwards, such as Dup when a function that copies an attribute raises. It does not wait for the other ranks, which
// may have failed likewise, and nothing of this rank is under way in it. A rank that has got the communicator
// can't communicate with this one in it.
func CommDrop(h int64) (code Code) {
	defer Contain(&code)
	if h == CommWorld || h == CommSelf {
		return classError(errs.Comm, "COMM_WORLD and COMM_SELF can't be dropped")
	}
	c, e := getComm(h)
	if e != nil {
		return CodeOf(e)
	}
	if comms.take(h) != nil {
		c.close()
	}
	return 0
}
