import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(32, 8, comm=world)
one, two = np.full(4, 1.0), np.full(4, 2.0)
win.Lock_all()
if world.rank == 0:
    win.Put(one, 1)
    win.Put(two, 1)
win.Unlock_all()
win.Free()
