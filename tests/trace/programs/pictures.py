"""The programs of test_pictures.py."""

import time

import numpy as np

from gormapy import MPI


def exchanges_and_puts():
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    a, b = np.zeros(10), np.zeros(10)
    for _ in range(6):
        comm.Sendrecv(a, right, 3, b, left, 3)
    if rank == 0:
        time.sleep(0.05)
    comm.Barrier()
    win = MPI.Win.Allocate(80 * size, disp_unit=8, comm=comm)
    win.Fence()
    for _ in range(3):
        win.Put(a, right, 10 * rank)
        win.Fence()
    win.Get(b[:1], right)
    win.Fence()
    comm.Barrier()
    win.Free()


def many_calls_are_thinned_out():
    comm = MPI.COMM_WORLD
    a = np.zeros(1)
    win = MPI.Win.Allocate(8, comm=comm)
    win.Lock_all()
    for _ in range(4000):
        win.Put(a, 1 - comm.rank)
    win.Unlock_all()
    comm.Barrier()
    win.Free()
