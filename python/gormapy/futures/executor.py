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
    """Executor that runs calls in a pool of worker processes.

    The workers are processes that it starts at its first use, on this host. Under
    ``mpiexec -n N python -m gormapy.futures script.py`` they are the other ranks, for all executors.

    Parameters
    ----------
    max_workers : int, optional
        How many processes are started (default: GORMAPY_FUTURES_MAX_WORKERS, or the number of usable cores). If ranks
        were launched as workers, all of them are used.
    initializer : callable, optional
        Called in each worker before the first task. If it fails, tasks end with BrokenExecutor.
    initargs : iterable
        Arguments of the initializer.
    globals : dict
        Names to define in the main module of the workers.
    main : bool
        Whether workers import the main script (default: True).
    path : list of str
        Folders to append to sys.path in the workers.
    wdir : str
        The working directory of the workers.
    env : dict
        Variables to set in the environment of the workers.
    use_pkl5 : bool
        Whether large buffers, as those of arrays, are sent without being copied into a pickle.
    python_exe, python_args, mpi_info
        The interpreter of workers that are started, more arguments for it, and hints of Spawn: see `MPI.Info`.
    backoff
        Accepted without effect: nobody polls.
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
        """Number of worker processes."""
        with self._lock:
            if self._shutdown:
                return 0
        return self._booted().size

    _max_workers = num_workers

    def bootup(self, wait: bool = True) -> Self:
        """Make the workers ready now, rather than on the first use.

        Parameters
        ----------
        wait : bool
            Return only when they are (default: True).
        """
        pool = self._booted()
        if wait:
            pool.wait()
        return self

    def submit(self, fn: Callable[_P, T], /, *args: _P.args, **kwargs: _P.kwargs) -> concurrent.futures.Future[T]:
        """Schedule ``fn(*args, **kwargs)`` and return a future of its result."""
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
        """Return an iterator over the results of ``map(fn, *iterables)``.

        Parameters
        ----------
        fn : callable
            It takes as many arguments as there are iterables.
        timeout : float, optional
            Seconds, counted from this call, after which waiting for a result raises TimeoutError.
        chunksize : int
            How many calls are one task (default: 1).
        buffersize : int, optional
            How many tasks at most have been submitted whose results have not been taken. Without it, all are at once.
        unordered : bool
            Return results as they come (default: False).
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

        Parameters
        ----------
        wait : bool
            Return only when that is done (default: True).
        cancel_futures : bool
            Cancel the tasks that have not begun (default: False).
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

    Parameters
    ----------
    max_workers : int, optional
        How many threads (default: that of the environment, or 1).
    initializer, initargs
        What each thread calls before its first task.
    """

    def _new_pool(self, setup):
        return starting.thread_pool(self._asked or 1, setup)
