"""One-sided MPI for Python, with the API of mpi4py and a Go core.

``from gormapy import MPI`` is the way in; `gormapy.rc` has the options that it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._profile import profile
from ._rc import Rc as Rc
from ._rc import rc
from ._version import __version__

if TYPE_CHECKING:
    from . import MPI
    from .shared import shared_arrays, shared_empty, shared_zeros

__all__ = [
    "MPI",
    "__version__",
    "get_config",
    "get_include",
    "join",
    "profile",
    "rc",
    "reset",
    "shared_arrays",
    "shared_empty",
    "shared_zeros",
]


def get_include() -> str:
    """Return the directory with header files, of which gormapy has none."""
    import os

    return os.path.join(os.path.dirname(__file__), "include")


def get_config() -> dict[str, str]:
    """Return a dictionary with information about MPI, which is empty: nothing was configured."""
    return {}


def join(rank: int, size: int, address: str, secret: str = "") -> None:
    """Make this process a rank of a job whose processes something else has started, such as Ray or a test.

    It is called before ``gormapy.MPI`` is imported, which joins the job: it waits there until all processes have.
    `rank` is that of this process, `size` the number of processes. `address` is HOST:PORT at which rank 0 listens for
    the others, and by which they reach it. `secret` is what all processes of the job know and no others do, by default
    that of ``GORMAPY_SECRET``.

    Errors: ValueError for a rank that is not below `size`; RuntimeError if MPI is initialized already.
    """
    import operator

    from ._ext import core

    rank, size = operator.index(rank), operator.index(size)
    if not 0 <= rank < size:
        raise ValueError(f"join: rank {rank} of {size}: ranks are 0 to {size - 1}")
    if core.Join(rank, size, str(address), str(secret)):
        raise RuntimeError("gormapy.join: MPI is initialized already: call it before gormapy.MPI is imported")


def reset() -> None:
    """Put communication back into a defined state after a Ctrl-C or an exception inside of it.

    Collective: every rank of the job that still runs has to call it, and it waits for them. Afterwards nothing of
    before is in flight: requests that were not complete have failed with MPI_ERR_PENDING, messages that were not
    received are gone, all epochs of windows are closed and all locks free, and collective operations start afresh on
    all communicators. Communicators, windows and the data in them stay. MPI has no such call.
    """
    from . import check
    from ._ext import fast

    fast.reset()
    check.was_reset()


if not TYPE_CHECKING:  # a checker would believe that every name is there

    def __getattr__(name):
        if name == "MPI":
            import importlib

            return importlib.import_module("gormapy.MPI")
        if name in ("shared_arrays", "shared_empty", "shared_zeros"):  # here on first use: they need NumPy
            from . import shared

            return getattr(shared, name)
        raise AttributeError(f"module 'gormapy' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Give a notebook %%mpi and %mpi: ``%load_ext gormapy``."""
    from .magic import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take %%mpi and %mpi away, and end the ranks."""
    from .magic import unload_ipython_extension as unload

    unload(shell)
