"""Hints that windows and Alloc_mem know: their values, defaults and what they do."""

from . import constants
from .exception import error
from .info import Info

_MOST_ALIGNED = 2 << 20


def given(info):
    """Return the hints of an info argument as a dictionary."""
    if not isinstance(info, Info):
        raise TypeError(f"info: expecting an Info, got {type(info).__name__}")
    return dict(info.items()) if info else {}


def _no_value(key, value, choices):
    return error(constants.ERR_INFO_VALUE, f"info: {key} is {value!r}; it must be {choices}")


def alignment(hints):
    """Return what mpi_minimum_memory_alignment asks for in bytes, 0 if nothing."""
    key = "mpi_minimum_memory_alignment"
    if key not in hints:
        return 0
    value = hints[key].strip()
    number = int(value) if value.isascii() and value.isdecimal() and len(value) < 20 else 0
    if number & (number - 1) or not 0 < number <= _MOST_ALIGNED:
        raise _no_value(key, hints[key], f"a power of two from 1 to {_MOST_ALIGNED}, in bytes")
    return number
