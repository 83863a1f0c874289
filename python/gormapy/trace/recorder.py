"""Record a part of a program."""

import os
import sys

from . import recording
from .file import join


class record:
    """Context manager that records the calls of a communicator's ranks in its block, into one file.

        with gormapy.trace.record("out.json"):
            ...

    Collective: all ranks of `comm` (default COMM_WORLD) enter and leave it together; the first of them writes the file.
    With comm=MPI.COMM_SELF each rank writes one of its own, and its path should differ. Without a path nothing is
    written. Afterwards `trace` is the Trace, at the rank that writes.

    When the program leaves the block by an exception, the other ranks may never leave it: this rank's part is then
    written to a file of its own, whose name has ".rankN" before the suffix.

    Errors: RuntimeError if a recording is on already, or MPI is not initialized; OSError if the file can't be written.
    """

    def __init__(self, path=None, comm=None):
        self.path, self.comm, self.trace = path, comm, None

    def __enter__(self):
        from gormapy import MPI

        if self.comm is None:
            self.comm = MPI.COMM_WORLD
        recording.start()
        return self

    def __exit__(self, kind, value, traceback):
        part = recording.stop()
        if kind is not None:
            self._alone(part)
            return
        parts = self.comm.gather(part)
        if self.comm.rank == 0:
            self.trace = join(parts, self.path)

    def _alone(self, part):
        """Save the part of this rank."""
        if self.path is None:
            return
        from gormapy import MPI

        stem, suffix = os.path.splitext(os.fspath(self.path))
        path = f"{stem}.rank{MPI.COMM_WORLD.rank}{suffix}"
        try:
            join([part], path)
        except (OSError, ValueError) as error:
            print(f"gormapy.trace: what was recorded before the exception is lost: {error}", file=sys.stderr)
        else:
            print(f"gormapy.trace: what this rank did before the exception is in {path}", file=sys.stderr)
