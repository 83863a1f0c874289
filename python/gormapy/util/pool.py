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
    """Pool using MPI processes as workers."""

    Executor: type[futures.MPIPoolExecutor] = futures.MPIPoolExecutor
    executor: futures.MPIPoolExecutor

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        """Initialize a new Pool instance.

        Parameters
        ----------
        processes : int, optional
            Number of workers; see MPIPoolExecutor.
        initializer : callable, optional
            Called in each worker when it starts.
        initargs : iterable
            Its arguments.
        **kwargs
            Arguments of the executor. `maxtasksperchild` and `context` are ignored with a warning.
        """
        for name in ("maxtasksperchild", "context"):
            if kwargs.pop(name, None) is not None:
                warnings.warn(f"{type(self).__name__}: {name} is ignored", UserWarning, stacklevel=2)
        self.executor = self.Executor(processes, initializer=initializer, initargs=initargs, **kwargs)

    def apply(self, func: Callable[..., T], args: Iterable[Any] = (), kwds: Mapping[str, Any] = {}) -> T:
        """Call `func` with arguments `args` and keyword arguments `kwds`, and return its result."""
        return self.executor.submit(func, *args, **kwds).result()

    def apply_async(
        self,
        func: Callable[..., T],
        args: Iterable[Any] = (),
        kwds: Mapping[str, Any] = {},
        callback: Callable[[T], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> ApplyResult[T]:
        """Asynchronous version of `apply` returning `ApplyResult`."""
        return ApplyResult(self.executor.submit(func, *args, **kwds), callback, error_callback)

    def map(self, func: Callable[[S], T], iterable: Iterable[S], chunksize: int | None = None) -> list[T]:
        """Apply `func` to each element in `iterable`, and return the results in a list."""
        return list(self._results(func, ((item,) for item in iterable), chunksize).result())

    def map_async(
        self,
        func: Callable[[S], T],
        iterable: Iterable[S],
        chunksize: int | None = None,
        callback: Callable[[Any], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> MapResult[T]:
        """Asynchronous version of `map` returning `MapResult`."""
        return MapResult(self._results(func, ((item,) for item in iterable), chunksize), callback, error_callback)

    def imap(self, func: Callable[[S], T], iterable: Iterable[S], chunksize: int = 1) -> Iterator[T]:
        """Like `map` but return an iterator."""
        return self.executor.map(func, iterable, chunksize=chunksize)

    def imap_unordered(self, func: Callable[[S], T], iterable: Iterable[S], chunksize: int = 1) -> Iterator[T]:
        """Like `imap` but ordering of results is arbitrary."""
        return self.executor.map(func, iterable, chunksize=chunksize, unordered=True)

    def starmap(
        self, func: Callable[..., T], iterable: Iterable[Iterable[Any]], chunksize: int | None = None
    ) -> list[T]:
        """Apply `func` to each argument tuple in `iterable`, and return the results in a list."""
        return list(self._results(func, iterable, chunksize).result())

    def starmap_async(
        self,
        func: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        callback: Callable[[Any], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> MapResult[T]:
        """Asynchronous version of `starmap` returning `MapResult`."""
        return MapResult(self._results(func, iterable, chunksize), callback, error_callback)

    def istarmap(self, func: Callable[..., T], iterable: Iterable[Iterable[Any]], chunksize: int = 1) -> Iterator[T]:
        """Like `starmap` but return an iterator."""
        return self.executor.starmap(func, iterable, chunksize=chunksize)

    def istarmap_unordered(
        self, func: Callable[..., T], iterable: Iterable[Iterable[Any]], chunksize: int = 1
    ) -> Iterator[T]:
        """Like `istarmap` but ordering of results is arbitrary."""
        return self.executor.starmap(func, iterable, chunksize=chunksize, unordered=True)

    def close(self) -> None:
        """Prevent any more tasks from being submitted to the pool."""
        self.executor.shutdown(wait=False)

    def terminate(self) -> None:
        """Stop the worker processes without completing pending tasks."""
        self.executor.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Wait for the worker processes to exit."""
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
    """Pool using threads as workers."""

    Executor: type[futures.ThreadPoolExecutor] = futures.ThreadPoolExecutor

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        """Initialize a new ThreadPool instance.

        Parameters
        ----------
        processes : int, optional
            Number of threads (default: one for each processor).
        initializer : callable, optional
            Called in each thread when it starts.
        initargs : iterable
            Its arguments.
        """
        if processes is None:
            processes = os.cpu_count() or 1
        super().__init__(processes, initializer, initargs, **kwargs)


class AsyncResult(Generic[T]):
    """Asynchronous result."""

    def __init__(
        self,
        future: Future[T],
        callback: Callable[[T], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> None:
        """Initialize a new result.

        Parameters
        ----------
        future : Future
            Of the result.
        callback, error_callback : callable, optional
            Called with the result, or with the exception.
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
        """Return the result when it arrives.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which TimeoutError is raised. It is also raised, at once, for a task that will not be done.
        """
        self.wait(timeout)
        if not self.ready():
            raise TimeoutError
        try:
            return self.future.result()
        except CancelledError:
            raise TimeoutError from None

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the result is available or `timeout` seconds pass."""
        self._event.wait(timeout)

    def ready(self) -> bool:
        """Return whether the call has completed."""
        return self._event.is_set()

    def successful(self) -> bool:
        """Return whether the call completed without raising an exception."""
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return not self.future.cancelled() and self.future.exception() is None


class ApplyResult(AsyncResult[T]):
    """Result type of `apply_async`."""


class MapResult(AsyncResult[list[T]]):
    """Result type of `map_async` and `starmap_async`."""
