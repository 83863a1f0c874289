import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(32, 8, comm=world)
mine = np.ones(4)
if world.rank == 0:
    try:
        win.Lock(1)
        win.Put(mine, 1)
        win.Unlock(1)
    except MPI.Exception as error:
        print(error)
win.Free()
