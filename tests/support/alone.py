"""Tests that run alone, though several workers of pytest-xdist run tests.

Two locks, of files that all workers of a session share. Whoever has *room* is running a test: several tests, or one that
is alone. Room is only asked for by the one who has the *gate*. A test that is alone keeps the gate until it has ended, so
no more tests begin while it waits for those that run.
"""

import fcntl
from contextlib import contextmanager
from pathlib import Path


def shared_folder(config):
    """The folder that all workers of a session share, None if there are no workers."""
    # Each worker has a folder of its own in that of the session.
    return Path(config.option.basetemp).parent if hasattr(config, "workerinput") else None


@contextmanager
def turn(config, alone):
    """Wait until a test may run, and let others run afterwards."""
    folder = shared_folder(config)
    if folder is None:  # the only process that runs tests
        yield
        return
    with open(folder / "gate.lock", "a") as gate, open(folder / "room.lock", "a") as room:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            yield
        finally:  # closing does not unlock while a child that was forked has the file
            fcntl.flock(room, fcntl.LOCK_UN)
            fcntl.flock(gate, fcntl.LOCK_UN)
