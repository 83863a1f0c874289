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
    """Execution of a block by the ranks of a communicator one after the other, as a context manager.

    All ranks execute the block, in the order of ranks: each waits for a message of the rank before.
    """

    def __init__(self, comm: MPI.Intracomm, tag: int = 0) -> None:
        """Choose the ranks.

        `tag` is that of the messages in `comm` with which a rank wakes the next.
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
        """Wait for this rank's turn."""
        rank = self.comm.Get_rank()
        if rank > 0:
            self.comm.Recv(_NOTHING, rank - 1, self.tag)

    def end(self) -> None:
        """Give the turn to the next rank."""
        rank = self.comm.Get_rank()
        if rank < self.comm.Get_size() - 1:
            self.comm.Send(_NOTHING, rank + 1, self.tag)


class Counter:
    """Counter that all ranks of a communicator share: it gives each number once, to one of them.

    It is in the memory of one rank, which need not do anything. It is an iterator, too, which has no end.
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
        """Make the counter; collective over `comm`.

        `start` is the first number, `step` what is added each time, `typecode` the type of the numbers as in Python's
        array module, `root` the rank in whose memory the counter is, `info` hints for its window.
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
        """Return the number, and add `incr`, by default `step`, in one step that no other rank interrupts.

        Errors: RuntimeError if it was freed.
        """
        return not_freed(self._cell, "counter").add(self._step if incr is None else incr)

    def free(self) -> None:
        """Free the counter; collective."""
        cell, self._cell = self._cell, None
        if cell is not None:
            cell.free()


class Mutex:
    """Mutual exclusion: one rank of a communicator at a time has the mutex, in the order in which they came.

    A rank that waits sleeps. As a context manager it is acquired and released.
    """

    _NOBODY = -1
    _NEXT, _YOURS = 1, 2  # tags: I come after you; it is yours

    def __init__(self, *, recursive: bool = False, comm: MPI.Intracomm = COMM_SELF, info: MPI.Info = INFO_NULL) -> None:
        """Make the mutex; collective over `comm`.

        With `recursive` its owner may acquire it again. `info` has hints for its window.
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
        """Acquire the mutex, and return True; without `blocking`, return False if another rank has it.

        Errors: RuntimeError if this rank has it, unless it is recursive, or if it was freed.
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
        """Release the mutex, as often as it was acquired.

        Errors: RuntimeError if this rank does not have it.
        """
        comm = not_freed(self._comm, "mutex")
        if not self._count:
            raise RuntimeError("cannot release unheld mutex")
        if self._count == 1 and self._last.compare_and_swap(self._rank, self._NOBODY) != self._rank:
            status = MPI.Status()
            comm.Recv(_NOTHING, MPI.ANY_SOURCE, self._NEXT, status)
            comm.Send(_NOTHING, status.source, self._YOURS)
        self._count -= 1

    def locked(self) -> bool:
        """Report whether this rank has the mutex."""
        not_freed(self._comm, "mutex")
        return self._count > 0

    def count(self) -> int:
        """Return how often this rank has acquired the mutex."""
        not_freed(self._comm, "mutex")
        return self._count

    def free(self) -> None:
        """Free the mutex, after releasing it if this rank has it; collective."""
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
    """Condition variable: ranks that have its mutex wait until another one notifies them.

    As a context manager its mutex is acquired and released.
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
        """Make the condition; collective over the ranks of its mutex.

        Without `mutex` it makes a new one, with `recursive`, `comm` and `info`.
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
        """Release the mutex; see `Mutex.release`."""
        self._there().release()

    def locked(self) -> bool:
        """Report whether this rank has the mutex."""
        return self._there().locked()

    def wait(self) -> Literal[True]:
        """Release the mutex, wait until another rank notifies this one, and acquire the mutex again.

        Errors: RuntimeError if this rank does not have the mutex.
        """
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
        """Wait until `predicate()` is true, and return what it returned.

        It is called before waiting, and each time after this rank was notified, with the mutex held.

        Errors: RuntimeError if this rank does not have the mutex.
        """
        self._held("wait on")
        result = predicate()
        while not result:
            self.wait()
            result = predicate()
        return result

    def notify(self, n: int = 1) -> int:
        """Wake up at most `n` of the ranks that wait, and return how many.

        They go on when they have the mutex.

        Errors: RuntimeError if this rank does not have the mutex.
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
        """Wake up all ranks that wait, and return how many.

        Errors: RuntimeError if this rank does not have the mutex.
        """
        return self.notify(self._size)

    def free(self) -> None:
        """Free the condition, after releasing its mutex if this rank has it; collective."""
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
    """Semaphore: a number from which each rank takes one, waiting while it is zero.

    As a context manager it is acquired and released.
    """

    def __init__(
        self,
        value: int = 1,
        *,
        bounded: bool = True,
        comm: MPI.Intracomm = COMM_SELF,
        info: MPI.Info = INFO_NULL,
    ) -> None:
        """Make the semaphore; collective over `comm`.

        `value` is the first number; with `bounded` it is an error to exceed it. `info` has hints for its windows.

        Errors: ValueError for a negative value.
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
        """Take one from the number, and return True; without `blocking`, return False if it is zero.

        Errors: RuntimeError if it was freed.
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
        """Add `n` to the number, and wake up ranks that wait for it.

        Errors: ValueError for an `n` below 1, or if the first number would be exceeded; RuntimeError if it was freed.
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
        """Free the semaphore; collective."""
        counter, self._counter = self._counter, None
        if counter is not None:
            counter.free()
            self._condition.free()
