"""Four times as many ranks as cores, all of them at work: what libraries that spin are bad at."""

import os

import numpy as np

from .timing import BUDGET, batches, row

CORES = len(os.sched_getaffinity(0))


def oversubscribed(MPI, comm, budget=BUDGET):
    """Time Put, Fence, Barrier and Lock by more ranks than cores, each to its right-hand neighbour, all at once."""
    right = (comm.rank + 1) % comm.size
    memory = np.zeros(8, "b")
    win = MPI.Win.Allocate(8, 1, comm=comm)

    def put_flush():
        win.Put(memory, right)
        win.Flush(right)

    def put_fence():
        win.Put(memory, right)
        win.Fence()

    def lock_put_unlock():
        win.Lock(right)
        win.Put(memory, right)
        win.Unlock(right)

    many = f"{comm.size} ranks"
    win.Lock_all()
    yield row(f"{many}: Put 8 B + Flush, Win.Allocate", batches(comm, put_flush, budget))
    win.Unlock_all()
    comm.Barrier()
    yield row(f"{many}: Lock exclusive + Put 8 B + Unlock, Win.Allocate", batches(comm, lock_put_unlock, budget))
    comm.Barrier()
    win.Fence()
    yield row(f"{many}: Put 8 B + Fence, Win.Allocate", batches(comm, put_fence, budget))
    win.Fence(MPI.MODE_NOSUCCEED)
    yield row(f"{many}: Barrier", batches(comm, comm.Barrier, budget))
    win.Free()
