"""Windows of every flavour with the same interface for loops."""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

# By the names that command lines use, and by those of the calls.
FLAVOURS = {
    "create": "Win.Create",
    "allocate": "Win.Allocate",
    "dynamic": "Win.Create_dynamic",
    "shared": "Win.Allocate_shared",
}


@dataclass
class Exposed:
    """A window of one flavour."""

    win: Any
    memory: np.ndarray  # the memory that this rank exposes, as bytes
    starts: list  # by rank, the displacement of the first byte: an address where memory was attached


@contextmanager
def window(MPI, comm, flavour, size):
    """Make a window in which every rank exposes `size` bytes, and free it afterwards."""
    made = _make(MPI, comm, flavour, size)
    try:
        yield made
    except NotImplementedError:  # all ranks get these errors; after others some ranks would not take part in Free
        _free(made, flavour)
        raise
    _free(made, flavour)


def _make(MPI, comm, flavour, size):
    starts = [0] * comm.size
    if flavour == "create":
        memory = np.zeros(size, "b")
        return Exposed(MPI.Win.Create(memory, 1, comm=comm), memory, starts)
    if flavour == "dynamic":
        memory = np.zeros(size, "b")
        win = MPI.Win.Create_dynamic(comm=comm)
        win.Attach(memory)
        return Exposed(win, memory, comm.allgather(MPI.Get_address(memory)))
    make = MPI.Win.Allocate_shared if flavour == "shared" else MPI.Win.Allocate
    try:
        win = make(size, 1, comm=comm)
    except MPI.Exception as error:
        if error.Get_error_class() != MPI.ERR_RMA_SHARED:
            raise
        raise NotImplementedError("the ranks are on several nodes, which share no memory") from None
    return Exposed(win, np.frombuffer(win.tomemory(), "b"), starts)


def _free(made, flavour):
    if flavour == "dynamic":
        made.win.Detach(made.memory)
    made.memory = None  # a library may refuse to free memory that is still referenced
    made.win.Free()


@contextmanager
def own_memory(MPI, win, rank):
    """Hold the lock on the own part of a window, so that loads and stores are in order with the others' accesses."""
    win.Lock(rank, MPI.LOCK_EXCLUSIVE)
    yield
    win.Unlock(rank)
