"""Where the workers of an executor come from.

They are the ranks that ``python -m gormapy.futures`` has set aside, or, with one rank only, a thread. Without that
command each executor spawns its own, which run `spawned`, and end with the executor.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gormapy import MPI, _excepthook

from . import mainmodule
from .manager import Manager
from .protocol import Link
from .threads import ThreadPool, abandon_all, finish_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from .pool import Pool
    from .setup import Setup

_IN_IMPORT = (
    "MPIPoolExecutor was used while a worker imports the main script: put what is for rank 0 only below "
    "'if __name__ == \"__main__\":'"
)

_shared: list[Manager | None] = []  # the manager of the launched workers, None if threads stand in for them
_managers: set[Manager] = set()
_lock = threading.Lock()
_registered: list[int] = []  # the process that finishes everything at exit


def share(manager: Manager | None) -> None:
    """Give all executors of this process the workers of a manager; None: a thread each."""
    _shared[:] = [manager]


def is_shared() -> bool:
    """Report whether executors of this process share workers."""
    return bool(_shared)


def pool_for(setup: Setup, options: dict[str, Any], workers: int | None) -> Pool:
    """Return a new pool for an executor, on the workers that there are, or on so many new ones."""
    if mainmodule.importing():
        raise RuntimeError(_IN_IMPORT)
    if not _shared:
        return _spawned(setup, options, workers or usable_cores())
    manager = _shared[0]
    if manager is None:
        return thread_pool(1, setup, MPI.COMM_SELF)
    return manager.attach(setup, out_of_band(options))


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _worker():
    """Return the program of a worker. With options such as -I, Python may not look where gormapy is."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return (
        "import sys\ntry:\n    import gormapy\nexcept ImportError:\n"
        f"    sys.path.append({folder!r})\nfrom gormapy.futures.spawned import main\nmain()"
    )


def _spawned(setup, options, workers):
    """Return a new pool on workers that are started for it, and that end with it."""
    mainmodule.name_as_workers_do()
    command = os.fspath(options.get("python_exe") or sys.executable)
    args = options.get("python_args") or ()
    args = [args] if isinstance(args, str) else [os.fspath(arg) for arg in args]
    given = options.get("mpi_info")
    info = MPI.INFO_NULL if given is None else MPI.Info.Create(given)
    try:
        children = MPI.COMM_SELF.Spawn(command, [*args, "-c", _worker()], workers, info=info)
    finally:
        if info:
            info.Free()
    both = children.Merge(high=False)
    link = Link.made(both, 0)

    def part():
        for free in (link.free, both.Free, children.Disconnect):
            with suppress(MPI.Exception):  # a worker may be lost
                free()

    manager = manage(link, imported=False, left=part)
    pool = manager.attach(setup, out_of_band(options))
    manager.leave_when_done()
    return pool


def thread_pool(size: int, setup: Setup, comm: MPI.Intracomm | None = None) -> ThreadPool:
    """Return a new pool of threads."""
    _register()
    return ThreadPool(size, setup, comm)


def manage(link: Link, imported: bool = True, left: Callable[[], None] | None = None) -> Manager:
    """Begin to manage the workers of a link. They are ended at exit, if they have not been before.

    `left` is called by the manager's thread when the workers have left in order.
    """
    _register()

    def end() -> None:
        if left is not None:
            left()
        forget(manager)

    manager = Manager(link, imported, end, left is not None)
    with _lock:
        _managers.add(manager)
    return manager


def forget(manager: Manager) -> None:
    """Leave out a manager that has ended by itself."""
    with _lock:
        _managers.discard(manager)


def finish(manager: Manager) -> None:
    """Wait for all tasks of a manager, and let its workers leave."""
    manager.finish()
    forget(manager)


def abandon() -> None:
    """End all pools without waiting for tasks: the program has failed."""
    abandon_all()
    with _lock:
        managers = list(_managers)
        _managers.clear()
    for manager in managers:
        manager.abandon()


def _register():
    """Have everything finished before Python joins its threads, and before MPI is finalized."""
    with _lock:
        if os.getpid() in _registered:
            return
        _registered.append(os.getpid())
    try:
        threading._register_atexit(_finish_everything)
    except (AttributeError, RuntimeError):
        import atexit

        atexit.register(_finish_everything)
    # MPI.Finalize deletes the attributes of COMM_SELF before anything else
    keyval = MPI.Comm.Create_keyval(delete_fn=lambda comm, keyval, value: _finish_everything())
    MPI.COMM_SELF.Set_attr(keyval, True)


def _finish_everything():
    if os.getpid() not in _registered:
        return  # a process that this one has forked
    if _excepthook.failed:
        abandon()
        return
    finish_all()
    for manager in list(_managers):
        finish(manager)


# Settings
# --------


def setting(name: str) -> tuple[str, str] | None:
    """Return the variable that is set for a name, ours or mpi4py's, and its value."""
    for variable in (f"GORMAPY_FUTURES_{name}", f"MPI4PY_FUTURES_{name}"):
        if value := os.environ.get(variable, "").strip():
            return variable, value
    return None


def number_of_workers(given: int | None) -> int | None:
    """Check the number of workers that a program asks for, or its environment."""
    if given is None:
        found = setting("MAX_WORKERS")
        if found is None:
            return None
        variable, value = found
        try:
            given = int(value)
        except ValueError:
            raise ValueError(f"{variable}: expecting a number, got {value!r}") from None
    if given <= 0:
        raise ValueError("max_workers must be greater than 0")
    return given


_TRUTHS = {"1": True, "y": True, "yes": True, "true": True, "on": True}
_TRUTHS |= {"0": False, "n": False, "no": False, "false": False, "off": False}


def out_of_band(options: dict[str, Any]) -> bool:
    """Report whether an executor is to send buffers out of the pickled stream."""
    given = options.get("use_pkl5")
    if given is not None:
        return bool(given)
    found = setting("USE_PKL5")
    if found is None:
        return False
    variable, value = found
    if value.lower() not in _TRUTHS:
        warnings.warn(f"{variable}: expecting yes or no, got {value!r}", RuntimeWarning, stacklevel=3)
    return _TRUTHS.get(value.lower(), False)
