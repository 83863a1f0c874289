"""The programs of test_perfetto_format.py."""

import numpy as np

from gormapy import MPI


def messages_and_puts():
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    a = np.zeros(5)
    comm.Sendrecv(a, (rank + 1) % size, 3, a.copy(), (rank - 1) % size, 3)
    comm.Isend(a, (rank + 1) % size, 99).Free()  # nobody receives it
    win = MPI.Win.Allocate(100, comm=comm)
    win.Fence()
    win.Put(a, (rank + 1) % size)
    win.Get(a.copy(), rank)
    win.Fence()
    win.Free()
