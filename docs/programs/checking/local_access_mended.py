import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
mine = np.full(4, world.rank, "d")
win = MPI.Win.Create(mine, 8, comm=world)
win.Fence()
if world.rank == 0:
    win.Put(mine, 1)
win.Fence()
print(mine[0])
win.Free()
