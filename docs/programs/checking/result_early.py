import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(32, 8, comm=world)
got = np.zeros(4)
win.Lock_all()
if world.rank == 0:
    win.Get(got, 1)
    print(got.sum())
win.Unlock_all()
win.Free()
