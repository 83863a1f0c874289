"""Arrays that hold requests and keep the memory that is communicated.

Each function here works in Python; its overload says what Numba compiles instead.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from numba.np import arrayobj

from gormapy.numba import functions as c
from gormapy.numba.memory import contiguous, put_back

RequestType = np.int64
"""Type of the elements of an array of requests; 0 is a request that is complete."""


class _Room(ctypes.c_int64 * 1):
    """Memory of a request, which keeps the array that is communicated."""

    def __del__(self):
        number = next(_numbers)
        _unfinished[number] = self.buffer
        if not c.keep(True, self[0], number):
            del _unfinished[number]


# The arrays of requests that were let go while they were under way, by the numbers that pybind/shim/compiled.c has of
# them. Compiled code gives it the addresses of its own.
_unfinished: dict[int, Any] = {}
_numbers = itertools.count(1)


def release_unfinished():
    """Let go of an array whose request was let go, and is over now."""
    _unfinished.pop(c.collect(True), None)


@intrinsic
def _compiled_release(context):
    def generate(context, builder, signature, arguments):
        memory = builder.call(_declared(builder, "gormapy_compiled_collect", 64, 1), [ir.IntType(64)(0)])
        with builder.if_then(cgutils.is_not_null(builder, memory), likely=False):
            pointer = builder.inttoptr(memory, cgutils.voidptr_t)
            context.nrt.decref(builder, types.MemInfoPointer(types.voidptr), pointer)
        return context.get_dummy_value()

    return types.none(), generate


@overload(release_unfinished)
def _compiled_release_unfinished():
    def release_unfinished():
        _compiled_release()

    return release_unfinished


def _declared(builder, name, bits, parameters):
    """Return a function of pybind/shim/compiled.c in a module."""
    kind = ir.FunctionType(ir.IntType(bits), [ir.IntType(64)] * parameters)
    return cgutils.get_or_insert_function(builder.module, kind, name)


def request_for(buffer):
    """Return an array with room for a request, which keeps a buffer alive."""
    room = _Room()
    room.buffer = buffer
    return np.frombuffer(room, RequestType)


_REQUEST = types.Array(types.int64, 1, "C")


@intrinsic
def _compiled_request(context, buffer):
    def generate(context, builder, signature, arguments):
        (kind,), (array,) = signature.args, arguments
        context.nrt.incref(builder, kind, array)
        memory = context.nrt.meminfo_alloc_dtor(
            builder, context.get_constant(types.uintp, 16), _destructor(context, builder)
        )
        data = context.nrt.meminfo_data(builder, memory)
        words = builder.bitcast(data, ir.IntType(64).as_pointer())
        builder.store(ir.IntType(64)(0), words)
        kept = builder.bitcast(builder.gep(words, [ir.IntType(32)(1)]), cgutils.voidptr_t.as_pointer())
        builder.store(arrayobj.make_array(kind)(context, builder, array).meminfo, kept)
        request = arrayobj.make_array(_REQUEST)(context, builder)
        length, step = context.get_constant(types.intp, 1), context.get_constant(types.intp, 8)
        arrayobj.populate_array(request, words, [length], [step], step, memory)
        return request._getvalue()

    return _REQUEST(buffer), generate


def _destructor(context, builder):
    """Return the function that releases the array of a request, unless the request is under way.

    The request is the first word of the memory, the reference to the array the second one.
    """
    pointer = cgutils.voidptr_t
    kind = ir.FunctionType(ir.VoidType(), [pointer, context.get_value_type(types.uintp), pointer])
    function = cgutils.get_or_insert_function(builder.module, kind, "gormapy_release_array_of_request")
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        inner = ir.IRBuilder(function.append_basic_block())
        words = inner.bitcast(function.args[0], pointer.as_pointer())
        memory = inner.load(inner.gep(words, [ir.IntType(32)(1)]))
        request = inner.load(inner.bitcast(words, ir.IntType(64).as_pointer()))
        keep = _declared(builder, "gormapy_compiled_keep", 32, 3)
        kept = inner.call(keep, [ir.IntType(64)(0), request, inner.ptrtoint(memory, ir.IntType(64))])
        with inner.if_then(cgutils.is_null(inner, kept)):
            context.nrt.decref(inner, types.MemInfoPointer(types.voidptr), memory)
        inner.ret_void()
    return function


@overload(request_for)
def _compiled_request_for(buffer):
    def request_for(buffer):
        return _compiled_request(buffer)

    return request_for


def joined(requests):
    """Return the requests of an array, or of a sequence of arrays, in one piece."""
    if isinstance(requests, np.ndarray):
        return np.ascontiguousarray(requests)
    return _join(requests)


def _join(requests):
    count = 0
    for request in requests:
        count += request.size
    handles = np.zeros(count, RequestType)
    at = 0
    for request in requests:
        for value in request:
            handles[at] = value
            at += 1
    return handles


@overload(joined)
def _compiled_joined(requests):
    if isinstance(requests, types.Array):

        def joined(requests):
            return contiguous(requests)

        return joined
    if requests == types.Tuple(()):
        return lambda requests: np.zeros(0, RequestType)
    return _join


def divide(requests, handles):
    """Write back which requests are complete."""
    if isinstance(requests, np.ndarray):
        put_back(requests, handles)
    else:
        _divide(requests, handles)


def _divide(requests, handles):
    at = 0
    for request in requests:
        for k in range(request.size):
            request[k] = handles[at]
            at += 1


@overload(divide)
def _compiled_divide(requests, handles):
    if isinstance(requests, types.Array):

        def divide(requests, handles):
            put_back(requests, handles)

        return divide
    if requests == types.Tuple(()):
        return lambda requests, handles: None
    return _divide
