"""Hints of windows and Alloc_mem: their values, defaults and effects."""

from functools import cached_property

from gormapy._ext import core

from . import constants
from .exception import check, error
from .info import INFO_NULL, Info

_MOST_ALIGNED = 2 << 20
_PAGE = 4096
_ALIGNMENT = "mpi_minimum_memory_alignment"
_NATIVE = "gormapy_native_atomics"
_ORDER = ("rar", "raw", "war", "waw")

# Hints that are passed to the core: the Hints of gocore/rma.
_BITS = {"no_locks": 1, "same_size": 2, "same_disp_unit": 4, "alloc_shared_noncontig": 8}
# Hints that may change as long as the window lives; the others only have an effect when it is made.
_CHANGING = ("no_locks", "accumulate_ordering", "accumulate_ops")


def given(info):
    """Return the hints of an info argument as a dictionary."""
    if not isinstance(info, Info):
        raise TypeError(f"info: expecting an Info, got {type(info).__name__}")
    return dict(info.items()) if info else {}


def _no_value(key, value, choices):
    return error(constants.ERR_INFO_VALUE, f"info: {key} is {value!r}; it must be {choices}")


def alignment(hints):
    """Return the value of mpi_minimum_memory_alignment in bytes, 0 if it is not given."""
    if _ALIGNMENT not in hints:
        return 0
    value = hints[_ALIGNMENT].strip()
    number = int(value) if value.isascii() and value.isdecimal() and len(value) < 20 else 0
    if number & (number - 1) or not 0 < number <= _MOST_ALIGNED:
        raise _no_value(_ALIGNMENT, hints[_ALIGNMENT], f"a power of two from 1 to {_MOST_ALIGNED}, in bytes")
    return number


def _truth(key, value):
    if value.strip() not in ("true", "false"):
        raise _no_value(key, value, "true or false")
    return value.strip()


def _ordering(key, value):
    words = [word.strip() for word in value.split(",")]
    if words == ["none"]:
        return "none"
    if not words or any(word not in _ORDER for word in words):
        raise _no_value(key, value, f"none, or some of {','.join(_ORDER)}")
    return ",".join(word for word in _ORDER if word in words)


def _operations(key, value):
    if value.strip() not in ("same_op", "same_op_no_op"):
        raise _no_value(key, value, "same_op or same_op_no_op")
    return value.strip()


def _native(key, value):
    if value.strip() not in ("true", "false", "auto"):
        raise _no_value(key, value, "true, false or auto")
    return value.strip()


# Accumulates are atomic and in order whatever the hints say: these hints are kept and have no effect.
_KEYS = {
    "no_locks": (_truth, "false"),
    "accumulate_ordering": (_ordering, ",".join(_ORDER)),
    "accumulate_ops": (_operations, "same_op_no_op"),
    "same_size": (_truth, "false"),
    "same_disp_unit": (_truth, "false"),
    _NATIVE: (_native, "auto"),
}


class Hints:
    """The hints of one window, with the values that hold."""

    def __init__(self, info, flavor):
        hints = given(info)
        self._readers = dict(_KEYS)
        if flavor == constants.WIN_FLAVOR_SHARED:
            self._readers["alloc_shared_noncontig"] = (_truth, "false")
        self.values = {key: default for key, (_, default) in self._readers.items()}
        self._read(hints, self._readers)
        self.alignment = 0
        if flavor in (constants.WIN_FLAVOR_ALLOCATE, constants.WIN_FLAVOR_SHARED):
            self.alignment = alignment(hints)
            # of parts that follow each other without a gap only the first one is aligned
            contiguous = flavor == constants.WIN_FLAVOR_SHARED and self.values["alloc_shared_noncontig"] == "false"
            if not contiguous or self.alignment:
                self.values[_ALIGNMENT] = str(max(self.alignment, _PAGE))

    def copy(self):
        """Return hints that can be changed."""
        made = Hints.__new__(Hints)
        made._readers, made.alignment, made.values = self._readers, self.alignment, dict(self.values)
        return made

    def _read(self, hints, keys):
        read = {key: self._readers[key][0](key, hints[key]) for key in keys if key in hints}
        self.values.update(read)  # all or, if one is wrong, none

    @cached_property
    def bits(self):
        """The hints for the core when the window is made, as bits."""
        bits = sum(bit for key, bit in _BITS.items() if self.values.get(key) == "true")
        return bits + {"true": 16, "false": 32, "auto": 0}[self.values[_NATIVE]]


_defaults = {}  # flavor -> Hints of the windows that are made without any
_of = {}  # handle -> Hints


def hints(info, flavor):
    """Return the hints of a window that is made."""
    if info is not INFO_NULL:
        return Hints(info, flavor)
    if flavor not in _defaults:
        _defaults[flavor] = Hints(info, flavor)
    return _defaults[flavor]


def remember(handle, hints):
    """Remember the hints of a window that has been made."""
    _of[handle] = hints


def forget(handle):
    """Remove the hints of a window that is freed."""
    _of.pop(handle, None)


def change(handle, info):
    """Apply those new hints of a window that can still change."""
    hints = _of[handle].copy()  # windows without any share theirs
    hints._read(given(info), _CHANGING)
    _of[handle] = hints
    check(core.WinNoLocks(handle, hints.values["no_locks"] == "true"))


def current(handle):
    """Return the hints of a window as an info object."""
    return Info.Create(_of[handle].values)
