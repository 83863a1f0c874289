"""mpilock has locks for readers and writers; a thread keeps the windows of its master going."""

import os
import tempfile

import mpilock
from mpi4py import MPI

comm = MPI.COMM_WORLD
path = comm.bcast(os.path.join(tempfile.mkdtemp(), "counter") if comm.rank == 0 else None)
if comm.rank == 0:
    with open(path, "w") as file:
        file.write("0")
comm.Barrier()
controller = mpilock.sync()
for _ in range(20):
    with controller.write():
        with open(path) as file:
            number = int(file.read())
        with open(path, "w") as file:
            file.write(str(number + 1))
comm.Barrier()
with controller.read(), open(path) as file:
    assert int(file.read()) == 20 * comm.size
controller.close()
print("checked")
