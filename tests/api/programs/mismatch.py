"""The programs of test_mismatch.py."""

import numpy as np

from gormapy import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def lenient():
    data = np.arange(4, dtype="u8" if rank == 0 else "i8") * (rank == 0)
    comm.Bcast([data, MPI.BYTE] if rank == 1 else data)
    assert data.tolist() == [0, 1, 2, 3]
    for root in range(size):  # roots that run ahead
        for k in range(50):
            data[:] = k if rank == root else -1 if data.dtype == "i8" else 0
            comm.Bcast(data, root)
            assert (data == k).all()


def mismatch(mine, theirs):
    """Make a call on rank 0, and another one on all others."""
    exec(mine if rank == 0 else theirs)
