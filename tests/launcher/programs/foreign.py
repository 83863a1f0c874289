"""The programs of test_foreign.py."""

import os
import sys
import time

import numpy as np

from gormapy import MPI


def clean_end_waits_for_the_others():
    rank = MPI.COMM_WORLD.rank
    if rank == 1:
        MPI.Finalize()
    if rank == 2 and os.fork() == 0:
        sys.exit(5)  # a child is not the rank
    if rank == 0:
        time.sleep(0.5)
    print("done", rank)


def one_sided():
    w = MPI.COMM_WORLD
    print("who", w.rank, w.size, flush=True)
    a = np.zeros(4)
    win = MPI.Win.Create(a, comm=w)
    win.Fence()
    win.Put(np.full(4, w.rank + 1.0), (w.rank + 1) % w.size)
    win.Fence()
    assert (a == (w.rank - 1) % w.size + 1).all(), a
    win.Free()
