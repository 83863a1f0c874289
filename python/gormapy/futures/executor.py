"""Executors: MPIPoolExecutor, and the same with threads."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import TYPE_CHECKING, Any

from . import mapping, starting
from .setup import Setup
from .task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import ParamSpec, Self

    from gormapy.typing import T

    from .pool import Pool

    _P = ParamSpec("_P")

# Keyword arguments of mpi4py.
_OPTIONS = {
    *("python_exe", "python_args", "mpi_info", "globals", "main", "path", "wdir"),
    *("env", "use_pkl5", "backoff", "service"),
}


class MPIPoolExecutor(concurrent.futures.Executor):
    """Executor that runs calls in a pool of worker processes, with the interface of `concurrent.futures`.

    The workers are processes that it starts at its first use, on this host. Under ``mpiexec -n N python -m
    gormapy.futures script.py`` they are the other ranks, for all executors. As a context manager it is shut down at the
    end.

    - `max_workers`: how many processes are started, by default GORMAPY_FUTURES_MAX_WORKERS, or the number of usable
      cores. If ranks were launched as workers, all of them are used.
    - `initializer`, `initargs`: what each worker calls before its first task. If it fails, tasks end with
      BrokenExecutor.
    - `globals`: a dictionary of names to define in the main module of the workers.
    - `main`: whether workers import the main script (default: True).
    - `path`, `wdir`, `env`: folders to append to sys.path, the working directory, and variables of the environment of
      the workers.
    - `use_pkl5`: whether large buffers, as those of arrays, are sent without being copied into a pickle.
    - `python_exe`, `python_args`, `mpi_info`: the interpreter of workers that are started, more arguments for it, and
      hints of Spawn (see `MPI.Info`).
    - `backoff` has no effect: nobody polls.

    Errors: TypeError for an argument of another name, or an `initializer` that is no function; NotImplementedError for
    `service`.

    >>> with MPIPoolExecutor(max_workers=2, main=False) as executor:
    ...     squares = list(executor.map(pow, range(4), [2] * 4))
    >>> squares
    [0, 1, 4, 9]
    """

    Future = concurrent.futures.Future

    def __init__(
        self,
        max_workers: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        """Initialize a new instance."""
        self._asked = starting.number_of_workers(max_workers)
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        unknown = kwargs.keys() - _OPTIONS
        if unknown:
            raise TypeError(f"{type(self).__name__}: no argument is called {', '.join(sorted(unknown))}")
        if kwargs.get("service") is not None:
            raise NotImplementedError("service: gormapy connects to no running server; see MPICommExecutor")
        self._options = kwargs
        self._setup: Setup | None = Setup(initializer, initargs, kwargs)
        self._shutdown = False
        self._pool: Pool | None = None
        self._lock = threading.Lock()

    def _new_pool(self, setup):
        return starting.pool_for(setup, self._options, self._asked)

    def _booted(self):
        """Return the pool, which is made on first use."""
        with self._lock:
            if self._shutdown:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._pool is None:
                self._pool = self._new_pool(self._setup)
                self._pool.close_after(self)
                self._setup = None
            return self._pool

    def __exit__(self, kind: Any, value: Any, tb: Any) -> None:
        """Shut down. After Ctrl-C, what has not begun is cancelled, and what runs is not waited for."""
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        self.shutdown(wait=not interrupted, cancel_futures=interrupted)

    @property
    def num_workers(self) -> int:
        """Number of worker processes, which this makes ready; 0 after shutdown."""
        with self._lock:
            if self._shutdown:
                return 0
        return self._booted().size

    _max_workers = num_workers

    def bootup(self, wait: bool = True) -> Self:
        """Make the workers ready now, rather than on the first use, and return the executor.

        With `wait` false it does not wait until they are.

        Errors: RuntimeError after shutdown.
        """
        pool = self._booted()
        if wait:
            pool.wait()
        return self

    def submit(self, fn: Callable[_P, T], /, *args: _P.args, **kwargs: _P.kwargs) -> concurrent.futures.Future[T]:
        """Schedule ``fn(*args, **kwargs)`` and return a future of its result.

        It does not wait. Function, arguments and result are pickled; the arguments when a worker is to take the task,
        so they must not be changed before it runs. An exception of the function is that of the future.

        Errors: RuntimeError after shutdown; BrokenExecutor, which is one, if the workers have failed.
        """
        pool = self._pool
        if pool is None:
            pool = self._booted()
        future = self.Future()
        pool.push(Task(future, fn, args, kwargs))
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> Iterator[T]:
        """Return an iterator over the results of ``map(fn, *iterables)``, in the same order.

        The calls are submitted at once, `chunksize` of them as one task (default: 1); with `buffersize`, at most so
        many tasks whose results have not been taken. With `unordered` results are returned as they come.

        Errors: TimeoutError while iterating, `timeout` seconds after this call; RuntimeError after shutdown; ValueError
        for a `chunksize` or `buffersize` below 1, or `buffersize` with `unordered`.
        """
        return mapping.results(self, fn, zip(*iterables), timeout, chunksize, buffersize, unordered)

    def starmap(
        self,
        fn: Callable[..., T],
        iterable: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> Iterator[T]:
        """Return an iterator over the results of ``itertools.starmap(fn, iterable)``; see `map`."""
        return mapping.results(self, fn, iterable, timeout, chunksize, buffersize, unordered)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks, and free what the executor uses when those that are pending are done.

        With `wait` false it returns at once. With `cancel_futures` the tasks that have not begun are cancelled.
        """
        with self._lock:
            self._shutdown = True
            pool = self._pool
        if pool is None:
            return
        pool.close()
        if cancel_futures:
            pool.cancel()
        if wait:
            pool.join()
            self._pool = None


class ProcessPoolExecutor(MPIPoolExecutor):
    """MPIPoolExecutor by another name."""


class ThreadPoolExecutor(MPIPoolExecutor):
    """MPIPoolExecutor whose workers are threads of this process.

    `max_workers` is how many (default: that of the environment, or 1); each thread calls `initializer(*initargs)`
    before its first task.
    """

    def _new_pool(self, setup):
        return starting.thread_pool(self._asked or 1, setup)
