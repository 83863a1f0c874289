"""What each parameter of a call has to be, in Python and where Numba compiles."""

from __future__ import annotations

import functools
import inspect

import numba
import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import overload

from gormapy import MPI
from gormapy.numba.datatypes import NUMBERS, handle_of
from gormapy.numba.memory import keep_of_interrupted


def _is_data(kind):
    return isinstance(kind, types.Array) and handle_of(kind.dtype) is not None


def _name(dtype):
    return "object" if dtype == types.pyobject else str(dtype)


def _wrong_sent(kind):
    if isinstance(kind, types.Array) and not _is_data(kind):
        return f"an array of {_name(kind.dtype)} can't be sent"
    if not (_is_data(kind) or (isinstance(kind, NUMBERS) and handle_of(kind) is not None)):
        return f"expecting an array of numbers, or a number, not {kind}"
    return None


def _wrong_filled(kind):
    if isinstance(kind, types.Array) and not _is_data(kind):
        return f"an array of {_name(kind.dtype)} can't be received"
    if not _is_data(kind):
        return f"expecting an array of numbers, not {kind}"
    return None if kind.mutable else "the array is read-only"


def _wrong_integer(kind):
    integer = isinstance(kind, (types.Integer, types.IntEnumMember))
    return None if integer else f"expecting an integer, not {kind}"


def _wrong_request(kind):
    if isinstance(kind, types.Array) and kind.dtype == types.int64 and kind.ndim == 1:
        return None if kind.mutable else "the array is read-only"
    return f"expecting an array of requests, as isend returns it, not {kind}"


def _wrong_requests(kind):
    if kind == types.Tuple(()):
        return None
    if isinstance(kind, (types.UniTuple, types.List, types.ListType)):
        kind = kind.dtype
    return _wrong_request(kind)


_LARGEST = np.iinfo(np.int64).max


def _type_of(name, value):
    """Return the type of an argument in Python."""
    if name == "requests":
        return _type_of_requests(value)
    if isinstance(value, (MPI.Comm, MPI.Win)):
        raise TypeError(f"{name}: expecting a handle: write gormapy.numba.handle(...)")
    if _RULES.get(name) is _wrong_integer and isinstance(value, (int, np.integer)) and value > _LARGEST:
        raise TypeError(f"{name}: {value} is larger than any that there may be, {_LARGEST}")
    if isinstance(value, np.ndarray) and value.dtype == "S1":  # characters, which Numba has no arrays of
        return types.Array(types.uint8, value.ndim, "A", readonly=not value.flags.writeable)
    return numba.typeof(value)


def _type_of_requests(value):
    """Return the type of an array of requests, or of those in a sequence: the first that is wrong, if any is."""
    if not isinstance(value, (list, tuple)):
        return numba.typeof(value)
    kinds = [numba.typeof(item) for item in value]
    return next((kind for kind in kinds if _wrong_request(kind)), kinds[0]) if kinds else types.Tuple(())


# What each parameter has to be, unless the call says that it fills it.
_RULES = {
    **dict.fromkeys(("data", "senddata", "send_data", "sendobj", "origin"), _wrong_sent),
    **dict.fromkeys(("recvdata", "recv_data", "recvobj", "result"), _wrong_filled),
    **dict.fromkeys(
        ("dest", "source", "tag", "sendtag", "recvtag", "root", "count", "operator", "comm"), _wrong_integer
    ),
    **dict.fromkeys(("win", "target_rank", "target_disp"), _wrong_integer),
    "request": _wrong_request,
    "requests": _wrong_requests,
}


def compilable(body=None, *, fills="", same=()):
    """Make a call of a function that works in Python as it stands, and that Numba compiles.

    fills: the parameter that it writes to; same: parameters that must be of one dtype.
    """
    if body is None:
        return functools.partial(compilable, fills=fills, same=same)
    signature = inspect.signature(body)

    def wrong(kinds):
        """Say what is wrong about the types of arguments."""
        for name, kind in kinds.items():
            given = numba.typeof(kind.value) if isinstance(kind, types.Omitted) else kind
            text = (_wrong_filled if name == fills else _RULES[name])(given)
            if text:
                return f"gormapy.numba.{body.__name__}: {name}: {text}"
        dtypes = {kinds[name].dtype for name in same if isinstance(kinds.get(name), types.Array)}
        if len(dtypes) > 1:
            named = ", ".join(str(kinds[name]) for name in same)
            return f"gormapy.numba.{body.__name__}: {' and '.join(same)} are of different types: {named}"
        return None

    @functools.wraps(body)
    def call(*args, **kwargs):
        kinds = {}
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            try:
                kinds[name] = _type_of(name, value)
            except TypeError as error:
                raise TypeError(f"gormapy.numba.{body.__name__}: {error}") from None
            except (ValueError, NotImplementedError, numba.core.errors.NumbaError):
                what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
                raise TypeError(f"gormapy.numba.{body.__name__}: {name}: {what} can't be communicated") from None
        text = wrong(kinds)
        if text:
            raise TypeError(text)
        try:
            return body(*args, **kwargs)
        except BaseException as error:
            if not body.__name__.startswith(("wait", "test")):  # their requests keep what is communicated
                keep_of_interrupted(error)
            raise

    @functools.wraps(body)
    def compiled(*args, **kwargs):
        text = wrong(signature.bind(*args, **kwargs).arguments)
        if text:
            raise TypingError(text)
        return body

    overload(call)(compiled)
    return call
