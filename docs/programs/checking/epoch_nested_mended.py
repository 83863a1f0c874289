import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(32, 8, comm=world)
mine = np.ones(4)
win.Fence()
if world.rank == 0:
    win.Put(mine, 1)
win.Fence()
win.Free()
