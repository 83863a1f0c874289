"""Numbers in the memory of one rank that all ranks change atomically."""

from __future__ import annotations

import numpy as np

from gormapy import MPI


def not_freed(resource, name):
    """Return a resource, which is None if it was freed."""
    if resource is None:
        raise RuntimeError(f"{name} already freed")
    return resource


class Cell:
    """Numbers in the memory of one rank, for all ranks of a communicator."""

    def __init__(self, comm, root, values, typecode, info):
        self._root = root
        self._type = np.dtype(typecode)
        there = len(values) if comm.Get_rank() == root else 0
        self._win = MPI.Win.Allocate(there * self._type.itemsize, self._type.itemsize, info, comm)
        if there:
            np.frombuffer(self._win, self._type)[:] = values
        self._win.Lock_all()
        self._win.Sync()
        comm.Barrier()

    def _fetch(self, value, place, op):
        given, found = np.array([value], self._type), np.zeros(1, self._type)
        self._win.Fetch_and_op(given, found, self._root, place, op)
        self._win.Flush(self._root)
        return found[0].item()

    def add(self, value, place=0):
        """Add to a number; return what it was."""
        return self._fetch(value, place, MPI.SUM)

    def swap(self, value, place=0):
        """Set a number; return what it was."""
        return self._fetch(value, place, MPI.REPLACE)

    def get(self, place=0):
        """Return a number."""
        return self._fetch(0, place, MPI.NO_OP)

    def compare_and_swap(self, expected, value, place=0):
        """Set a number if it is what is expected; return what it was."""
        given, compared = np.array([value], self._type), np.array([expected], self._type)
        found = np.zeros(1, self._type)
        self._win.Compare_and_swap(given, compared, found, self._root, place)
        self._win.Flush(self._root)
        return found[0].item()

    def free(self):
        """Free the memory. Collective."""
        self._win.Unlock_all()
        self._win.Free()
