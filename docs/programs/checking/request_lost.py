import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(32, 8, comm=world)
mine = np.ones(4)
win.Lock_all()
if world.rank == 0:
    request = win.Rput(mine, 1)
win.Unlock_all()
win.Free()
