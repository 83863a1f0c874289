"""Put and Get beside NumPy's own copy of the same bytes from and to the same shared memory, in the same run."""

from contextlib import contextmanager
from functools import partial

import numpy as np

from .label import label
from .timing import BUDGET, alternate, percentile, row

SIZES = (65536, 1 << 20, 4 << 20)


@contextmanager
def _allocated(MPI, comm):
    win = MPI.Win.Allocate(SIZES[-1], 1, comm=comm)
    yield win
    win.Free()


@contextmanager
def _created(MPI, comm):
    memory = MPI.Alloc_mem(SIZES[-1])
    np.frombuffer(memory, "b")[:] = 0
    win = MPI.Win.Create(memory, 1, comm=comm)
    yield win
    win.Free()
    MPI.Free_mem(memory)


@contextmanager
def _mapped(MPI, comm, win):
    """Yield rank 1's memory of a window, or as much of another one where the library does not show it, and which."""
    try:
        memory = np.frombuffer(win.Shared_query(1)[0], "b")
    except (MPI.Exception, ValueError):
        memory = np.zeros(0, "b")
    if all(comm.allgather(memory.size == SIZES[-1])):
        yield memory, True
        return
    other = MPI.Win.Allocate_shared(SIZES[-1], 1, comm=comm)
    yield np.frombuffer(other.Shared_query(1)[0], "b"), False
    other.Free()


def numpy_copy(MPI, comm, budget=BUDGET):
    """Time large Put and Get beside numpy.copyto of the same bytes into and out of the same shared memory."""
    if comm.size < 2:
        raise SystemExit("numpy_copy: it takes 2 ranks, and there is 1: use -n 2")
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    alone = comm.allgather(node.size < comm.size)
    node.Free()
    if any(alone):
        raise SystemExit("numpy_copy: the ranks are on several nodes, which share no memory: run it on one")
    for kind, make in (("Win.Allocate", _allocated), ("Win.Create on Alloc_mem", _created)):
        with make(MPI, comm) as win, _mapped(MPI, comm, win) as (shared, same):
            if comm.rank == 0:
                win.Lock(1, MPI.LOCK_SHARED)
                for size in SIZES:
                    yield from _beside(win, kind, size, shared[:size], same, budget)
                win.Unlock(1)
            del shared
            comm.Barrier()


def _beside(win, kind, size, shared, same, budget):
    """Yield the rows of a size; what NumPy sees must be what was put, where it is the `same` memory."""
    memory, flush = np.resize(np.arange(251, dtype="u1").view("b"), size), win.Flush

    def put():
        win.Put(memory, 1)
        flush(1)

    def get():
        win.Get(memory, 1)
        flush(1)

    calls = put, partial(np.copyto, shared, memory), get, partial(np.copyto, memory, shared)
    puts, into, gets, out = alternate(calls, budget)
    put()
    there = shared.copy()
    sent, memory[:] = memory.copy(), 0
    get()
    if not np.array_equal(memory, sent) or (same and not np.array_equal(there, sent)):
        raise RuntimeError(f"numpy_copy: Put or Get of {size} bytes on {kind} moved something else")
    for name, times, copies in (("Put", puts, into), ("Get", gets, out)):
        reference = round(1e6 * percentile(copies, 50), 3)
        yield row(f"{name} {label(size)} + Flush, {kind}, beside NumPy's copy", times, size=size, numpy=reference)
