import numpy as np

from gormapy import MPI

world = MPI.COMM_WORLD
values = np.full(4, world.rank, "d")
world.Bcast(values, root=world.rank)
print(values)
