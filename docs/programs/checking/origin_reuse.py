import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(32, 8, comm=world)
mine = np.ones(4)
win.Lock_all()
if world.rank == 0:
    win.Put(mine, 1)
    mine[0] = 5.0
win.Unlock_all()
win.Free()
