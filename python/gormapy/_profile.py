"""Profiling libraries, which programs of mpi4py may load."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def profile(name: str, *, path: str | Sequence[str] | None = None) -> None:
    """Load a profiling library, which sees no calls: gormapy has no C interface of MPI.

    `path` is a folder, or several. Errors: ValueError if there is no such library.
    """
    import ctypes
    import os
    import warnings

    folders = [path] if isinstance(path, (str, bytes, os.PathLike)) else list(path or [])
    names = [os.fsdecode(name), f"lib{os.fsdecode(name)}.so"]
    found = [file for folder in folders for n in names if os.path.isfile(file := os.path.join(os.fsdecode(folder), n))]
    candidates = found[:1] or ([] if folders else names)
    problem = None
    for file in candidates:
        try:
            ctypes.CDLL(file, ctypes.RTLD_GLOBAL)
        except OSError as error:
            problem = error
        else:
            warnings.warn(f"{file} is loaded, but sees no calls: gormapy has no C interface of MPI", stacklevel=2)
            return
    if found:
        warnings.warn(f"{found[0]} can't be loaded: {problem}", stacklevel=2)
    else:
        raise ValueError(f"there is no profiling library {os.fsdecode(name)!r}")
