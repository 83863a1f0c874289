"""Where the workers of an executor come from.

They are the ranks that ``python -m gormapy.futures`` has set aside, or, with one rank only, a thread. Processes that
are started at run time (`MPI.Intracomm.Spawn`) would come from here, and nowhere else: `pool_for` would start them and
join them by a link.
"""

from __future__ import annotations

import os
import threading
import warnings
from typing import TYPE_CHECKING, Any

from gormapy import MPI

from . import mainmodule
from .manager import Manager
from .protocol import Link
from .threads import ThreadPool, abandon_all, finish_all

if TYPE_CHECKING:
    from .pool import Pool
    from .setup import Setup

_NO_WORKERS = (
    "MPIPoolExecutor has no workers, because gormapy starts no processes at run time: run "
    "'mpiexec -n 4 python -m gormapy.futures script.py', where rank 0 runs the script and the others are its workers, "
    "or let all ranks use MPICommExecutor"
)
_IN_IMPORT = (
    "MPIPoolExecutor was used while a worker imports the main script: put what is for rank 0 only below "
    "'if __name__ == \"__main__\":'"
)

_shared: list[Manager | None] = []  # the manager of the launched workers, None if threads stand in for them
_managers: set[Manager] = set()
_lock = threading.Lock()
_registered = False


def share(manager: Manager | None) -> None:
    """Give all executors of this process the workers of a manager; None: a thread each."""
    _shared[:] = [manager]


def is_shared() -> bool:
    """Report whether executors of this process share workers."""
    return bool(_shared)


def check() -> None:
    """Raise an exception if an executor of this process can't get workers, and is not made by accident."""
    if not _shared and not mainmodule.importing():
        raise NotImplementedError(_NO_WORKERS)


def pool_for(setup: Setup, options: dict[str, Any]) -> Pool:
    """Return a new pool for an executor, on the workers that there are."""
    if mainmodule.importing():
        raise RuntimeError(_IN_IMPORT)
    check()
    manager = _shared[0]
    if manager is None:
        return thread_pool(1, setup, MPI.COMM_SELF)
    return manager.attach(setup, out_of_band(options))


def thread_pool(size: int, setup: Setup, comm: MPI.Intracomm | None = None) -> ThreadPool:
    """Return a new pool of threads."""
    _register()
    return ThreadPool(size, setup, comm)


def manage(link: Link, imported: bool = True) -> Manager:
    """Begin to manage the workers of a link. They are ended at exit, if they have not been before."""
    _register()
    manager = Manager(link, imported)
    with _lock:
        _managers.add(manager)
    return manager


def finish(manager: Manager) -> None:
    """Wait for all tasks of a manager, and let its workers leave."""
    manager.finish()
    with _lock:
        _managers.discard(manager)


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
    global _registered
    with _lock:
        if _registered:
            return
        _registered = True
    try:
        threading._register_atexit(_finish_everything)
    except (AttributeError, RuntimeError):
        import atexit

        atexit.register(_finish_everything)


def _finish_everything():
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
