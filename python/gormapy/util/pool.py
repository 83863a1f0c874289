"""The interface of multiprocessing.pool on the executors of `gormapy.futures`."""

from __future__ import annotations

import os
import threading
import warnings
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Generic

from gormapy import futures
from gormapy.typing import S, T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from typing_extensions import Self

__all__ = ["ApplyResult", "AsyncResult", "MapResult", "Pool", "ThreadPool"]


class Pool:
    """Pool of worker processes with the interface of `multiprocessing.Pool`.

    The workers are those of `gormapy.futures.MPIPoolExecutor`. As a context manager it is closed and joined at the end.
    """

    Executor: type[futures.MPIPoolExecutor] = futures.MPIPoolExecutor
    executor: futures.MPIPoolExecutor

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        """Make the pool.

        `processes` is the number of workers, as `max_workers` of MPIPoolExecutor; `initializer(*initargs)` is called in
        each worker when it starts. Other keywords are those of the executor; `maxtasksperchild` and `context` are
        ignored with a warning.
        """
        for name in ("maxtasksperchild", "context"):
            if kwargs.pop(name, None) is not None:
                warnings.warn(f"{type(self).__name__}: {name} is ignored", UserWarning, stacklevel=2)
        self.executor = self.Executor(processes, initializer=initializer, initargs=initargs, **kwargs)

    def apply(self, func: Callable[..., T], args: Iterable[Any] = (), kwds: Mapping[str, Any] = {}) -> T:
        """Call `func(*args, **kwds)` in a worker, and return its result.

        Blocking. An exception of `func` is raised here.
        """
        return self.executor.submit(func, *args, **kwds).result()

    def apply_async(
        self,
        func: Callable[..., T],
        args: Iterable[Any] = (),
        kwds: Mapping[str, Any] = {},
        callback: Callable[[T], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> ApplyResult[T]:
        """Have `func(*args, **kwds)` called in a worker, and return an ApplyResult at once.

        `callback` is called with the result, or `error_callback` with the exception, in a thread of this process.
        """
        return ApplyResult(self.executor.submit(func, *args, **kwds), callback, error_callback)

    def map(self, func: Callable[[S], T], iterable: Iterable[S], chunksize: int | None = None) -> list[T]:
        """Call `func` with each element of `iterable`, and return the list of the results, in the same order.

        Blocking. `chunksize` elements are one task; by default there are four tasks for each worker. The first
        exception is raised here.

        Errors: ValueError for a `chunksize` below 1.
        """
        return list(self._results(func, ((item,) for item in iterable), chunksize).result())

    def map_async(
        self,
        func: Callable[[S], T],
        iterable: Iterable[S],
        chunksize: int | None = None,
        callback: Callable[[Any], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> MapResult[T]:
        """Have `func` called with each element of `iterable`, and return a MapResult at once.

        `callback` is called with the list of results, or `error_callback` with the first exception. Tasks are as in
        `map`.
        """
        return MapResult(self._results(func, ((item,) for item in iterable), chunksize), callback, error_callback)

    def imap(self, func: Callable[[S], T], iterable: Iterable[S], chunksize: int = 1) -> Iterator[T]:
        """Return an iterator over the results of `func` for each element of `iterable`, in the same order.

        All elements are taken at once; the iterator waits for each result. `chunksize` elements are one task.
        """
        return self.executor.map(func, iterable, chunksize=chunksize)

    def imap_unordered(self, func: Callable[[S], T], iterable: Iterable[S], chunksize: int = 1) -> Iterator[T]:
        """Return an iterator over the results of `func` for each element of `iterable`, as they come."""
        return self.executor.map(func, iterable, chunksize=chunksize, unordered=True)

    def starmap(
        self, func: Callable[..., T], iterable: Iterable[Iterable[Any]], chunksize: int | None = None
    ) -> list[T]:
        """Call `func(*args)` for each tuple of `iterable`, and return the list of the results, in the same order.

        Blocking. `chunksize` is as in `map`. The first exception is raised here.
        """
        return list(self._results(func, iterable, chunksize).result())

    def starmap_async(
        self,
        func: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        callback: Callable[[Any], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> MapResult[T]:
        """Have `func(*args)` called for each tuple of `iterable`, and return a MapResult at once.

        `callback` and `error_callback` are as in `map_async`.
        """
        return MapResult(self._results(func, iterable, chunksize), callback, error_callback)

    def istarmap(self, func: Callable[..., T], iterable: Iterable[Iterable[Any]], chunksize: int = 1) -> Iterator[T]:
        """Return an iterator over the results of `func(*args)` for each tuple of `iterable`, in the same order."""
        return self.executor.starmap(func, iterable, chunksize=chunksize)

    def istarmap_unordered(
        self, func: Callable[..., T], iterable: Iterable[Iterable[Any]], chunksize: int = 1
    ) -> Iterator[T]:
        """Return an iterator over the results of `func(*args)` for each tuple of `iterable`, as they come."""
        return self.executor.starmap(func, iterable, chunksize=chunksize, unordered=True)

    def close(self) -> None:
        """Take no more tasks; those that were given are done."""
        self.executor.shutdown(wait=False)

    def terminate(self) -> None:
        """Take no more tasks, and cancel those that have not begun."""
        self.executor.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Wait until all tasks are done and the workers have ended, after `close` or `terminate`."""
        self.executor.shutdown(wait=True)

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *args: object) -> None:
        """Close pool, and wait for its tasks."""
        self.close()
        self.join()

    def _results(self, func, calls, chunksize):
        """Submit calls in chunks; return a future of the list of their results."""
        calls = [tuple(call) for call in calls]
        if chunksize is None:
            workers = getattr(self.executor, "num_workers", None) or getattr(self.executor, "_max_workers", 1)
            chunksize = -(-len(calls) // (4 * workers)) or 1
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        chunks = [calls[at : at + chunksize] for at in range(0, len(calls), chunksize)]
        parts = futures.collect([self.executor.submit(_chunk, func, chunk) for chunk in chunks])
        return futures.compose(parts, lambda found: [result for part in found for result in part])


def _chunk(func, calls):
    return [func(*call) for call in calls]


class ThreadPool(Pool):
    """Pool whose workers are threads of this process."""

    Executor: type[futures.ThreadPoolExecutor] = futures.ThreadPoolExecutor

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        """Make the pool.

        `processes` is the number of threads, by default one for each processor; `initializer(*initargs)` is called in
        each of them when it starts.
        """
        if processes is None:
            processes = os.cpu_count() or 1
        super().__init__(processes, initializer, initargs, **kwargs)


class AsyncResult(Generic[T]):
    """Result that will come."""

    def __init__(
        self,
        future: Future[T],
        callback: Callable[[T], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> None:
        """Make the result of a future.

        `callback` is called with the result, or `error_callback` with the exception.
        """
        self.future = future
        self._callbacks = (callback, error_callback)
        self._event = threading.Event()  # the callbacks have been called
        future.add_done_callback(self._done)

    def _done(self, future):
        callback, error_callback = self._callbacks
        try:
            if future.cancelled():
                return
            error = future.exception()
            if error is not None:
                if error_callback is not None:
                    error_callback(error)
            elif callback is not None:
                callback(future.result())
        finally:
            self._event.set()

    def get(self, timeout: float | None = None) -> T:
        """Return the result, after waiting for it at most `timeout` seconds (None: as long as it takes).

        An exception of the task is raised here.

        Errors: TimeoutError when time is over, and at once for a task that will not be done.
        """
        self.wait(timeout)
        if not self.ready():
            raise TimeoutError
        try:
            return self.future.result()
        except CancelledError:
            raise TimeoutError from None

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the result has come, at most `timeout` seconds (None: as long as it takes)."""
        self._event.wait(timeout)

    def ready(self) -> bool:
        """Report whether the result, or an exception, has come."""
        return self._event.is_set()

    def successful(self) -> bool:
        """Report whether the task has ended without an exception.

        Errors: ValueError if it has not ended.
        """
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return not self.future.cancelled() and self.future.exception() is None


class ApplyResult(AsyncResult[T]):
    """Result of `apply_async`."""


class MapResult(AsyncResult[list[T]]):
    """Result of `map_async` and `starmap_async`: a list."""
