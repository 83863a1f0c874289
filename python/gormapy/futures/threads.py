"""Pools whose workers are threads of this process."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

from gormapy import MPI

from .pool import Pool, settle
from .workers import serving

if TYPE_CHECKING:
    from .setup import Setup
    from .task import Task

_live: weakref.WeakSet[ThreadPool] = weakref.WeakSet()


class ThreadPool(Pool):
    """A pool that threads take tasks from; without other processes it is also that of MPIPoolExecutor."""

    def __init__(self, size: int, setup: Setup, comm: MPI.Intracomm | None = None) -> None:
        super().__init__(size, self._offered, self._changed)
        self._setup = setup
        self._comm = comm  # for get_comm_workers
        self._changes = threading.Condition(threading.RLock())  # garbage collection may close in the midst of it
        self._left = self._unready = size
        self._threads = [
            threading.Thread(target=self._run, name=f"gormapy.futures-{k}", daemon=True) for k in range(size)
        ]
        _live.add(self)
        for thread in self._threads:
            thread.start()

    def _offered(self):
        with self._changes:
            self._changes.notify()

    def _changed(self):
        with self._changes:
            self._changes.notify_all()

    def is_own_thread(self) -> bool:
        return threading.current_thread() in self._threads

    def _run(self):
        if self._comm is None:
            self._work()
        else:
            with serving(self._comm, in_thread=True):
                self._work()

    def _work(self):
        try:
            self._setup.apply(imported=True)
        except BaseException as error:
            self.break_off(self._setup.failed(error), error)
        with self._changes:
            self._unready -= 1
            if not self._unready:
                self.event.set()
        while self._step():
            pass
        with self._changes:
            self._left -= 1
            last = not self._left
        if last:
            self.finish()

    def _step(self):
        """Run a task, or wait for one. Return False if there will be no more."""
        task = self.take()
        if task is not None:
            run_here(task)
            return True
        with self._changes:
            while not self.queue:
                if self.closed or self.broken is not None:
                    return False
                self._changes.wait()
        return True


def run_here(task: Task) -> None:
    """Run a task in this thread."""
    fn, args, kwargs = task.call
    task.call = None
    try:
        result = fn(*args, **kwargs)
    except BaseException as error:
        settle(task, error)
        del error
    else:
        settle(task, None, result)


def finish_all() -> None:
    """Wait for the tasks of all pools of threads."""
    for pool in list(_live):
        pool.close()
        pool.join()


def abandon_all() -> None:
    """Break all pools of threads, and wait for no task."""
    for pool in list(_live):
        _live.discard(pool)
        pool.break_off("the program has failed")
