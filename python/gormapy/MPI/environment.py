"""The environment: start, end, versions, clock and other module functions."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from gormapy import _excepthook
from gormapy._ext import core, fast

from . import constants, registration, serialize, shutdown
from .buffer import buffer
from .datatype import Datatype
from .exception import Exception, check, error
from .handle import Handle
from .hot import hot
from .info import Info
from .msgbuffer import acquire
from .sentinel import BottomType, BufferAutomaticType, InPlaceType
from .status import Status
from .typecode import typealign as _align
from .typecode import typecode as _code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gormapy.typing import Bottom, Buffer

# Start and end
# -------------


# The library of this process is used by the world model (from Init to Finalize) and by sessions. It starts with the
# first of them and ends with the world model, or with the last session that is open then.
_world = {"begun": False, "ended": False}
_sessions = 0  # that are open
_ending = ""  # what has begun to end the library, if anything has
_changes = threading.Lock()


def _begin():
    """Start the library. It does nothing if that has been done."""
    before = core.Initialized()
    recorded = any(name in os.environ for name in ("GORMAPY_JOB_TRACE", "GORMAPY_JOB_HOME_RECORD"))
    for name, value in os.environ.items():  # settings that the program has made
        if name.startswith("GORMAPY_") and not name.startswith("GORMAPY_JOB_"):
            with contextlib.suppress(UnicodeEncodeError):  # a file name of other bytes, which stays as it was given
                core.SetVariable(name, value)
    check(core.Init())
    if before:
        return
    for change in core.EnvironmentChanges().splitlines():  # a child is no rank of the launcher
        name, given, value = change.partition("=")
        if given:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)
    registration.start()
    if recorded:
        from gormapy.trace import recording

        recording.join_job()
    checked = "GORMAPY_JOB_CHECK" in os.environ
    if os.environ.get("GORMAPY_UNKIND"):
        from gormapy.check import unkind

        unkind.install(os.environ["GORMAPY_UNKIND"], core.CommRank(1), checked)
    if checked:
        from gormapy import check as checking

        checking.join_job()


def Init() -> None:
    """Start MPI."""
    _begin()
    _world["begun"] = True


def begin_session() -> None:
    """Count a session that begins."""
    global _sessions
    with _changes:
        if _ending or core.Finalized():
            raise error(
                constants.ERR_OTHER,
                "Session.Init: MPI can't be started again in this process: begin sessions before "
                f"{_ending or 'MPI.Finalize'}",
            )
        if not core.Initialized():
            _begin()
            finalize_at_exit()
        _sessions += 1


def end_session() -> None:
    """Count a session that has been finalized."""
    global _sessions, _ending
    with _changes:
        _sessions -= 1
        over = _sessions == 0 and _world["ended"]
        if over:
            _ending = "the last session is finalized after MPI.Finalize"
    if over:
        _end_library()


def _end_library():
    """End the library. `_ending` is set, so that no session begins meanwhile: the lock is free, since this may wait."""
    global _ending
    try:
        fast.finalize()
    finally:
        if not core.Finalized():  # it was interrupted
            _ending = ""


def _delete_own_attributes():
    """Delete the attributes of COMM_SELF, whose functions may still use MPI (MPI 4.1, section 11.2.4)."""
    from .intracomm import COMM_SELF

    COMM_SELF._delete_attributes()


def finalize_at_exit() -> None:
    """Have the library ended at exit.

    That is done once Python has ended (module.c), because threads that Python joins, functions that are registered with
    atexit, and the __del__ of objects may use MPI. A process that has failed ends it before all that: the other ranks
    are not to wait for it.
    """
    import atexit

    if os.getpid() in _registered:
        return
    _registered.append(os.getpid())
    atexit.register(_at_exit)
    with contextlib.suppress(AttributeError, RuntimeError):  # a Python that has no such function, or is joining already
        threading._register_atexit(_end_if_failed)


_registered: list[int] = []  # the process that finalizes at exit; processes that it forks do not


def _end_if_failed():
    if os.getpid() not in _registered:
        return
    if _abort_status:
        fast.abort(1, _abort_status)
    if _excepthook.failed and _left_to_end():
        _end_at_exit()  # waits for nobody
        _excepthook.ignore(Exception)  # of what the program calls from now on: it has reported why it fails


def _at_exit():
    """Prepare the end. Functions that were registered with atexit before come later."""
    if os.getpid() not in _registered:
        return
    _end_if_failed()
    if _left_to_end() and not fast.finalize_after_python():
        _end_at_exit()
    serialize.load()
    shutdown.keep_modules()


def _left_to_end():
    """Do what comes first in Finalize; report whether there is more."""
    if not core.Initialized() or core.Finalized():
        return False
    if _world["begun"] and not _world["ended"]:
        _delete_own_attributes()
    return not core.Finalized()


def _end_at_exit():
    global _ending
    with _changes:
        _ending = _ending or "Python exits"
    _end_library()


def Init_thread(required: int = constants.THREAD_MULTIPLE) -> int:
    """Start MPI with a level of thread support."""
    Init()
    return constants.THREAD_MULTIPLE


def Finalize() -> None:
    """End MPI."""
    global _ending
    if _world["begun"] and not _world["ended"]:
        _delete_own_attributes()
    with _changes:
        if _world["ended"]:
            raise error(constants.ERR_OTHER, "Finalize: MPI was finalized before")
        if _sessions > 0 and not _world["begun"]:
            raise error(
                constants.ERR_OTHER, "Finalize: MPI.Init was not called; a session is ended by its own Finalize"
            )
        later = _sessions > 0
        if later:
            _world["ended"] = True
        else:
            _ending = "MPI.Finalize"
    if not later:
        _end_library()


def Is_initialized() -> bool:
    """Report whether Init has been called."""
    return _world["begun"]


def Is_finalized() -> bool:
    """Report whether Finalize has returned."""
    return _world["ended"] or (_world["begun"] and bool(core.Finalized()))


def Query_thread() -> int:
    """Return the level of thread support."""
    return constants.THREAD_MULTIPLE


def Is_thread_main() -> bool:
    """Report whether this is the thread that called Init."""
    import threading

    return threading.current_thread() is threading.main_thread()


_abort_status = 0


def _set_abort_status(status: int | None) -> None:
    """Set the status with which this process ends the job when Python exits."""
    global _abort_status
    _abort_status = status


# Versions and names
# ------------------


def Get_version() -> tuple[int, int]:
    """Return the version of the MPI standard."""
    return constants.VERSION, constants.SUBVERSION


def Get_library_version() -> str:
    """Return the name and version of the library."""
    return core.LibraryVersion()


def Get_processor_name() -> str:
    """Return the name of the host."""
    return core.ProcessorName()


def Get_hw_resource_info() -> Info:
    """Return what is known of the hardware."""
    return Info.Create()  # nothing is known of it


def get_vendor() -> tuple[str, tuple[int, int, int]]:
    """Return the name and version of the library, as numbers."""
    from gormapy._version import __version__

    major, minor, micro = (int(part) for part in __version__.split(".")[:3])
    return "gormapy", (major, minor, micro)


# Clock
# -----


@hot
def Wtime() -> float:
    """Return the time of a clock."""
    return time.monotonic()


def Wtick() -> float:
    """Return the resolution of Wtime."""
    return time.clock_getres(time.CLOCK_MONOTONIC)


def Pcontrol(level: int) -> None:
    """Pass a level to a profiling library."""
    if not isinstance(level, int):
        raise TypeError(f"Pcontrol: expecting an integer, got {type(level).__name__}")


# Addresses
# ---------


def Get_address(location: Buffer | Bottom) -> int:
    """Return the address of memory."""
    if isinstance(location, (BottomType, InPlaceType, BufferAutomaticType)):
        return int(location)
    if location is None:
        return 0
    if isinstance(location, buffer):  # an empty buffer may be at address 0, a view of it can't
        return location.address
    return acquire(location, True)[0]


def Aint_add(base: int, disp: int) -> int:
    """Return the sum of an address and a displacement."""
    return base + disp


def Aint_diff(addr1: int, addr2: int) -> int:
    """Return the difference of two addresses."""
    return addr1 - addr2


# Grids
# -----


def Compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """Return a balanced grid for a number of ranks."""
    wanted = [0] * dims if isinstance(dims, int) else list(dims)
    if nnodes <= 0 or any(d < 0 for d in wanted):
        raise Exception(constants.ERR_DIMS)
    left = nnodes
    for d in filter(None, wanted):
        left, rest = divmod(left, d)
        if rest:
            raise Exception(constants.ERR_DIMS)
    free = wanted.count(0)
    if not free:
        if left != 1:
            raise Exception(constants.ERR_DIMS)
        return wanted
    chosen = iter(_balanced(left, free, left)[1])
    return [d or next(chosen) for d in wanted]


def _balanced(n, parts, most):
    """Return (spread, factors) of the most even factorisation of n into non-increasing factors."""
    if parts == 1:
        return (n, [n]) if n <= most else (None, None)
    best = (None, None)
    for first in _divisors(n):
        if first > most or first**parts < n:
            continue
        _, rest = _balanced(n // first, parts - 1, first)
        if rest is not None and (best[0] is None or (first - rest[-1], first) < best[0]):
            best = ((first - rest[-1], first), [first, *rest])
    return best


def _divisors(n):
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return small + [n // d for d in reversed(small) if d * d != n]


# Private functions that other packages use
# -----------------------------------------


def _typecode(datatype: Datatype) -> str | None:
    """Return the type string of a datatype."""
    return _code(datatype)


def _typealign(datatype: Datatype) -> int | None:
    """Return the alignment of a datatype."""
    return _align(datatype) if isinstance(datatype, Datatype) else None


def _sizeof(arg: Any) -> int:
    """Return the size of a handle in bytes."""
    cls = arg if isinstance(arg, type) else type(arg)
    if issubclass(cls, Status):
        return 4 * constants.F_STATUS_SIZE
    if issubclass(cls, Handle):
        return 8
    raise TypeError(f"expecting an MPI type or instance, got {cls.__name__}")


def _addressof(arg: Any) -> int:
    """Return the address of a handle."""
    return fast.address(arg)


def _handleof(arg: Any) -> int:
    """Return a handle as an integer."""
    if isinstance(arg, Status):
        return id(arg)
    if isinstance(arg, Handle):
        return arg.handle
    raise TypeError(f"expecting an MPI instance, got {type(arg).__name__}")
