"""One-sided MPI for Python, with the API of mpi4py and a Go core.

``from gormapy import MPI`` is the way in; `gormapy.rc` has the options that it reads.
"""

from ._rc import rc
from ._version import __version__

__all__ = ["MPI", "__version__", "get_config", "get_include", "rc"]


def get_include():
    """Return the directory with header files, of which gormapy has none."""
    import os

    return os.path.join(os.path.dirname(__file__), "include")


def get_config():
    """Return a dictionary with information about MPI, which is empty: nothing was configured."""
    return {}


def __getattr__(name):
    if name == "MPI":
        import importlib

        return importlib.import_module("gormapy.MPI")
    raise AttributeError(f"module 'gormapy' has no attribute {name!r}")
