"""Record what the ranks of a job do, and look at it.

mpiexec --trace out.json python script.py records a whole job, `with gormapy.trace.record("out.json"):` a part of a
program, `start` and `stop` what one process does. The file is for https://ui.perfetto.dev; `load` makes arrays of it,
gormapy.plot draws pictures, python -m gormapy.trace out.json prints a table.
"""

from typing import TYPE_CHECKING

from .recording import is_on, start, stop

if TYPE_CHECKING:
    from .file import Trace, join, load
    from .recorder import record

__all__ = ["Trace", "is_on", "join", "load", "record", "start", "stop"]


def __getattr__(name):
    if name in ("Trace", "join", "load"):  # which need NumPy; a rank that is recorded need not
        from . import file

        return getattr(file, name)
    if name == "record":
        from .recorder import record

        return record
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
