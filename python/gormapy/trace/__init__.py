"""Record the calls and messages of a job's ranks, and analyse them.

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
    if name in ("Trace", "join", "load"):  # they need NumPy; a rank that is recorded does not
        from . import file

        return getattr(file, name)
    if name == "record":
        from .recorder import record

        return record
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
