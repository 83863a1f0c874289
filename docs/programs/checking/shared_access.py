import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate_shared(8, 8, comm=world)
value = np.frombuffer(win.Shared_query(0)[0], "d")
win.Lock_all()
if world.rank == 0:
    value[0] = 1.0
print(value[0])
win.Unlock_all()
win.Free()
