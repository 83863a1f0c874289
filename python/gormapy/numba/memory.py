"""The memory that a call is given: in one piece, alive as long as others use it, and written back.

Each function here works in Python; its overload says what Numba compiles instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic, overload, register_jitable

from gormapy.numba.datatypes import NUMBERS
from gormapy.numba.functions import Function


def contiguous(data):
    """Return the elements of an array in one piece: the array itself, or a copy."""
    return np.ascontiguousarray(data)


@overload(contiguous)
def _compiled_contiguous(data):
    if isinstance(data, NUMBERS):
        return lambda data: np.array([data])
    if data.layout == "C":
        return lambda data: data

    def contiguous(data):
        return np.ascontiguousarray(data)

    return contiguous


def put_back(data, buffer):
    """Write what was received into an array that was not in one piece."""
    if not data.flags.c_contiguous:
        data[...] = buffer


@overload(put_back)
def _compiled_put_back(data, buffer):
    if data.layout == "C":
        return lambda data, buffer: None

    def put_back(data, buffer):
        data[...] = buffer

    return put_back


def operand(sendobj, recvobj):
    """Return what a reduction takes: an array, or a number as an array of the result's type."""
    if isinstance(sendobj, np.ndarray):
        return np.ascontiguousarray(sendobj)
    return np.array([sendobj], recvobj.dtype)


@overload(operand)
def _compiled_operand(sendobj, recvobj):
    if isinstance(sendobj, types.Array):
        return lambda sendobj, recvobj: contiguous(sendobj)

    def operand(sendobj, recvobj):
        buffer = np.empty(1, recvobj.dtype)
        buffer[0] = sendobj
        return buffer

    return operand


STILL_USED = 256  # GM_STILL_USED
_kept: list[Any] = []  # memory that others may still read or write: it stays for good


def ended(status, buffer):
    """Return the class of a call that used a buffer, which stays alive until here, or for good if it is still used."""
    if status >= STILL_USED:
        _kept.append(buffer)
    return status & (STILL_USED - 1)


def keep_of_interrupted(error):
    """Keep the arrays of a call that a signal's handler has ended: others may still use them."""
    trace = error.__traceback__.tb_next
    if trace and trace.tb_next and trace.tb_next.tb_frame.f_code is Function.__call__.__code__:
        _kept.extend(value for value in trace.tb_frame.f_locals.values() if isinstance(value, np.ndarray))


@intrinsic
def _compiled_keep(context, status, buffer):
    def generate(context, builder, signature, arguments):
        code, array = arguments
        used = builder.icmp_signed(">=", code, code.type(STILL_USED))
        with builder.if_then(used, likely=False):
            context.nrt.incref(builder, signature.args[1], array)
        return builder.and_(code, code.type(STILL_USED - 1))

    return types.int32(types.int32, buffer), generate


@overload(ended)
def _compiled_ended(status, buffer):
    def ended(status, buffer):
        return _compiled_keep(status, buffer)

    return ended


@register_jitable
def received(status, data, buffer):
    """Write back what a call has received into a buffer for an array, and return the class that it ended with."""
    if status < STILL_USED:
        put_back(data, buffer)
    return ended(status, buffer)
