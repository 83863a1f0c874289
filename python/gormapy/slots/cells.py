"""Cells: the words that slots have beside their memory."""

from collections import deque

import gormapy

CELL = 64  # bytes: a cache line
WORDS = CELL // 8

# Words of a local slot's cell.
RECEIVED, SENT = 0, 1
# Words of a global slot's cell: its number while it lives (0: destroyed), its lock, the number of waiters for the lock.
ALIVE, LOCK, WAITERS = 0, 1, 2

_CHUNK = 1024  # cells that are allocated at a time


class Cells:
    """The cells of one process in a space, of which other ranks know the addresses.

    Their memory stays until the space is closed: a rank that has the address of a destroyed slot's cell still
    finds words there, and sees that the number is another. Numbers are not used twice.
    """

    def __init__(self, attach):
        self._attach = attach
        self._arrays = []
        self._free = deque()
        self._number = 0
        self._grow()

    def _grow(self):
        array = gormapy.shared_zeros(_CHUNK * WORDS + WORDS, "i8")
        address = array.ctypes.data
        self._attach(address, array.nbytes, array)
        self._arrays.append(array)
        first = -(-address // CELL) * CELL
        self._free.extend(range(first, first + _CHUNK * CELL, CELL))

    @property
    def sample(self):
        """The address of a cell that is not in use."""
        return self._free[0]

    def take(self):
        """Return the address of a cell for a new slot, all zero."""
        if not self._free:
            self._grow()
        address = self._free.popleft()
        array = next(a for a in self._arrays if a.ctypes.data <= address < a.ctypes.data + a.nbytes)
        at = (address - array.ctypes.data) // 8
        array[at : at + WORDS] = 0
        return address

    def give_back(self, address):
        """Take back a cell; it is the last one to be used again."""
        self._free.append(address)

    def number(self):
        """Return a number for a new global slot."""
        self._number += 1
        return self._number
