"""Doubles of words, slots and spaces for the explorer of `interleaving.py`, and the worlds that are made of them.

The methods of a word are those of pybind/shim/word.c, one step of the explorer for each access to shared memory;
what they ring, and when, is the same. Memory that Python code reads without a word is read by a step as well.
"""

import numpy as np
from interleaving import GONE, Explorer

from gormapy import MPI
from gormapy.slots.cells import CELL
from gormapy.slots.lock import Lock


class Word:
    """A word at an address; rank -1 is one that nobody sleeps for."""

    def __init__(self, process, rank, address):
        self._process, self.rank, self._address = process, rank, address
        self.last = 0

    def state(self):
        return self._address, self.last

    def load(self):
        return self._process.step("load", self._address)

    def store(self, value):
        self._process.step("store", self._address, value, self.rank)
        self.last = value

    def add(self, amount):
        return self._process.step("add", self._address, amount, self.rank)

    def swap(self, expected, value):
        return self._process.step("swap", self._address, expected, value, self.rank)

    def put(self, address, source, nbytes, value):
        data = bytes(memoryview(source).cast("B"))
        assert len(data) == nbytes
        self._process.step("write", address, data)
        self.store(value)

    def copy_in(self, address, source):
        self._process.step("write", address, bytes(source))

    def move(self, to, source, nbytes, amount):
        self._process.step("write", to, self._process.step("read", source, nbytes))
        self.add(amount)

    def take(self, address, nbytes, value):
        token = self._process.step("read", address, nbytes)
        self.store(value)
        return token

    def take_into(self, address, buffer, value):
        memory = memoryview(buffer).cast("B")
        memory[:] = self._process.step("read", address, len(memory))
        self.store(value)

    def wait(self, value, timeout, peers):
        # how long a time-out is does not matter where time does not pass
        timeout = timeout if timeout is None else int(timeout > 0)
        found = self._process.step("wait", self._address, value, timeout, tuple(peers))
        if found == GONE:
            raise MPI.Exception(MPI.ERR_PROC_FAILED)
        return found

    def wake(self):
        self._process.step("wake")


class Memory:
    """Memory that a process reads as if it were an array of bytes; it is read when its bytes are asked for."""

    def __init__(self, process, address, nbytes):
        self._process, self._address, self._nbytes = process, address, nbytes

    def state(self):
        return self._address, self._nbytes

    def __len__(self):
        return self._nbytes

    def __getitem__(self, part):
        first, last, _ = part.indices(self._nbytes)
        return Memory(self._process, self._address + first, last - first)

    def __bytes__(self):
        return self._process.step("read", self._address, self._nbytes)

    def __array__(self, dtype=None, copy=None):
        return np.frombuffer(bytes(self), "u1")

    def view(self, dtype):
        assert dtype == "i8"
        return Integers(self)


class Integers:
    """Memory of integers, in rows if it has been given that shape."""

    def __init__(self, memory, shape=None):
        self._memory, self._shape = memory, shape or (len(memory) // 8,)

    def reshape(self, *shape):
        return Integers(self._memory, shape)

    def __len__(self):
        return self._shape[0]

    def __getitem__(self, at):
        if not 0 <= at < len(self):
            raise IndexError(at)
        width = len(self._memory) // len(self)
        part = self._memory[at * width : (at + 1) * width]
        return Integers(part) if len(self._shape) > 1 else int.from_bytes(bytes(part), "little", signed=True)


class Core:
    """Stands for gormapy._ext.core; a window's handle is the process."""

    @staticmethod
    def WinGone(process, rank):
        return f"rank {rank} has ended" if process.step("gone", rank) else ""


class Space:
    """A space as one process sees it."""

    def __init__(self, process, mapped):
        self.rank, self.mapped = process.rank, mapped
        self._process = self._h = process
        self._ends = set()
        self._win = self._comm = self
        self._seen = None

    def state(self):
        return self._seen

    def forget(self):
        """Tell the explorer that nothing counts any more but what is in variables."""
        self._process.forget()

    def Iprobe(self):
        """Stands for what lets the transports have their turn."""

    def _nap(self, seconds):
        # until there is something new to see: what memory was at the last nap, the process has looked at since
        self._seen = self._process.step("nap", self._seen)


class Slot:
    """A global slot as one process sees it; at its owner also the local one."""

    def __init__(self, space, region):
        self.rank, self.address, self.nbytes = region
        self._space = space
        self.source = self
        self._memory = Memory(space._process, self.address, self.nbytes)
        lock = self.address + self.nbytes
        word, waiters = Word(space._process, -1, lock), Word(space._process, -1, lock + 8)
        self._lock = Lock(space, word, waiters, "slot")

    def state(self):
        return self.address

    def place(self, offset=0):
        return self.address + offset

    def word(self, offset, label=""):
        assert offset % 8 == 0 and 0 <= offset <= self.nbytes - 8
        return Word(self._space._process, self.rank, self.address + offset)


class World:
    """Memory, and the processes that use it."""

    def __init__(self, mapped=True):
        self._mapped, self._size, self._functions = mapped, 0, []

    def slot(self, rank, nbytes=CELL):
        """Add a slot of a rank's with a lock, and return what `process` takes for it."""
        address, nbytes = self._size, -(-nbytes // 8) * 8
        self._size += nbytes + 16
        return rank, address, nbytes

    def process(self, function, *regions):
        """Add a process: a function of a space and its view of some slots. Its rank is the next number."""

        def run(process):
            space = Space(process, self._mapped)
            return function(space, *(Slot(space, region) for region in regions))

        self._functions.append(run)

    def explore(self, check, **options):
        """Follow all schedules; `check` is given the Ending of each."""
        return Explorer(bytes(self._size), self._functions, check, **options).explore()
