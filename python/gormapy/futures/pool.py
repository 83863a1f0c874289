"""Pools: what an executor hands its tasks to, and what runs them takes them from."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from concurrent.futures import BrokenExecutor, InvalidStateError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .task import Task


class Pool:
    """The tasks of one executor that nobody has begun yet, and whether there may be more.

    Threads of the program append tasks; the threads that run or send them take them from the other end. A pool is open,
    then closed or broken. It has ended when it is not open, and all its tasks are finished.
    """

    def __init__(self, size: int, offer: Callable[[], None], wake: Callable[[], None]) -> None:
        self.size = size  # workers
        self.queue: deque[Task] = deque()
        self.event = threading.Event()  # the workers are ready, or never will be
        self.ended = threading.Event()
        self.closed = False
        self.broken: str | None = None
        self._cause: BaseException | None = None
        self._lock = threading.Lock()  # held to append, and to break
        self._offer, self._wake = offer, wake  # tell those who take tasks of one more, and of another change

    # The program's side
    # ------------------

    def push(self, task: Task) -> None:
        """Append a task."""
        with self._lock:
            if self.broken is not None:
                raise self._error()
            if self.closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self.queue.append(task)
        self._offer()

    def close(self) -> None:
        """Take no more tasks. What is there is still done.

        Garbage collection may call it, in any thread and place: it takes no lock.
        """
        self.closed = True
        self._wake()

    def close_after(self, owner: Any) -> None:
        """Close when an object is gone."""
        pool = weakref.ref(self)

        def close(_):
            if (left := pool()) is not None:
                left.close()

        self._owner = weakref.ref(owner, close)

    def cancel(self) -> None:
        """Cancel the tasks that nobody has begun."""
        for task in self._drained():
            if task.future.cancel():
                task.begin()  # tells those who wait for it
        self._wake()

    def wait(self) -> None:
        """Wait until the workers are ready, or never will be; not in a thread that makes them so."""
        if not self.is_own_thread():
            self.event.wait()

    def join(self) -> None:
        """Wait until the pool has ended; not in a thread that the pool itself needs for that."""
        if not self.is_own_thread():
            self.ended.wait()

    def is_own_thread(self) -> bool:
        """Report whether the pool's tasks are finished by the calling thread."""
        return False

    @property
    def thread(self) -> Pool:
        """What can be joined to wait for the end. A thread of its own is not needed."""
        return self

    # The side of those who take tasks
    # --------------------------------

    def take(self) -> Task | None:
        """Take the next task that was not cancelled; its future is running then."""
        while True:
            try:
                task = self.queue.popleft()
            except IndexError:
                return None
            if task.begin():
                return task

    def break_off(self, message: str, cause: BaseException | None = None) -> None:
        """Let all tasks that nobody has begun, and all that are to come, end with BrokenExecutor."""
        with self._lock:
            if self.broken is None:
                self.broken, self._cause = message, cause
            self.size = 0
        for task in self._drained():
            if task.begin():
                self.fail(task)
        self.event.set()

    def fail(self, task: Task) -> None:
        """Let a task that has begun end with BrokenExecutor."""
        settle(task, self._error())

    def finish(self) -> None:
        """Tell that the pool has ended."""
        self.closed = True
        self.size = 0
        self.event.set()
        self.ended.set()

    def _drained(self):
        """Return the tasks of the queue, which is empty then."""
        tasks = []
        with contextlib.suppress(IndexError):
            while True:
                tasks.append(self.queue.popleft())
        return tasks

    def _error(self):
        error = BrokenExecutor(self.broken)
        error.__cause__ = self._cause
        return error


def settle(task: Task, error: BaseException | None, result: Any = None) -> None:
    """Finish the future of a task. One that the program has finished itself stays as it is."""
    with contextlib.suppress(InvalidStateError):
        if error is not None:
            task.future.set_exception(error)
        else:
            task.future.set_result(result)
