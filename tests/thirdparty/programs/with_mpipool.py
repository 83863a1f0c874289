"""mpipool has an executor, and a pool as multiprocessing has."""

from mpi4py import MPI
from mpipool import MPIExecutor


def square(x):
    return x * x


with MPIExecutor() as pool:
    pool.workers_exit()
    assert list(pool.map(square, range(30))) == [x * x for x in range(30)]
    futures = [pool.submit(square, x) for x in range(10)]
    assert [future.result(20) for future in futures] == [x * x for x in range(10)]
MPI.COMM_WORLD.Barrier()
print("checked")
