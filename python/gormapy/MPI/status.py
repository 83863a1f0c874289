"""The status of a completed operation."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from gormapy._ext import fast

from . import constants
from . import datatype as _datatype  # noqa: F401  (makes the predefined datatypes)
from .hot import hot
from .typecode import DATATYPES, TYPE_CHARS

if TYPE_CHECKING:
    from typing_extensions import Self

    from .datatype import Datatype

BYTE = DATATYPES["BYTE"]


def expect_status(status):
    """Refuse what can't be filled in, before a call begins what then goes on."""
    if status is not None and not isinstance(status, fast.Status):
        raise TypeError(f"status: expecting a Status or None, not {type(status).__name__}")


class Status(fast.Status):
    """Source, tag, error and size of a message."""

    if TYPE_CHECKING:  # it is the extension's: programs make a status for each message

        def __new__(cls, status: Status | None = None) -> Self: ...

    def __eq__(self, other: object, /) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return self.__getstate__() == other.__getstate__()

    def __ne__(self, other: object, /) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return self.__getstate__() != other.__getstate__()

    __hash__ = None

    def __reduce__(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        return type(self), (), self.__getstate__()

    def __getstate__(self) -> dict[str, int]:
        return {
            "source": self._source,
            "tag": self._tag,
            "error": self._error,
            "nbytes": self._nbytes,
            "cancelled": self._cancelled,
        }

    def __setstate__(self, state: dict[str, int]) -> None:
        self._source = state["source"]
        self._tag = state["tag"]
        self._error = state["error"]
        self._nbytes = state["nbytes"]
        self._cancelled = state["cancelled"]

    def _set(self, source=constants.ANY_SOURCE):
        """Make this the status of an operation that moved nothing."""
        self._source = source
        self._tag = constants.ANY_TAG
        self._error = constants.SUCCESS
        self._nbytes = self._cancelled = 0

    @hot
    def Get_source(self) -> int:
        """Return the source of the message."""
        return self._source

    def Set_source(self, source: int) -> None:
        """Set the source of the message."""
        self._source = source

    @hot
    def Get_tag(self) -> int:
        """Return the tag of the message."""
        return self._tag

    def Set_tag(self, tag: int) -> None:
        """Set the tag of the message."""
        self._tag = tag

    @hot
    def Get_error(self) -> int:
        """Return the error of the operation."""
        return self._error

    def Set_error(self, error: int) -> None:
        """Set the error of the operation."""
        self._error = error

    @hot
    def Get_count(self, datatype: Datatype = BYTE) -> int:
        """Return how many elements of a datatype came."""
        size = datatype.Get_size()
        if size == 0:
            return 0 if self._nbytes == 0 else constants.UNDEFINED
        items, rest = divmod(self._nbytes, size)
        return constants.UNDEFINED if rest else items

    def Get_elements(self, datatype: Datatype) -> int:
        """Return how many predefined elements came."""
        return _elements(datatype, self._nbytes)

    def Set_elements(self, datatype: Datatype, count: int) -> None:
        """Set how many elements came."""
        self._nbytes = count * datatype.Get_size()

    def Is_cancelled(self) -> bool:
        """Report whether the operation was cancelled."""
        return bool(self._cancelled)

    def Set_cancelled(self, flag: bool) -> None:
        """Set whether the operation was cancelled."""
        self._cancelled = bool(flag)

    source = property(fast.Status.Get_source, Set_source, doc="Source of the message.")
    tag = property(fast.Status.Get_tag, Set_tag, doc="Tag of the message.")
    error = property(fast.Status.Get_error, Set_error, doc="Error of the operation.")
    cancelled = property(Is_cancelled, Set_cancelled, doc="Whether the operation was cancelled.")

    @property
    def count(self) -> int:
        """Size of the message."""
        return self._nbytes

    @count.setter
    def count(self, value: int) -> None:
        self._nbytes = value

    def tomemory(self) -> memoryview:
        """Return the memory of the status, as integers of 32 bits."""
        return self._memory().cast("i")

    def py2f(self) -> list[int]:
        """Return the status as a list of integers, as Fortran has it."""
        fields = self.tomemory().tolist()
        return fields + [0] * (constants.F_STATUS_SIZE - len(fields))

    @classmethod
    def f2py(cls, arg: list[int]) -> Self:
        """Create a status of a list of integers, as Fortran has it."""
        self = cls()
        memory = self.tomemory()
        memory[:] = memoryview(array("i", list(arg)[: len(memory)]))
        return self


def _elements(datatype, nbytes):
    """Count the basic elements in `nbytes` of a datatype's data."""
    signature = _signature(datatype)
    size = sum(n * s for n, s in signature)
    if size == 0:
        return 0 if nbytes == 0 else constants.UNDEFINED
    items, rest = divmod(nbytes, size)
    count = items * sum(n for n, _ in signature)
    for n, s in signature:
        whole, over = divmod(rest, s)
        if whole < n:
            return constants.UNDEFINED if over else count + whole
        count += n
        rest -= n * s
    return count


def _signature(datatype):
    """Return the basic elements of a datatype in order: [(how many, size of one), ...]."""
    construction = datatype._construction
    if construction is None:
        name = datatype._code_name() or ""
        if name == "2INT":
            return [(2, 4)]
        if name.endswith("_INT") and name not in TYPE_CHARS:
            return [(1, datatype.Get_size() - 4), (1, 4)]
        return [(1, datatype.Get_size())]
    combiner, types, _, params = construction
    if combiner in (constants.COMBINER_DUP, constants.COMBINER_RESIZED):
        return _signature(types[0])
    if combiner == constants.COMBINER_STRUCT:
        parts = []
        for length, part in zip(params["blocklengths"], types):
            parts += _signature(part) * length
        return _joined(parts)
    base = types[0]
    copies = datatype.Get_size() // base.Get_size() if base.Get_size() else 0
    signature = _signature(base)
    if len(signature) == 1:
        n, size = signature[0]
        return [(n * copies, size)]
    return _joined(signature * copies)


def _joined(parts):
    joined = []
    for n, size in parts:
        if joined and joined[-1][1] == size:
            joined[-1] = (joined[-1][0] + n, size)
        else:
            joined.append((n, size))
    return joined
