"""A program of test_errors.py whose mistake ends the job."""

import numpy as np
from rankside import rank, world

from gormapy import MPI

MISTAKES = {
    "outside of an epoch": lambda win, one: win.Put(one, 1),
    "outside of the window": lambda win, one: (win.Lock(1), win.Get(one, 1, 77)),
    "no such rank": lambda win, one: (win.Lock_all(), win.Accumulate(one, 9)),
    "op": lambda win, one: (win.Lock_all(), win.Fetch_and_op(one, one, 1, 0, MPI.BAND)),
    "type": lambda win, one: (win.Lock_all(), win.Compare_and_swap(one, one, one, 1)),
    "second lock": lambda win, one: (win.Lock(1), win.Lock(1)),
    "unlock": lambda win, one: win.Unlock(1),
    "flush": lambda win, one: win.Flush(0),
    "request": lambda win, one: win.Rput(one, 1),
    "fence": lambda win, one: (win.Lock(0), win.Fence()),
    "free": lambda win, one: (win.Lock(1), win.Free()),
    "start in start": lambda win, one: (win.Start(MPI.GROUP_EMPTY), win.Start(MPI.GROUP_EMPTY)),
    "complete": lambda win, one: win.Complete(),
    "wait": lambda win, one: win.Wait(),
    "assertion": lambda win, one: win.Lock(1, MPI.LOCK_SHARED, 3),
    "lock type": lambda win, one: win.Lock(1, 99),
    "detach": lambda win, one: win.Detach(one),
}


def job_ends(mistake, handler):
    if mistake == "detach":
        win = MPI.Win.Create_dynamic(comm=world)
    else:
        win = MPI.Win.Allocate(64, 8, comm=world)
    win.name = "halo"
    one = np.ones(1)
    win.Set_errhandler(getattr(MPI, handler))
    world.Barrier()
    if rank == 0:
        MISTAKES[mistake](win, one)
        print("went on")
    else:
        world.recv()
