import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(64, 8, comm=world)
mine = np.full(4, world.rank, "d")
win.Fence()
win.Put(mine, 0)
win.Fence()
win.Free()
