"""Synchronization of processes: one after the other, counters, locks, conditions and semaphores.

`Counter` is an atomic operation on one rank's memory. `Mutex` has the rank that came last in such a memory. A rank
that finds another there tells it, and waits in a receive; the other sends it a message when it releases the mutex.
`Condition` and `Semaphore` keep what they know in memory that only the owner of their mutex touches. Nobody polls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gormapy import MPI
from gormapy.MPI import COMM_SELF, INFO_NULL

from .cell import Cell, not_freed

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from gormapy.typing import T

__all__ = ["Condition", "Counter", "Mutex", "Semaphore", "Sequential"]

_NOTHING = (bytearray(), 0, MPI.BYTE)


class Sequential:
    """Sequential execution.

    Context manager: the ranks of a communicator execute the block one after the other.
    """

    def __init__(self, comm: MPI.Intracomm, tag: int = 0) -> None:
        """Initialize sequential execution.

        Parameters
        ----------
        comm : Intracomm
            The ranks.
        tag : int
            Of the messages with which ranks tell the next.
        """
        self.comm = comm
        self.tag = tag

    def __enter__(self) -> Self:
        """Enter sequential execution."""
        self.begin()
        return self

    def __exit__(self, *exc: object) -> None:
        """Exit sequential execution."""
        self.end()

    def begin(self) -> None:
        """Begin sequential execution."""
        rank = self.comm.Get_rank()
        if rank > 0:
            self.comm.Recv(_NOTHING, rank - 1, self.tag)

    def end(self) -> None:
        """End sequential execution."""
        rank = self.comm.Get_rank()
        if rank < self.comm.Get_size() - 1:
            self.comm.Send(_NOTHING, rank + 1, self.tag)


class Counter:
    """Global counter.

    It gives each number once, to one of the ranks. It is made and freed by all ranks of the communicator.
    """

    def __init__(
        self,
        start: float = 0,
        step: float = 1,
        *,
        typecode: str = "i",
        comm: MPI.Intracomm = COMM_SELF,
        info: MPI.Info = INFO_NULL,
        root: int = 0,
    ) -> None:
        """Initialize global counter.

        Parameters
        ----------
        start, step : int or float
            The first number, and what is added each time.
        typecode : str
            The type of the numbers.
        comm : Intracomm
            The ranks.
        info : Info
            Hints for the window.
        root : int
            The rank in whose memory the counter is.
        """
        self._step = step
        self._cell: Cell | None = Cell(comm, root, [start], typecode, info)

    def __iter__(self) -> Self:
        """Implement ``iter(self)``."""
        return self

    def __next__(self) -> int:
        """Implement ``next(self)``."""
        return self.next()

    def next(self, incr: float | None = None) -> int:
        """Return current value and increment.

        Parameters
        ----------
        incr : int or float, optional
            What to add (default: `step`).
        """
        return not_freed(self._cell, "counter").add(self._step if incr is None else incr)

    def free(self) -> None:
        """Free counter resources. Collective."""
        cell, self._cell = self._cell, None
        if cell is not None:
            cell.free()


class Mutex:
    """Mutual exclusion.

    One rank of the communicator owns it at a time, in the order in which they came. It is made and freed by all ranks.
    """

    _NOBODY = -1
    _NEXT, _YOURS = 1, 2  # tags: I come after you; it is yours

    def __init__(self, *, recursive: bool = False, comm: MPI.Intracomm = COMM_SELF, info: MPI.Info = INFO_NULL) -> None:
        """Initialize mutex object.

        Parameters
        ----------
        recursive : bool
            Whether its owner may acquire it again.
        comm : Intracomm
            The ranks.
        info : Info
            Hints for the window.
        """
        self._recursive = bool(recursive)
        self._comm: MPI.Intracomm | None = comm.Dup()
        self._rank = comm.Get_rank()
        self._count = 0
        self._last = Cell(self._comm, 0, [self._NOBODY], "i", info)  # the rank that came last

    def __enter__(self) -> Self:
        """Acquire mutex."""
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        """Release mutex."""
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Acquire mutex.

        Parameters
        ----------
        blocking : bool
            Whether to wait for it (default: True).

        Returns
        -------
        Whether it was acquired.
        """
        comm = not_freed(self._comm, "mutex")
        if self._count:
            if not self._recursive:
                raise RuntimeError("cannot acquire already held mutex")
        elif not blocking:
            if self._last.compare_and_swap(self._NOBODY, self._rank) != self._NOBODY:
                return False
        else:
            before = self._last.swap(self._rank)
            if before != self._NOBODY:
                comm.Send(_NOTHING, before, self._NEXT)
                comm.Recv(_NOTHING, before, self._YOURS)
        self._count += 1
        return True

    def release(self) -> None:
        """Release mutex."""
        comm = not_freed(self._comm, "mutex")
        if not self._count:
            raise RuntimeError("cannot release unheld mutex")
        if self._count == 1 and self._last.compare_and_swap(self._rank, self._NOBODY) != self._rank:
            status = MPI.Status()
            comm.Recv(_NOTHING, MPI.ANY_SOURCE, self._NEXT, status)
            comm.Send(_NOTHING, status.source, self._YOURS)
        self._count -= 1

    def locked(self) -> bool:
        """Return whether the mutex is held."""
        not_freed(self._comm, "mutex")
        return self._count > 0

    def count(self) -> int:
        """Return the recursion count."""
        not_freed(self._comm, "mutex")
        return self._count

    def free(self) -> None:
        """Free mutex resources, after releasing the mutex if it is held. Collective."""
        if self._comm is None:
            return
        self._release_all()
        comm, self._comm = self._comm, None
        self._last.free()
        comm.Free()

    def _release_all(self):
        """Release it as often as it was acquired; return how often."""
        count = self._count
        if count:
            self._count = 1
            self.release()
        return count


class Condition:
    """Condition variable.

    Ranks that own its mutex wait until another one that owns it notifies them, in the order in which they came. It is
    made and freed by all ranks of the communicator.
    """

    _NOTIFIED = 3
    _FIRST, _COUNT, _QUEUE = 0, 1, 2  # places in the memory

    def __init__(
        self,
        mutex: Mutex | None = None,
        *,
        recursive: bool = True,
        comm: MPI.Intracomm = COMM_SELF,
        info: MPI.Info = INFO_NULL,
    ) -> None:
        """Initialize condition variable object.

        Parameters
        ----------
        mutex : Mutex, optional
            The mutex to use. Without it, a new one.
        recursive, comm, info
            Of the new mutex.
        """
        self._own = mutex is None
        if mutex is None:
            mutex = Mutex(recursive=recursive, comm=comm, info=info)
        self._mutex: Mutex | None = mutex
        self._comm = not_freed(mutex._comm, "mutex").Dup()
        self._size = self._comm.Get_size()
        self._waiting = Cell(self._comm, 0, [0] * (self._QUEUE + self._size), "i", info)

    def __enter__(self) -> Self:
        """Acquire mutex."""
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        """Release mutex."""
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Acquire the mutex; see `Mutex.acquire`."""
        return self._there().acquire(blocking)

    def release(self) -> None:
        """Release the mutex."""
        self._there().release()

    def locked(self) -> bool:
        """Return whether the mutex is held."""
        return self._there().locked()

    def wait(self) -> Literal[True]:
        """Wait until notified by another process."""
        mutex = self._held("wait on")
        count = self._waiting.add(1, self._COUNT)
        place = (self._waiting.get(self._FIRST) + count) % self._size
        self._waiting.swap(self._comm.Get_rank(), self._QUEUE + place)
        held = mutex._release_all()
        try:
            self._comm.Recv(_NOTHING, MPI.ANY_SOURCE, self._NOTIFIED)
        finally:
            mutex.acquire()
            mutex._count = held
        return True

    def wait_for(self, predicate: Callable[[], T]) -> T:
        """Wait until a predicate evaluates to true.

        Parameters
        ----------
        predicate : callable
            Called before waiting, and each time after being notified. Its last result is returned.
        """
        self._held("wait on")
        result = predicate()
        while not result:
            self.wait()
            result = predicate()
        return result

    def notify(self, n: int = 1) -> int:
        """Wake up one or more processes waiting on this condition.

        Parameters
        ----------
        n : int
            How many at most (default: 1).

        Returns
        -------
        How many were waiting and are notified.
        """
        self._held("notify")
        count = self._waiting.get(self._COUNT)
        n = min(n, count)
        if n <= 0:
            return 0
        first = self._waiting.get(self._FIRST)
        for k in range(n):
            rank = self._waiting.get(self._QUEUE + (first + k) % self._size)
            self._comm.Send(_NOTHING, rank, self._NOTIFIED)
        self._waiting.swap((first + n) % self._size, self._FIRST)
        self._waiting.add(-n, self._COUNT)
        return n

    def notify_all(self) -> int:
        """Wake up all processes waiting on this condition; return how many."""
        return self.notify(self._size)

    def free(self) -> None:
        """Free condition resources, after releasing the mutex if it is held. Collective."""
        mutex, self._mutex = self._mutex, None
        if mutex is None:
            return
        if mutex._comm is not None:
            mutex._release_all()
        if self._own:
            mutex.free()
        self._waiting.free()
        self._comm.Free()

    def _there(self):
        return not_freed(self._mutex, "condition")

    def _held(self, verb):
        mutex = self._there()
        if not mutex.locked():
            raise RuntimeError(f"cannot {verb} a condition whose mutex is not held")
        return mutex


class Semaphore:
    """Semaphore object.

    A number that ranks take one from, and wait while it is zero. It is made and freed by all ranks of the communicator.
    """

    def __init__(
        self,
        value: int = 1,
        *,
        bounded: bool = True,
        comm: MPI.Intracomm = COMM_SELF,
        info: MPI.Info = INFO_NULL,
    ) -> None:
        """Initialize semaphore object.

        Parameters
        ----------
        value : int
            The first number.
        bounded : bool
            Whether it is an error to exceed it (default: True).
        comm : Intracomm
            The ranks.
        info : Info
            Hints for the windows.
        """
        if value < 0:
            raise ValueError("initial value must be non-negative")
        self._value = value
        self._bounded = bool(bounded)
        self._counter: Counter | None = Counter(value, comm=comm, info=info)
        self._condition = Condition(recursive=False, comm=comm, info=info)

    def __enter__(self) -> Self:
        """Acquire semaphore."""
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        """Release semaphore."""
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Acquire semaphore, decrementing the internal counter by one.

        Parameters
        ----------
        blocking : bool
            Whether to wait while it is zero (default: True).

        Returns
        -------
        Whether it was acquired.
        """
        counter = not_freed(self._counter, "semaphore")
        with self._condition:
            while counter.next(0) == 0:
                if not blocking:
                    return False
                self._condition.wait()
            counter.next(-1)
        return True

    def release(self, n: int = 1) -> None:
        """Release semaphore, incrementing the internal counter by one or more.

        Parameters
        ----------
        n : int
            How much to add (default: 1).
        """
        if n < 1:
            raise ValueError("increment must be one or more")
        counter = not_freed(self._counter, "semaphore")
        with self._condition:
            if self._bounded and counter.next(0) + n > self._value:
                raise ValueError("semaphore released too many times")
            counter.next(n)
            self._condition.notify(n)

    def free(self) -> None:
        """Free semaphore resources. Collective."""
        counter, self._counter = self._counter, None
        if counter is not None:
            counter.free()
            self._condition.free()
