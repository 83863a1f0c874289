"""The programs of test_leaks.py."""

import gc
import sys

import numpy as np
from rankside import rank, world

from gormapy import MPI


def buffer_is_let_go():
    a, b = np.zeros(1000), np.zeros(100_000)
    counts = sys.getrefcount(a), sys.getrefcount(b)
    for _ in range(50):
        world.Sendrecv(a, 1 - rank, 0, np.zeros(1000), 1 - rank, 0)
        r = world.Irecv(b, 1 - rank)
        world.Send(np.zeros(100_000), 1 - rank)
        r.Wait()
        world.Allreduce(a, np.zeros(1000))
        win = MPI.Win.Create(b, comm=world)
        win.Fence()
        win.Put(a, 1 - rank)
        win.Fence()
        win.Free()
    del r, win
    assert (sys.getrefcount(a), sys.getrefcount(b)) == counts


def window_that_is_never_freed_holds_its_memory():
    def make():
        a = np.zeros(1000)
        return MPI.Win.Create(a, comm=world)

    win = make()
    gc.collect()
    junk = [np.full(1000, 3.0) for _ in range(100)]
    win.Fence()
    win.Put(np.full(1000, 1.0 + rank), 1 - rank)
    win.Fence()
    assert all((j == 3.0).all() for j in junk)
    assert (np.frombuffer(win.tomemory()) == 2.0 - rank).all()
    win.Free()
