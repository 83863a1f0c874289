"""Calls of MPI for functions that Numba compiles.

The names and arguments are those of the package numba-mpi, so that a program of its may say::

    import gormapy.numba as numba_mpi

Each call can be made in a function of ``numba.njit``, with ``nogil=True`` and ``cache=True`` as well, and in Python.
It returns a status: 0 (`SUCCESS`), or the class of an error, whose text is `last_error`'s. Error handlers of
communicators and windows are not called. `put`, `get`, `accumulate`, `fetch_and_op` and `flush` are beyond numba-mpi.
"""

from __future__ import annotations

try:
    import numba as _numba
except ModuleNotFoundError as _error:
    if _error.name != "numba":
        raise
    raise ImportError("gormapy.numba needs Numba: pip install numba", name="numba") from None

from gormapy.MPI.constants import SUCCESS
from gormapy.numba.collectives import allgather, allreduce, barrier, bcast, gather, reduce, scatter
from gormapy.numba.messages import irecv, isend, recv, send, sendrecv
from gormapy.numba.operators import Operator
from gormapy.numba.process import handle, initialized, last_error, query_thread, rank, size, wtime
from gormapy.numba.requestmemory import RequestType
from gormapy.numba.requests import test, testall, testany, wait, waitall, waitany
from gormapy.numba.windows import accumulate, fetch_and_op, flush, flush_all, get, put

__all__ = [
    "SUCCESS",
    "Operator",
    "RequestType",
    "accumulate",
    "allgather",
    "allreduce",
    "barrier",
    "bcast",
    "fetch_and_op",
    "flush",
    "flush_all",
    "gather",
    "get",
    "handle",
    "initialized",
    "irecv",
    "isend",
    "last_error",
    "put",
    "query_thread",
    "rank",
    "recv",
    "reduce",
    "scatter",
    "send",
    "sendrecv",
    "size",
    "test",
    "testall",
    "testany",
    "wait",
    "waitall",
    "waitany",
    "wtime",
]
