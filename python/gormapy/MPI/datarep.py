"""Data representations of files: those of the standard, and names that programs register for the native one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from . import constants
from .exception import error

if TYPE_CHECKING:
    from collections.abc import Callable

    from gormapy.typing import Buffer

    from .datatype import Datatype

# Their numbers in the core, which compares them across ranks.
_PREDEFINED = {"native": 0, "external32": 1, "internal": 2}

_registered: dict[str, Callable[[Datatype], int]] = {}


def Register_datarep(
    datarep: str,
    read_fn: Callable[[Buffer, Datatype, int, Buffer, int], None] | None,
    write_fn: Callable[[Buffer, Datatype, int, Buffer, int], None] | None,
    extent_fn: Callable[[Datatype], int],
) -> None:
    """Register the name of a data representation for files."""
    if not isinstance(datarep, str):
        raise TypeError(f"datarep: expecting str, got {type(datarep).__name__}")
    for name, function in (("read_fn", read_fn), ("write_fn", write_fn), ("extent_fn", extent_fn)):
        if not callable(function) and (function is not None or name == "extent_fn"):
            raise TypeError(f"{name}: expecting a function, got {type(function).__name__}")
    if not 0 < len(datarep) <= constants.MAX_DATAREP_STRING:
        raise error(
            constants.ERR_ARG,
            f"Register_datarep: the name has {len(datarep)} characters; "
            f"it must have 1 to {constants.MAX_DATAREP_STRING}",
        )
    if datarep.lower() in _PREDEFINED or datarep in _registered:
        raise error(constants.ERR_DUP_DATAREP, f"Register_datarep: there is a data representation {datarep!r} already")
    if read_fn is not None or write_fn is not None:
        raise error(
            constants.ERR_UNSUPPORTED_DATAREP,
            "Register_datarep: gormapy calls no conversion functions; read_fn and write_fn can be None, for data that "
            'is in the file as it is in memory, and Set_view has "external32", which is portable and needs no '
            "functions; other formats: convert the data and write it as BYTE",
        )
    _registered[datarep] = extent_fn


def find(datarep):
    """Return the name and the number of a data representation."""
    if not isinstance(datarep, str):
        raise TypeError(f"datarep: expecting str, got {type(datarep).__name__}")
    if datarep.lower() in _PREDEFINED:
        return datarep.lower(), _PREDEFINED[datarep.lower()]
    if datarep in _registered:
        return datarep, 3 + crc32(datarep.encode())
    more = ", ".join(map(repr, _registered))
    raise error(
        constants.ERR_UNSUPPORTED_DATAREP,
        f'Set_view: the data representation {datarep!r} is not supported; "native" is, which writes the bytes as they '
        'are in memory, "internal", which is the same, and "external32", which all machines read'
        + (f"; registered are {more}" if more else ""),
    )


def check_extents(datarep, datatypes):
    """Check that a registered representation has the extents of memory for what datatypes consist of."""
    extent_fn = _registered.get(datarep)
    if extent_fn is None:
        return
    seen, todo = set(), list(datatypes)
    while todo:
        datatype = todo.pop()
        if not datatype.is_predefined:
            todo.extend(datatype._construction[1])
        elif datatype._h not in seen:
            seen.add(datatype._h)
            extent = extent_fn(datatype)
            if extent != datatype.extent:
                raise error(
                    constants.ERR_CONVERSION,
                    f"Set_view: extent_fn of the data representation {datarep!r} returned {extent} for a datatype of "
                    f"{datatype.extent} bytes; without conversion functions it must be the same",
                )
