"""The process: its rank, the time, handles and the last error."""

from __future__ import annotations

from gormapy import MPI
from gormapy.MPI import exception
from gormapy.MPI.constants import THREAD_MULTIPLE
from gormapy.numba import functions as c
from gormapy.numba.arguments import compilable

WORLD = MPI.COMM_WORLD._h
"""Handle of COMM_WORLD, the default of each call's `comm`."""


def handle(obj: MPI.Comm | MPI.Win) -> int:
    """Return the integer by which a communicator or a window is given to the calls.

    It is made in Python, and passed to compiled functions. 0: the object was freed, or is null.

    Errors: TypeError for another object, or an intercommunicator.
    """
    if isinstance(obj, MPI.Comm) and obj._two_groups:
        raise TypeError("handle: expecting a communicator of one group, got an intercommunicator")
    if not isinstance(obj, (MPI.Comm, MPI.Win)):
        raise TypeError(f"handle: expecting a Comm or a Win, got {type(obj).__name__}")
    return MPI._handleof(obj)


def last_error() -> str:
    """Return the text of the last error of this thread's calls, "" if there is none."""
    code = c.last_error()
    return exception.error_text(code) if code else ""


@compilable
def initialized() -> bool:
    """Report whether MPI is initialized.

    MPI 4.1, section 11.2.
    """
    return c.initialized() != 0


@compilable
def query_thread() -> int:
    """Return the level of thread support, always THREAD_MULTIPLE.

    MPI 4.1, section 11.6.
    """
    return THREAD_MULTIPLE


@compilable
def rank(comm=WORLD) -> int:
    """Return the rank of this process, 0 after an error.

    `comm` is the `handle` of a communicator, by default COMM_WORLD.

    MPI 4.1, section 7.4.1.
    """
    return c.rank(comm)


@compilable
def size(comm=WORLD) -> int:
    """Return the number of processes, 0 after an error.

    `comm` is the `handle` of a communicator, by default COMM_WORLD.

    MPI 4.1, section 7.4.1.
    """
    return c.size(comm)


@compilable
def wtime() -> float:
    """Return the time of a clock in seconds, of which only differences mean something.

    MPI 4.1, section 9.6.
    """
    return c.wtime()
