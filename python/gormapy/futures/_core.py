"""Names of ``mpi4py.futures._core`` that programs use although they are private; mpi4py's own tests do."""

from __future__ import annotations

from typing import Any

from gormapy import MPI

from . import starting
from .failure import RemoteTraceback
from .mainmodule import RUN_NAME as MAIN_RUN_NAME

__all__ = ["MAIN_RUN_NAME", "RemoteTraceback", "comm_split", "serialized", "setup_mpi_threads"]


def __getattr__(name: str) -> Any:
    if name == "SharedPool":
        return starting.pool_for if starting.is_shared() else None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def setup_mpi_threads() -> None:
    """Do nothing: threads may call MPI at any time."""


def serialized(function: Any) -> Any:
    """Return the function: calls of MPI need no lock."""
    return function


serialized.lock = None


def comm_split(comm: MPI.Intracomm, root: int) -> tuple[MPI.Intercomm, MPI.Intracomm]:
    """Divide a communicator into its root and the others; return the intercommunicator and the local part."""
    rank = comm.Get_rank()
    local = comm.Split(int(rank != root), rank)
    other = (0 if root else 1) if rank == root else root
    return local.Create_intercomm(0, comm, other, tag=0), local
