import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(32, 8, comm=world)
mine = np.full(4, world.rank, "d")
win.Fence()
if world.rank == 0:
    win.Accumulate(mine, 1, op=MPI.SUM)
else:
    win.Accumulate(mine, 1, op=MPI.SUM)
win.Fence()
win.Free()
