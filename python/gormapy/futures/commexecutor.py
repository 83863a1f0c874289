"""MPICommExecutor: one rank of a communicator submits tasks, and the others are its workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gormapy import MPI

from . import starting, worker
from .executor import MPIPoolExecutor
from .protocol import Link

if TYPE_CHECKING:
    from .manager import Manager


class _CommPoolExecutor(MPIPoolExecutor):
    """Executor on the workers of one manager; without one, on a thread."""

    def __init__(self, manager, **kwargs):
        self._manager = manager
        super().__init__(**kwargs)

    def _new_pool(self, setup):
        if self._manager is None:
            return starting.thread_pool(1, setup, MPI.COMM_SELF)
        return self._manager.attach(setup, starting.out_of_band(self._options))


class MPICommExecutor:
    """Context manager that gives one rank of a communicator an executor, whose workers the other ranks are.

    Entering and leaving it is collective over `comm`, an intracommunicator, by default COMM_WORLD. At `root` the target
    of the ``with`` statement is the executor. At the others it is None, and they come to the block when the root leaves
    it. With one rank, a thread is the worker. Other arguments are those of MPIPoolExecutor; those of the root count.
    """

    def __init__(self, comm: MPI.Intracomm | None = None, root: int = 0, **kwargs: Any) -> None:
        """Initialize a new instance."""
        comm = MPI.COMM_WORLD if comm is None else comm
        if comm.Is_inter():
            raise ValueError("MPICommExecutor: expecting an intracommunicator")
        if not 0 <= root < comm.Get_size():
            raise ValueError(f"MPICommExecutor: root {root}: ranks are 0 to {comm.Get_size() - 1}")
        self._comm, self._root, self._options = comm, root, kwargs
        self._entered = False
        self._executor: MPIPoolExecutor | None = None
        self._link: Link | None = None
        self._manager: Manager | None = None

    def __enter__(self) -> MPIPoolExecutor | None:
        """Return the executor at the root, and None at the others, when the root has left."""
        if self._entered:
            raise RuntimeError("MPICommExecutor: it was entered already")
        self._entered = True
        try:
            self._begin()
        except BaseException:
            self._entered = False
            raise
        return self._executor

    def _begin(self):
        if self._comm.Get_size() == 1:
            self._executor = _CommPoolExecutor(None, **self._options)
        elif starting.is_shared():  # the others serve this process already
            self._executor = MPIPoolExecutor(**self._options)
        elif self._comm.Get_rank() != self._root:
            link = Link.made(self._comm, self._root)
            if worker.serve(link):
                link.free()
        else:
            self._link = Link.made(self._comm, self._root)
            self._manager = starting.manage(self._link)
            self._executor = _CommPoolExecutor(self._manager, **self._options)

    def __exit__(self, *args: object) -> None:
        """Wait for all tasks, and let the workers go on."""
        executor, manager, link = self._executor, self._manager, self._link
        self._executor = self._manager = self._link = None
        self._entered = False
        if executor is not None:
            executor.shutdown(wait=True)
        if manager is not None:
            starting.finish(manager)
            if link is not None and not manager.failed:
                link.free()
