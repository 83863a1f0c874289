"""WESTPA's work manager for MPI gives tasks to the workers."""

from mpi4py import MPI
from westpa.work_managers.mpi import MPIWorkManager


def square(x):
    return x * x


with MPIWorkManager() as manager:
    if manager.is_master:
        futures = [manager.submit(square, (x,)) for x in range(20)]
        assert sorted(future.get_result() for future in manager.as_completed(futures)) == [x * x for x in range(20)]
        print("checked")
    else:
        manager.run()
assert MPI.COMM_WORLD.size > 1
