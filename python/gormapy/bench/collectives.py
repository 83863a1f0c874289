"""Collectives of arrays: of each kind, short and long, in different memory.

The size is that of the longest array of a rank: for Bcast, Reduce and Allreduce of each array, for Allgather that of
what a rank receives, for Reduce_scatter_block and Scatter of what is sent, and so on. Roots take turns, so that none
runs ahead of the others.
"""

from functools import partial
from itertools import cycle

import numpy as np

from .label import label
from .timing import BUDGET, batches, row

SIZES = (8, 64 << 10, 1 << 20, 16 << 20)

# How many pairs of arrays take turns where the arrays change: twice the longest is more than most caches hold.
CHANGING = 8


def collectives(MPI, comm, budget=BUDGET):
    """Time collectives of NumPy arrays, the same ones at each call."""
    return _rows(MPI, comm, budget, np.ones, 1, "")


def collectives_changing(MPI, comm, budget=BUDGET):
    """Time collectives of NumPy arrays, others at each call."""
    return _rows(MPI, comm, budget, np.ones, CHANGING, ", changing")


def collectives_allocated(MPI, comm, budget=BUDGET):
    """Time collectives of arrays in memory of Alloc_mem, the same ones at each call."""
    return _rows(MPI, comm, budget, partial(_allocated, MPI), 1, ", Alloc_mem")


def _allocated(MPI, count):
    array = np.frombuffer(MPI.Alloc_mem(8 * count), "d")
    array[:] = 1
    return array


def _rows(MPI, comm, budget, make, pairs, suffix):
    for size in SIZES:
        part = max(1, size // 8 // comm.size)
        whole = part * comm.size
        arrays = [(make(whole), make(whole)) for _ in range(pairs)]
        for name, call in _calls(MPI, comm, part, whole if size > 8 else 1, arrays):
            yield row(f"{name} {label(size)}{suffix}", batches(comm, call, budget, turns=comm.size))


def _calls(MPI, comm, part, whole, arrays):
    """Yield the calls; `part` and `whole` are numbers of elements."""
    roots, turns, rank = cycle(range(comm.size)), cycle(arrays), comm.rank

    def bcast():
        comm.Bcast(next(turns)[0][:whole], next(roots))

    def reduce():
        send, recv = next(turns)
        root = next(roots)
        comm.Reduce(send[:whole], recv[:whole] if rank == root else None, MPI.MAX, root)

    def allreduce():
        send, recv = next(turns)
        comm.Allreduce(send[:whole], recv[:whole], MPI.SUM)

    def allgather():
        send, recv = next(turns)
        comm.Allgather(send[:part], recv)

    def reduce_scatter():
        send, recv = next(turns)
        comm.Reduce_scatter_block(send, recv[:part], MPI.SUM)

    def alltoall():
        comm.Alltoall(*next(turns))

    def gather():
        send, recv = next(turns)
        root = next(roots)
        comm.Gather(send[:part], recv if rank == root else None, root)

    def scatter():
        send, recv = next(turns)
        root = next(roots)
        comm.Scatter(send if rank == root else None, recv[:part], root)

    yield "Bcast", bcast
    yield "Reduce", reduce
    yield "Allreduce", allreduce
    yield "Allgather", allgather
    yield "Reduce_scatter_block", reduce_scatter
    yield "Alltoall", alltoall
    yield "Gather", gather
    yield "Scatter", scatter
