"""Write into another rank's memory, in two ways: between fences, and under a lock.

    mpiexec -n 2 python -m gormapy.examples.put

Between fences all ranks take part in the synchronisation. Under a lock only the origin does; the target may
be doing anything else.
"""

import sys

import numpy as np

from gormapy import MPI


def fence(comm):
    """Let rank 0 write 42 into the integer of rank 1, between two fences."""
    rank = comm.Get_rank()
    buf = np.array(rank, dtype="i")
    win = MPI.Win.Create(buf, comm=comm)
    win.Fence()
    if rank == 0:
        data = np.array(42, dtype="i")
        win.Put([data, MPI.INT], 1)  # the second argument is the rank; target= is a place in its window
    win.Fence()
    if rank == 1:
        print(f"Rank 1 sees {buf.item()}", flush=True)
    win.Free()


def lock(comm):
    """Let rank 0 write 123 into the integer of rank 1, which only waits at the end."""
    rank = comm.Get_rank()
    buf = np.array(0, dtype="i")
    win = MPI.Win.Create(buf, comm=comm)
    comm.Barrier()
    if rank == 0:
        data = np.array(123, dtype="i")
        win.Lock(1, MPI.LOCK_SHARED)
        win.Put([data, MPI.INT], 1)
        win.Flush(1)
        win.Unlock(1)
    comm.Barrier()
    print(f"[Lock/Unlock] rank {rank} buf = {buf.item()}", flush=True)
    win.Free()


def main():
    """Run both ways."""
    comm = MPI.COMM_WORLD
    if comm.Get_size() < 2:
        sys.exit("put: rank 0 writes to rank 1, and there is 1 rank only: start it by mpiexec -n 2")
    fence(comm)
    lock(comm)


if __name__ == "__main__":
    main()
