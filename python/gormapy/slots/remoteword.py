"""Words that are accessed by one-sided calls, because they are not mapped here."""

import numpy as np

from gormapy import MPI
from gormapy._ext import fast

from .errors import SlotError


class RemoteWord:
    """A counter of 8 bytes in the memory of a rank; the methods are those of `gormapy._fast.Word`.

    Every change is an atomic operation of the window, also one of the rank's own words: what makes an
    element atomic is then the same for all. Before a word announces data, the data are flushed.
    """

    __slots__ = ("_address", "_near", "_space", "label", "last", "rank")

    def __init__(self, space, rank, address, owner, label):
        self._space, self.rank, self._address, self.label, self.last = space, rank, address, label, 0
        self._near = fast.Word(space._win._h, rank, address, owner, label) if rank == space.rank else None

    def _fetch(self, value, op):
        result = np.empty(1, "i8")
        win = self._space._window()
        win.Fetch_and_op(np.array([value], "i8"), result, self.rank, self._address, op)
        win.Flush(self.rank)
        return int(result[0])

    def load(self):
        """Return the word's value."""
        return self._fetch(0, MPI.NO_OP) if self._near is None else self._near.load()

    def store(self, value):
        """Store a value."""
        self._fetch(value, MPI.REPLACE)
        self.last = value

    def add(self, amount):
        """Add an amount, and return the previous value."""
        return self._fetch(amount, MPI.SUM)

    def swap(self, expected, value):
        """Store a value if the word has the expected one, and return the previous value."""
        result = np.empty(1, "i8")
        win = self._space._window()
        win.Compare_and_swap(np.array([value], "i8"), np.array([expected], "i8"), result, self.rank, self._address)
        win.Flush(self.rank)
        return int(result[0])

    def put(self, address, source, nbytes, value):
        """Put this number of bytes of a buffer at an address of the word's rank, then store a value."""
        memory = memoryview(source).cast("B")
        if len(memory) != nbytes:
            raise ValueError(f"{self.label}: a token of this channel has {nbytes} bytes, not {len(memory)}")
        self.copy_in(address, memory)
        self.store(value)

    def copy_in(self, address, memory):
        """Put bytes at an address of the word's rank."""
        if len(memory):
            win = self._space._window()
            win.Put([memory, MPI.BYTE], self.rank, address)
            win.Flush(self.rank)

    def take(self, address, nbytes, value):
        """Return bytes at an address of this process, then store a value."""
        token = MPI.buffer.fromaddress(address, nbytes).tobytes()
        self._tell(value)
        return token

    def take_into(self, address, buffer, value):
        """Copy bytes at an address of this process into a buffer, then store a value."""
        memory = memoryview(buffer).cast("B")
        memory[:] = memoryview(MPI.buffer.fromaddress(address, len(memory)))
        self._tell(value)

    def _tell(self, value):
        """Store a value, unless its reader has ended: what it had pushed can still be popped."""
        try:
            self.store(value)
        except MPI.Exception as error:
            if error.Get_error_class() != MPI.ERR_PROC_FAILED:
                raise
            self.last = value

    def wait(self, value, timeout, peers):
        """Wait until the word of this process has at least a value, and return the word's value."""
        if self._near is None:
            raise SlotError("a word of another rank can't be waited for over a network")
        return self._near.wait(value, timeout, peers)

    def wake(self):
        """Do nothing: over a network waiters poll."""
