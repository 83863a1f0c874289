"""PyLops-MPI inverts an operator whose blocks are distributed over the ranks."""

import numpy as np
import pylops
import pylops_mpi
from mpi4py import MPI

comm = MPI.COMM_WORLD
matrix = np.random.default_rng(comm.rank).normal(size=(8, 8)) + 8 * np.eye(8)
operator = pylops_mpi.MPIBlockDiag(ops=[pylops.MatrixMult(matrix)])
x = pylops_mpi.DistributedArray(global_shape=8 * comm.size, dtype=float)
x[:] = comm.rank + 1.0
y = operator.matvec(x)
assert np.allclose(y.local_array, matrix.sum(1) * (comm.rank + 1))
start = pylops_mpi.DistributedArray(global_shape=8 * comm.size, dtype=float)
start[:] = 0
found = pylops_mpi.optimization.basic.cgls(operator, y, x0=start, niter=60, tol=1e-14)[0]
assert np.allclose(found.asarray(), np.repeat(np.arange(1, comm.size + 1), 8), atol=1e-5)
print("checked")
