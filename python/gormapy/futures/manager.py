"""The side of the manager: a thread that gives the tasks of pools to workers, as `protocol` describes."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from gormapy import MPI

from . import failure, mainmodule, protocol
from .pool import Pool, settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Link
    from .setup import Setup
    from .task import Task


class Abandoned(Exception):
    """The program of the manager has failed."""


class WorkerPool(Pool):
    """A pool whose tasks are done by the workers of a manager."""

    def __init__(self, manager: Manager, setup: Setup, out_of_band: bool) -> None:
        super().__init__(len(manager.link.workers), manager.offer, manager.wake)
        self._manager = manager
        self.setup = setup
        self.out_of_band = out_of_band
        self.unready: set[int] = set()  # workers that the setup has not been sent to
        self.given = 0  # setups and tasks that are not answered yet

    def is_own_thread(self) -> bool:
        return self._manager.is_own_thread()


class Manager:
    """The thread that speaks with the workers of a link.

    Other threads call `attach`, `wake`, `finish` and `abandon`. The other methods are for its own.
    """

    def __init__(self, link: Link, imported: bool, left: Callable[[], None], spawned: bool) -> None:
        self.link = link
        self._left = left  # called when the workers have left
        self._spawned = spawned  # the workers, which end together
        self._lacking = set() if imported else set(link.workers)  # workers that have not imported the main script
        self._new: deque[WorkerPool] = deque()  # pools that the thread has not seen yet
        self._pools: deque[WorkerPool] = deque()  # in the order of their turns
        self._live: set[WorkerPool] = set()  # all that have not ended
        self._lock = threading.Lock()  # held to change what is live, and to end
        self._answers = protocol.Answers(link)
        self._idle: deque[int] = deque(link.workers)
        self._busy: dict[int, tuple[WorkerPool, Task | None]] = {}
        self._woken = False  # WAKE is on its way
        self._leaving = self._abandoned = self._over = False
        self._failed: str | None = None
        self._thread = threading.Thread(target=self._run, name="gormapy.futures", daemon=True)
        self._thread.start()

    # For all threads
    # ---------------

    def attach(self, setup: Setup, out_of_band: bool) -> WorkerPool:
        """Make a pool."""
        pool = WorkerPool(self, setup, out_of_band)
        setup.source = mainmodule.source() if setup.main and self._lacking else None
        with self._lock:
            if self._failed is not None:
                pool.break_off(self._failed)
                pool.ended.set()
                return pool
            if self._over or self._leaving:
                raise RuntimeError("cannot schedule new futures after the workers have left")
            self._live.add(pool)
            self._new.append(pool)
        self.wake()
        return pool

    def offer(self) -> None:
        """Make the thread look for tasks, if a worker is idle: else it does so by itself."""
        if self._idle:
            self.wake()

    def wake(self) -> None:
        """Make the thread look at its pools."""
        if self._woken or self._over:
            return
        self._woken = True
        try:
            self.link.wake()
        except BaseException as error:
            self._woken = False
            if not (isinstance(error, MPI.Exception) and self._frees_link()):
                raise

    def _frees_link(self):
        """Report whether the thread has nothing to do any more. Then it frees the link."""
        return self._over

    def is_own_thread(self) -> bool:
        """Report whether the caller is the thread."""
        return threading.current_thread() is self._thread

    @property
    def failed(self) -> bool:
        """Whether the thread has ended by an error."""
        return self._failed is not None

    def finish(self) -> None:
        """Wait until all tasks are finished, and let the workers leave."""
        with self._lock:
            self._leaving = True
            pools = list(self._live)
        for pool in pools:
            pool.close()
        self.wake()
        self._thread.join()

    def leave_when_done(self) -> None:
        """Let the workers leave when the pools that there are have ended."""
        with self._lock:
            self._leaving = True

    def abandon(self) -> None:
        """End the thread, with BrokenExecutor for what is not finished, and tell the workers nothing."""
        self._abandoned = True
        self.wake()
        self._thread.join()

    # The thread
    # ----------

    def _run(self):
        try:
            while self._step():
                pass
            for worker in self.link.workers:
                self.link.send(worker, protocol.LEAVE)
            self._answers.close()
            self._left()
        except BaseException as error:
            self._fail(error)

    def _step(self):
        """Give out what there is, wait for a message and take it. Return False when the last one was taken."""
        while self._idle and self._give(self._idle[0]):
            self._idle.popleft()
        for pool in [pool for pool in self._pools if pool.closed]:
            self._end_if_done(pool)
        self._prepare()
        if self._leaving and not self._live:
            self._over = True
            return False
        source, tag, data, buffers = self._answers.receive()
        kind = protocol.kind_of(tag)
        if kind == protocol.WAKE:
            self._answers.expect(source)
            self._look()
            return True
        pool, task = self._busy.pop(source)
        if task is None:
            self._take_setup(pool, source, kind, data)
        if not self._give(source):
            self._idle.append(source)
        if task is not None:
            _take_answer(task, kind, data, buffers)
        pool.given -= 1
        return True

    def _look(self):
        """Take over what other threads have changed."""
        self._woken = False  # before looking: what changes after it wakes again
        if self._abandoned:
            raise Abandoned("the program of the manager has ended")
        while self._new:
            pool = self._new.popleft()
            pool.unready = set(self.link.workers)
            if pool.setup.is_empty():
                pool.unready &= self._lacking if pool.setup.main else set()
            if not pool.unready:
                pool.event.set()
            self._pools.append(pool)

    def _end_if_done(self, pool):
        if not pool.queue and not pool.given:
            self._pools.remove(pool)
            with self._lock:
                self._live.discard(pool)
            pool.finish()

    def _give(self, worker):
        """Give a worker what is next. Return False if there is nothing."""
        for _ in range(len(self._pools)):
            pool = self._pools[0]
            self._pools.rotate(-1)
            if worker in pool.unready and pool.broken is None:
                if self._give_setup(pool, worker):
                    return True
            elif self._give_task(pool, worker):
                return True
        return False

    def _give_setup(self, pool, worker):
        pool.unready.discard(worker)
        try:
            data = pool.setup.pack()
        except Exception as error:
            pool.break_off(f"the initializer can't be sent: {type(error).__name__}: {error}", error)
            return False
        self._send(pool, None, worker, protocol.SETUP, data)
        return True

    def _give_task(self, pool, worker):
        while (task := pool.take()) is not None:
            task.pack(pool.out_of_band)
            if task.error is not None:
                settle(task, task.error)
                continue
            flags = protocol.OUT_OF_BAND if pool.out_of_band else 0
            data, buffers = task.data, task.buffers
            task.data, task.buffers = None, ()
            self._send(pool, task, worker, protocol.TASK | flags, data, buffers)
            return True
        return False

    def _send(self, pool, task, worker, *message):
        self._busy[worker] = pool, task
        pool.given += 1
        self._answers.expect(worker)
        self.link.send(worker, *message)

    def _prepare(self):
        """Serialize the task that is next, so that the next worker to answer gets it at once."""
        for pool in self._pools:
            with contextlib.suppress(IndexError):
                task = pool.queue[0]
                if not task.future.cancelled():
                    task.pack(pool.out_of_band)
                return

    def _take_setup(self, pool, worker, kind, data):
        if kind == protocol.BROKEN:
            said, packed = protocol.loads(data, ())
            pool.unready.clear()
            pool.break_off(said, failure.unpack(packed))
        elif pool.setup.main:
            self._lacking.discard(worker)
        if not pool.unready and pool.given == 1:
            pool.event.set()

    def _fail(self, error):
        """Break all pools."""
        said = str(error) if isinstance(error, Abandoned) else f"{type(error).__name__}: {error}"
        with self._lock:
            self._failed = f"the workers can't be reached any more: {said}"
            self._over = True
            pools = list(self._live)
        for pool in pools:
            pool.break_off(self._failed, error)
        for pool, task in self._busy.values():
            if task is not None:
                pool.fail(task)
        for pool in pools:
            pool.finish()
        if not isinstance(error, Abandoned):
            for worker in self.link.workers:
                with contextlib.suppress(Exception):  # it may be the one that is lost
                    self.link.send(worker, protocol.LEAVE, b"error")
            with contextlib.suppress(Exception):
                self._answers.close()
            if self._spawned:
                self._left()


def _take_answer(task: Task, kind: int, data: Any, buffers: Any) -> None:
    """Finish the future of a task with its answer."""
    error = result = None
    try:
        if kind == protocol.FAILURE:
            error = failure.unpack(data)
        else:
            result = protocol.loads(data, buffers)
    except BaseException as refused:
        error = refused
    settle(task, error, result)
