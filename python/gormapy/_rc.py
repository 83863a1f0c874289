"""Options that are read when gormapy.MPI is imported."""

from __future__ import annotations

import sys


class Rc:
    """Options that are read when gormapy.MPI is imported; set them before.

    They are those of mpi4py.rc:

    - `initialize`: initialize MPI at the import (default: True).
    - `threads`, `thread_level`: the level of thread support to request; it is always "multiple", whatever they say.
    - `finalize`: finalize MPI at exit (default: None, which is what `initialize` says).
    - `fast_reduce`, `recv_mprobe`: kept for programs of mpi4py.
    - `irecv_bufsz`: least room in bytes that `irecv()` prepares for an object (default: 32768).
    - `errors`: "exception" (default), "default" or "fatal", which end the job, or "abort".

    Errors: TypeError for an option of another name.
    """

    initialize: bool = True
    threads: bool = True
    thread_level: str = "multiple"
    finalize: bool | None = None
    fast_reduce: bool = True
    recv_mprobe: bool = True
    irecv_bufsz: int = 32768
    errors: str = "exception"

    def __init__(self, **kwargs: bool | int | str | None) -> None:
        """Initialize options."""
        self(**kwargs)

    def __setattr__(self, name: str, value: bool | int | str | None) -> None:
        """Set option."""
        if not hasattr(self, name):
            raise TypeError(f"object has no attribute {name!r}")
        super().__setattr__(name, value)

    def __call__(self, **kwargs: bool | int | str | None) -> None:
        """Update options."""
        for key in kwargs:
            if not hasattr(self, key):
                raise TypeError(f"unexpected argument {key!r}")
        for key, value in kwargs.items():
            setattr(self, key, value)

    def __repr__(self) -> str:
        """Return repr(self)."""
        return "<gormapy.rc>"


rc = Rc()
sys.modules["gormapy.rc"] = rc
