"""Options that are read when gormapy.MPI is imported."""

from __future__ import annotations

import sys


class Rc:
    """Runtime configuration options.

    The options are those of mpi4py.rc. The level of thread support is always "multiple", whatever `threads` and
    `thread_level` say.

    Attributes
    ----------
    initialize : bool
        Initialize MPI when gormapy.MPI is imported (default: True).
    threads : bool
        Request thread support (default: True).
    thread_level : {"multiple", "serialized", "funneled", "single"}
        Level of thread support to request (default: "multiple").
    finalize : None or bool
        Finalize MPI at exit (default: None, which is what `initialize` says).
    fast_reduce : bool
        Use tree-based reductions for objects (default: True).
    recv_mprobe : bool
        Use matched probes to receive objects (default: True).
    irecv_bufsz : int
        Least room in bytes that `irecv()` prepares for an object (default: 32768).
    errors : {"exception", "default", "abort", "fatal"}
        Error handling policy (default: "exception").

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
