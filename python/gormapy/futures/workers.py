"""The communicator of the workers, for tasks that communicate with each other."""

from __future__ import annotations

import threading
from contextlib import contextmanager

from gormapy import MPI

_process: list[MPI.Intracomm] = []  # of this process, the innermost last
_thread = threading.local()  # of this thread, if it is a worker


@contextmanager
def serving(comm, in_thread=False):
    """Let `get_comm_workers` return a communicator: in this process, or in this thread only."""
    stack = _process
    if in_thread:
        stack = _thread.__dict__.setdefault("stack", [])
    stack.append(comm)
    try:
        yield
    finally:
        stack.pop()


def get_comm_workers() -> MPI.Intracomm:
    """Return, in a task, the communicator of the workers of its executor.

    Its ranks are the workers; tasks that communicate with each other must run at the same time, one on each worker.

    Errors: RuntimeError outside of a task.
    """
    stack = getattr(_thread, "stack", None) or _process
    if not stack:
        raise RuntimeError("get_comm_workers: this is not a worker: call it in a task")
    return stack[-1]
