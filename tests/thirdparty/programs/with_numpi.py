"""NuMPI writes an array by all ranks, reads it, and minimizes a function whose variables are distributed."""

import os
import tempfile

import numpy as np
from mpi4py import MPI
from NuMPI.IO import load_npy, save_npy
from NuMPI.Optimization import l_bfgs
from NuMPI.Tools import Reduction

comm = MPI.COMM_WORLD
path = comm.bcast(os.path.join(tempfile.mkdtemp(), "a.npy") if comm.rank == 0 else None)
mine = np.full((3, 4), float(comm.rank))
save_npy(path, mine, (3 * comm.rank, 0), (3 * comm.size, 4), comm=comm)
comm.Barrier()
assert np.array_equal(load_npy(path, (3 * comm.rank, 0), (3, 4), comm=comm), mine)
assert np.load(path).shape == (3 * comm.size, 4)
assert Reduction(comm).sum(mine) == 12 * sum(range(comm.size))


def square(x):
    return comm.allreduce(float(np.sum((x - 1) ** 2))), 2 * (x - 1)


found = l_bfgs(square, np.zeros((5, 1)), jac=True, comm=comm, gtol=1e-6)
assert found.success and np.allclose(found.x, 1), found
print("checked")
