"""Hints of files: their values, defaults and effects."""

from . import constants
from .exception import error
from .info import Info
from .wininfo import given

_BUFFER = 4 << 20
_MOST = 1 << 31
_SWITCH = {"true": 1, "enable": 1, "false": 2, "disable": 2, "automatic": 0}
_NAMES = ("automatic", "true", "false")
# MPI's names of the hints, and those that MPI libraries have in common
_KEYS = {
    "cb_buffer_size": 0,
    "cb_nodes": 1,
    "collective_buffering": 2,
    "romio_cb_write": 2,
    "romio_cb_read": 2,
    "file_perm": 3,
}
_DEFAULTS = (_BUFFER, 0, 0, 0o666)


def _number(key, value, least, most, base=10):
    digits = value.strip()
    try:
        number = int(digits, base) if digits.isascii() and len(digits) < 20 else -1
    except ValueError:
        number = -1
    if not least <= number <= most:
        form = f"a number from {least} to {most}" if base == 10 else "access rights in octal, such as 644"
        raise error(constants.ERR_INFO_VALUE, f"info: {key} is {value!r}; it must be {form}")
    return number


def _switch(key, value):
    try:
        return _SWITCH[value.strip()]
    except KeyError:
        choices = ", ".join(_SWITCH)
        raise error(constants.ERR_INFO_VALUE, f"info: {key} is {value!r}; it must be one of {choices}") from None


_READERS = {
    "cb_buffer_size": lambda key, value: _number(key, value, 4096, _MOST),
    "cb_nodes": lambda key, value: _number(key, value, 1, _MOST),
    "file_perm": lambda key, value: _number(key, value, 0, 0o777, 8),
}


def read(info, hints=_DEFAULTS):
    """Return the hints for the core: window size, aggregators, two phases or not, access rights."""
    hints = list(hints)
    for key, value in given(info).items():
        if key in _KEYS:
            hints[_KEYS[key]] = _READERS.get(key, _switch)(key, value)
    return hints


def info(hints):
    """Return the hints in effect as an info object."""
    buffer, aggregators, collective, rights = hints
    items = {"cb_buffer_size": str(buffer), "collective_buffering": _NAMES[collective], "file_perm": f"{rights:o}"}
    if aggregators:
        items["cb_nodes"] = str(aggregators)
    return Info.Create(items)
