"""Execute computations concurrently using MPI processes, with the names of mpi4py.futures.

An executor runs calls in workers, which are other ranks:

    mpiexec -n 4 python -m gormapy.futures script.py

Rank 0 runs the script, where `MPIPoolExecutor` has three workers then. `MPICommExecutor` makes workers of the ranks of
a communicator.
"""

from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    InvalidStateError,
    TimeoutError,
    as_completed,
    wait,
)

from .commexecutor import MPICommExecutor
from .executor import MPIPoolExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from .util import collect, compose
from .workers import get_comm_workers

__all__ = [
    "ALL_COMPLETED",
    "FIRST_COMPLETED",
    "FIRST_EXCEPTION",
    "BrokenExecutor",
    "CancelledError",
    "Executor",
    "Future",
    "InvalidStateError",
    "MPICommExecutor",
    "MPIPoolExecutor",
    "ProcessPoolExecutor",
    "ThreadPoolExecutor",
    "TimeoutError",
    "as_completed",
    "collect",
    "compose",
    "get_comm_workers",
    "wait",
]


def __getattr__(name):
    if name in ("_core", "aplus"):  # private, and rarely used
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
