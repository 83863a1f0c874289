"""Sessions: uses of MPI that parts of a program begin and end by themselves (MPI 4.1, section 11.3).

All of them use the library of this process. It starts with the first of `MPI.Init` and `Session.Init`. It ends with
`MPI.Finalize`, or, if sessions are open then, with the last of them; a process whose only uses are sessions ends it at
exit, so that it can begin another one. Once ended it can't be started again.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gormapy._ext import core, fast

from . import bsend, constants, environment
from .comm import _SELF, _WORLD
from .errhandler import ErrorHandling
from .exception import check, error
from .group import Group
from .handle import Handle, adopt, expect, named
from .info import INFO_NULL, Info
from .msgbuffer import index

if TYPE_CHECKING:
    from typing_extensions import Self

    from gormapy.typing import Buffer

    from .errhandler import Errhandler
    from .request import Request

_SETS = {"mpi://WORLD": _WORLD, "mpi://SELF": _SELF}  # name of a process set -> communicator of the same processes
_KINDS = ("mpi", "system")  # of memory that calls take

_hints = {}  # handle of an open session -> its hints
_changes = threading.Lock()
_last = 0


class Session(ErrorHandling, Handle, fast.Handle):
    """Use of MPI that a part of a program begins and ends by itself."""

    _family = "Session"
    __slots__ = ("__weakref__",)

    def __new__(cls, session: Session | None = None) -> Self:
        return adopt(Session, super().__new__(cls), session)

    def _null_error(self):
        raise error(constants.ERR_SESSION, "the session is SESSION_NULL (it was never begun, or has been finalized)")

    def _opened(self):
        """Return the hints of the session, which must be open."""
        if not self._h:
            self._null_error()
        try:
            return _hints[self._h]
        except KeyError:
            raise error(constants.ERR_SESSION, f"there is no session {self._h}: it has been finalized") from None

    @classmethod
    def Init(cls, info: Info = INFO_NULL, errhandler: Errhandler | None = None) -> Self:
        """Begin a session."""
        global _last
        if info is not None:
            expect("Info", info, "Session.Init: info")
        asked = info.Get("mpi_memory_alloc_kinds") if info else None
        environment.begin_session()
        self = cls.__new__(cls)
        with _changes:
            self._h = _last = _last + 1
            _hints[self._h] = {"thread_level": "MPI_THREAD_MULTIPLE", "mpi_memory_alloc_kinds": _kinds(asked)}
        if errhandler is not None:
            try:
                self.Set_errhandler(errhandler)
            except BaseException:
                self.Finalize()
                raise
        return self

    def Finalize(self) -> None:
        """End the session."""
        self._opened()
        with _changes:
            if _hints.pop(self._h, None) is None:
                self._null_error()
        bsend.forget((self._family, self._h))
        self._forget_errhandler()
        self._h = 0
        environment.end_session()

    def free(self) -> None:
        """Call Finalize, if the session is not null."""
        if self:
            self.Finalize()

    def Get_num_psets(self, info: Info = INFO_NULL) -> int:
        """Return the number of process sets."""
        self._opened()
        return len(_SETS)

    def Get_nth_pset(self, n: int, info: Info = INFO_NULL) -> str:
        """Return the name of the n-th process set."""
        self._opened()
        n = index(n, "Get_nth_pset: n")
        if not 0 <= n < len(_SETS):
            raise error(constants.ERR_ARG, f"Get_nth_pset: there are process sets 0 to {len(_SETS) - 1}, not {n}")
        return list(_SETS)[n]

    def Get_info(self) -> Info:
        """Return the hints of the session."""
        return Info.Create(self._opened())

    def Get_pset_info(self, pset_name: str) -> Info:
        """Return the hints of a process set."""
        return Info.Create({"mpi_size": str(check(core.CommSize(self._set("Get_pset_info", pset_name))))})

    def Create_group(self, pset_name: str) -> Group:
        """Create a group of the processes in a process set."""
        return Group._made(core.CommGroup(self._set("Create_group", pset_name)))

    def _set(self, call, name):
        """Return the communicator of the processes in a process set."""
        self._opened()
        if not isinstance(name, str):
            raise TypeError(f"{call}: expecting the name of a process set, got {type(name).__name__}")
        try:
            return _SETS[name]
        except KeyError:
            names = " and ".join(_SETS)
            raise error(constants.ERR_ARG, f"{call}: there is no process set {name!r}; there are {names}") from None

    def Attach_buffer(self, buf: Buffer | None) -> None:
        """Attach a buffer for messages in buffered mode."""
        self._opened()
        bsend.attach((self._family, self._h), buf)

    def Detach_buffer(self) -> Buffer | None:
        """Detach the buffer for messages in buffered mode."""
        self._opened()
        return bsend.detach((self._family, self._h))

    def Flush_buffer(self) -> None:
        """Wait until all buffered messages have been sent."""
        self._opened()
        bsend.Flush_buffer()

    def Iflush_buffer(self) -> Request:
        """Start to wait until all buffered messages have been sent."""
        self._opened()
        return bsend.Iflush_buffer()


def _kinds(asked):
    """Return the kinds of memory that a session takes: of those asked for, the ones of _KINDS, and these."""
    offered = [kind for kind in (asked or "").split(",") if kind.partition(":")[0] in _KINDS and kind]
    return ",".join([*offered, *(kind for kind in _KINDS if kind not in offered)])


SESSION_NULL = Session()
named("Session", 0, "SESSION_NULL")
