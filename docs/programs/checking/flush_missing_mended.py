import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
mine = np.full(4, world.rank, "d")
win = MPI.Win.Create(mine, 8, comm=world)
win.Lock_all()
if world.rank == 0:
    win.Put(mine, 1)
    win.Flush(1)
world.Barrier()
print(mine[0])
win.Unlock_all()
win.Free()
