"""pshmem has an array in shared memory, and a lock."""

import numpy as np
from mpi4py import MPI
from pshmem import MPILock, MPIShared

comm = MPI.COMM_WORLD
with MPIShared((comm.size, 5), np.float64, comm) as shared:
    for rank in range(comm.size):
        shared.set(np.full((1, 5), rank + 1.0) if comm.rank == rank else None, offset=(rank, 0), fromrank=rank)
    assert shared.data[:, 0].tolist() == list(range(1, comm.size + 1))
    with MPILock(comm) as lock:
        for _ in range(20):
            lock.lock()
            lock.unlock()
    comm.barrier()
    print("checked")
