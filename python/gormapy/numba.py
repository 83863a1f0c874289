"""Calls of MPI for functions that Numba compiles.

The names and arguments are those of the package numba-mpi, so that a program of its may say::

    import gormapy.numba as numba_mpi

Each call can be made in a function of ``numba.njit``, with ``nogil=True`` and ``cache=True`` as well, and in Python.
It returns a status: 0 (`SUCCESS`), or the class of an error, whose text is `last_error`'s. Error handlers of
communicators and windows are not called. `put`, `get` and what follows them are beyond numba-mpi.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import itertools
import operator as _operator
from enum import IntEnum
from typing import Any

import numpy as np

try:
    import numba as _numba
except ModuleNotFoundError as _error:
    if _error.name != "numba":
        raise
    raise ImportError("gormapy.numba needs Numba: pip install numba", name="numba") from None

import llvmlite.binding as _llvm
from llvmlite import ir as _ir
from numba.core import cgutils as _cgutils
from numba.core import types as _types
from numba.core.errors import TypingError as _TypingError
from numba.extending import intrinsic as _intrinsic
from numba.extending import overload as _overload
from numba.extending import register_jitable as _register_jitable
from numba.extending import typeof_impl as _typeof_impl
from numba.np import arrayobj as _arrayobj
from numba.np.numpy_support import as_dtype as _as_dtype

from gormapy import MPI
from gormapy._ext import fast
from gormapy.MPI import exception as _exception
from gormapy.MPI.constants import (
    ANY_SOURCE,
    ANY_TAG,
    ERR_BUFFER,
    ERR_COUNT,
    ERR_REQUEST,
    SUCCESS,
    THREAD_MULTIPLE,
    UNDEFINED,
)

__all__ = [
    "SUCCESS",
    "Operator",
    "RequestType",
    "accumulate",
    "allgather",
    "allreduce",
    "barrier",
    "bcast",
    "fetch_and_op",
    "flush",
    "flush_all",
    "gather",
    "get",
    "handle",
    "initialized",
    "irecv",
    "isend",
    "last_error",
    "put",
    "query_thread",
    "rank",
    "recv",
    "reduce",
    "scatter",
    "send",
    "sendrecv",
    "size",
    "test",
    "testall",
    "testany",
    "wait",
    "waitall",
    "waitany",
    "wtime",
]

RequestType = np.int64
"""Type of the elements of an array of requests; 0 is a request that is complete."""

_WORLD = MPI.COMM_WORLD._h


class Operator(IntEnum):
    """Operations of reductions."""

    MAX = MPI.MAX._h
    MIN = MPI.MIN._h
    SUM = MPI.SUM._h
    PROD = MPI.PROD._h
    LAND = MPI.LAND._h
    LOR = MPI.LOR._h
    LXOR = MPI.LXOR._h
    BAND = MPI.BAND._h
    BOR = MPI.BOR._h
    BXOR = MPI.BXOR._h
    REPLACE = MPI.REPLACE._h
    NO_OP = MPI.NO_OP._h


def handle(obj: MPI.Comm | MPI.Win) -> int:
    """Return the integer by which a communicator or a window is given to the calls. 0: it was freed, or is null."""
    if isinstance(obj, MPI.Intercomm):
        raise TypeError("handle: expecting a communicator of one group, got an intercommunicator")
    if not isinstance(obj, (MPI.Comm, MPI.Win)):
        raise TypeError(f"handle: expecting a Comm or a Win, got {type(obj).__name__}")
    return MPI._handleof(obj)


def last_error() -> str:
    """Return the text of the last error of this thread's calls, "" if there is none."""
    code = _last_error()
    return _exception.error_text(code) if code else ""


# Functions of the extension
# --------------------------

_addresses = fast.compiled_addresses()


class _Function:
    """A function of pybind/shim/compiled.c, for Python by ctypes, and for compiled code by a symbol.

    The address of a symbol is looked up when code is loaded: so Numba can keep compiled code for other processes.
    """

    def __init__(self, name, parameters, result=_types.int32):
        address = _addresses[name]
        symbol = f"gormapy_compiled_{name}"
        _llvm.add_symbol(symbol, address)
        self.type = _types.ExternalFunction(symbol, result(*[_types.int64] * parameters))
        ctype = {_types.int32: ctypes.c_int, _types.int64: ctypes.c_int64, _types.float64: ctypes.c_double}[result]
        self.function = ctypes.CFUNCTYPE(ctype, *[ctypes.c_int64] * parameters)(address)

    def __call__(self, *arguments):
        return self.function(*map(_operator.index, arguments))


@_typeof_impl.register(_Function)
def _type_of_function(value, context):
    return value.type


_initialized = _Function("initialized", 0)
_last_error = _Function("last_error", 0)
_refused = _Function("refused", 1)
_wtime = _Function("wtime", 0, _types.float64)
_rank = _Function("rank", 1, _types.int64)
_size = _Function("size", 1, _types.int64)
_send = _Function("send", 6)
_recv = _Function("recv", 6)
_sendrecv = _Function("sendrecv", 11)
_isend = _Function("isend", 7)
_irecv = _Function("irecv", 7)
_keep = _Function("keep", 3)
_collect = _Function("collect", 1, _types.int64)
_wait = _Function("wait", 1)
_waitall = _Function("waitall", 2)
_waitany = _Function("waitany", 3)
_test = _Function("test", 2)
_testall = _Function("testall", 3)
_testany = _Function("testany", 4)
_barrier = _Function("barrier", 1)
_bcast = _Function("bcast", 5)
_scatter = _Function("scatter", 8)
_gather = _Function("gather", 8)
_allgather = _Function("allgather", 8)
_reduce = _Function("reduce", 7)
_allreduce = _Function("allreduce", 6)
_put = _Function("put", 7)
_get = _Function("get", 7)
_accumulate = _Function("accumulate", 8)
_fetch_and_op = _Function("fetch_and_op", 8)
_flush = _Function("flush", 2)
_flush_all = _Function("flush_all", 1)

# Arguments
# ---------

_DATATYPES = {
    np.dtype(name): datatype._h
    for name, datatype in {
        "?": MPI.C_BOOL,
        "i1": MPI.INT8_T,
        "i2": MPI.INT16_T,
        "i4": MPI.INT32_T,
        "i8": MPI.INT64_T,
        "u1": MPI.UINT8_T,
        "u2": MPI.UINT16_T,
        "u4": MPI.UINT32_T,
        "u8": MPI.UINT64_T,
        "f4": MPI.FLOAT,
        "f8": MPI.DOUBLE,
        "c8": MPI.C_FLOAT_COMPLEX,
        "c16": MPI.C_DOUBLE_COMPLEX,
        "S1": MPI.CHAR,
    }.items()
}
_NUMBERS = (_types.Number, _types.Boolean)


def _handle_of(dtype):
    """Return the datatype of a dtype of Numba, or None."""
    try:
        return _DATATYPES.get(np.dtype(_as_dtype(dtype)))
    except _numba.core.errors.NumbaNotImplementedError:
        return None


def _is_data(kind):
    return isinstance(kind, _types.Array) and _handle_of(kind.dtype) is not None


def _name(dtype):
    return "object" if dtype == _types.pyobject else str(dtype)


def _wrong_sent(kind):
    if isinstance(kind, _types.Array) and not _is_data(kind):
        return f"an array of {_name(kind.dtype)} can't be sent"
    if not (_is_data(kind) or (isinstance(kind, _NUMBERS) and _handle_of(kind) is not None)):
        return f"expecting an array of numbers, or a number, not {kind}"
    return None


def _wrong_filled(kind):
    if isinstance(kind, _types.Array) and not _is_data(kind):
        return f"an array of {_name(kind.dtype)} can't be received"
    if not _is_data(kind):
        return f"expecting an array of numbers, not {kind}"
    return None if kind.mutable else "the array is read-only"


def _wrong_integer(kind):
    integer = isinstance(kind, (_types.Integer, _types.IntEnumMember))
    return None if integer else f"expecting an integer, not {kind}"


def _wrong_request(kind):
    if isinstance(kind, _types.Array) and kind.dtype == _types.int64 and kind.ndim == 1:
        return None if kind.mutable else "the array is read-only"
    return f"expecting an array of requests, as isend returns it, not {kind}"


def _wrong_requests(kind):
    if kind == _types.Tuple(()):
        return None
    if isinstance(kind, (_types.UniTuple, _types.List, _types.ListType)):
        kind = kind.dtype
    return _wrong_request(kind)


def _type_of(name, value):
    """Return the type of an argument in Python."""
    if name == "requests":
        return _type_of_requests(value)
    if isinstance(value, np.ndarray) and value.dtype == "S1":  # characters, which Numba has no arrays of
        return _types.Array(_types.uint8, value.ndim, "A", readonly=not value.flags.writeable)
    return _numba.typeof(value)


def _type_of_requests(value):
    """Return the type of an array of requests, or of those in a sequence: the first that is wrong, if any is."""
    if not isinstance(value, (list, tuple)):
        return _numba.typeof(value)
    kinds = [_numba.typeof(item) for item in value]
    return next((kind for kind in kinds if _wrong_request(kind)), kinds[0]) if kinds else _types.Tuple(())


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


def _call(body=None, *, fills="", same=()):
    """Make a call of a function that works in Python as it stands, and that Numba compiles.

    fills: the parameter that it writes to; same: parameters that must be of one dtype.
    """
    if body is None:
        return functools.partial(_call, fills=fills, same=same)
    signature = inspect.signature(body)

    def wrong(kinds):
        """Say what is wrong about the types of arguments."""
        for name, kind in kinds.items():
            given = _numba.typeof(kind.value) if isinstance(kind, _types.Omitted) else kind
            text = (_wrong_filled if name == fills else _RULES[name])(given)
            if text:
                return f"gormapy.numba.{body.__name__}: {name}: {text}"
        dtypes = {kinds[name].dtype for name in same if isinstance(kinds.get(name), _types.Array)}
        if len(dtypes) > 1:
            types = ", ".join(str(kinds[name]) for name in same)
            return f"gormapy.numba.{body.__name__}: {' and '.join(same)} are of different types: {types}"
        return None

    @functools.wraps(body)
    def call(*args, **kwargs):
        kinds = {}
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            try:
                kinds[name] = _type_of(name, value)
            except (ValueError, NotImplementedError, _numba.core.errors.NumbaError):
                what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
                raise TypeError(f"gormapy.numba.{body.__name__}: {name}: {what} can't be communicated") from None
        text = wrong(kinds)
        if text:
            raise TypeError(text)
        try:
            return body(*args, **kwargs)
        except BaseException as error:
            _keep_of_interrupted(error)
            raise

    @functools.wraps(body)
    def compiled(*args, **kwargs):
        text = wrong(signature.bind(*args, **kwargs).arguments)
        if text:
            raise _TypingError(text)
        return body

    _overload(call)(compiled)
    return call


# What the calls consist of
# -------------------------
# Each function here works in Python; its overload says what Numba compiles instead.


def _datatype(array):
    return _DATATYPES[array.dtype]


@_overload(_datatype)
def _compiled_datatype(array):
    value = _handle_of(array.dtype)
    return lambda array: value


def _contiguous(data):
    """Return the elements of an array in one piece: the array itself, or a copy."""
    return np.ascontiguousarray(data)


@_overload(_contiguous)
def _compiled_contiguous(data):
    if isinstance(data, _NUMBERS):
        return lambda data: np.array([data])
    if data.layout == "C":
        return lambda data: data

    def contiguous(data):
        return np.ascontiguousarray(data)

    return contiguous


def _put_back(data, buffer):
    """Write what was received into an array that was not in one piece."""
    if not data.flags.c_contiguous:
        data[...] = buffer


@_overload(_put_back)
def _compiled_put_back(data, buffer):
    if data.layout == "C":
        return lambda data, buffer: None

    def put_back(data, buffer):
        data[...] = buffer

    return put_back


def _operand(sendobj, recvobj):
    """Return what a reduction takes: an array, or a number as an array of the result's type."""
    if isinstance(sendobj, np.ndarray):
        return np.ascontiguousarray(sendobj)
    return np.array([sendobj], recvobj.dtype)


@_overload(_operand)
def _compiled_operand(sendobj, recvobj):
    if isinstance(sendobj, _types.Array):
        return lambda sendobj, recvobj: _contiguous(sendobj)

    def operand(sendobj, recvobj):
        buffer = np.empty(1, recvobj.dtype)
        buffer[0] = sendobj
        return buffer

    return operand


_STILL_USED = 256  # GM_STILL_USED
_kept: list[Any] = []  # memory that others may still read or write: it stays for good


def _ended(status, buffer):
    """Return the class of a call that used a buffer, which stays alive until here, or for good if it is still used."""
    if status >= _STILL_USED:
        _kept.append(buffer)
    return status & (_STILL_USED - 1)


def _keep_of_interrupted(error):
    """Keep the arrays of a call that a signal's handler has ended: others may still use them."""
    trace = error.__traceback__.tb_next
    if trace and trace.tb_next and trace.tb_next.tb_frame.f_code is _Function.__call__.__code__:
        _kept.extend(value for value in trace.tb_frame.f_locals.values() if isinstance(value, np.ndarray))


@_intrinsic
def _compiled_keep(context, status, buffer):
    def generate(context, builder, signature, arguments):
        code, array = arguments
        used = builder.icmp_signed(">=", code, code.type(_STILL_USED))
        with builder.if_then(used, likely=False):
            context.nrt.incref(builder, signature.args[1], array)
        return builder.and_(code, code.type(_STILL_USED - 1))

    return _types.int32(_types.int32, buffer), generate


@_overload(_ended)
def _compiled_ended(status, buffer):
    def ended(status, buffer):
        return _compiled_keep(status, buffer)

    return ended


@_register_jitable
def _received(status, data, buffer):
    """Write back what a call has received into a buffer for an array, and return the class that it ended with."""
    if status < _STILL_USED:
        _put_back(data, buffer)
    return _ended(status, buffer)


class _Room(ctypes.c_int64 * 1):
    """Memory of a request, which keeps the array that is communicated."""

    def __del__(self):
        number = next(_numbers)
        _unfinished[number] = self.buffer
        if not _keep(True, self[0], number):
            del _unfinished[number]


# The arrays of requests that were let go while they were under way, by the numbers that pybind/shim/compiled.c has of
# them. Compiled code gives it the addresses of its own.
_unfinished: dict[int, Any] = {}
_numbers = itertools.count(1)


def _release_unfinished():
    """Let go of an array whose request was let go, and is over now."""
    _unfinished.pop(_collect(True), None)


@_intrinsic
def _compiled_release(context):
    def generate(context, builder, signature, arguments):
        memory = builder.call(_declared(builder, "gormapy_compiled_collect", 64, 1), [_ir.IntType(64)(0)])
        with builder.if_then(_cgutils.is_not_null(builder, memory), likely=False):
            pointer = builder.inttoptr(memory, _cgutils.voidptr_t)
            context.nrt.decref(builder, _types.MemInfoPointer(_types.voidptr), pointer)
        return context.get_dummy_value()

    return _types.none(), generate


@_overload(_release_unfinished)
def _compiled_release_unfinished():
    def release_unfinished():
        _compiled_release()

    return release_unfinished


def _declared(builder, name, bits, parameters):
    """Return a function of pybind/shim/compiled.c in a module."""
    kind = _ir.FunctionType(_ir.IntType(bits), [_ir.IntType(64)] * parameters)
    return _cgutils.get_or_insert_function(builder.module, kind, name)


def _request_for(buffer):
    """Return an array with room for a request, which keeps a buffer alive."""
    room = _Room()
    room.buffer = buffer
    return np.frombuffer(room, RequestType)


_REQUEST = _types.Array(_types.int64, 1, "C")


@_intrinsic
def _compiled_request(context, buffer):
    def generate(context, builder, signature, arguments):
        (kind,), (array,) = signature.args, arguments
        context.nrt.incref(builder, kind, array)
        memory = context.nrt.meminfo_alloc_dtor(
            builder, context.get_constant(_types.uintp, 16), _destructor(context, builder)
        )
        data = context.nrt.meminfo_data(builder, memory)
        words = builder.bitcast(data, _ir.IntType(64).as_pointer())
        builder.store(_ir.IntType(64)(0), words)
        kept = builder.bitcast(builder.gep(words, [_ir.IntType(32)(1)]), _cgutils.voidptr_t.as_pointer())
        builder.store(_arrayobj.make_array(kind)(context, builder, array).meminfo, kept)
        request = _arrayobj.make_array(_REQUEST)(context, builder)
        length, step = context.get_constant(_types.intp, 1), context.get_constant(_types.intp, 8)
        _arrayobj.populate_array(request, words, [length], [step], step, memory)
        return request._getvalue()

    return _REQUEST(buffer), generate


def _destructor(context, builder):
    """Return the function that releases the array of a request, unless the request is under way.

    The request is the first word of the memory, the reference to the array the second one.
    """
    pointer = _cgutils.voidptr_t
    kind = _ir.FunctionType(_ir.VoidType(), [pointer, context.get_value_type(_types.uintp), pointer])
    function = _cgutils.get_or_insert_function(builder.module, kind, "gormapy_release_array_of_request")
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        inner = _ir.IRBuilder(function.append_basic_block())
        words = inner.bitcast(function.args[0], pointer.as_pointer())
        memory = inner.load(inner.gep(words, [_ir.IntType(32)(1)]))
        request = inner.load(inner.bitcast(words, _ir.IntType(64).as_pointer()))
        keep = _declared(builder, "gormapy_compiled_keep", 32, 3)
        kept = inner.call(keep, [_ir.IntType(64)(0), request, inner.ptrtoint(memory, _ir.IntType(64))])
        with inner.if_then(_cgutils.is_null(inner, kept)):
            context.nrt.decref(inner, _types.MemInfoPointer(_types.voidptr), memory)
        inner.ret_void()
    return function


@_overload(_request_for)
def _compiled_request_for(buffer):
    def request_for(buffer):
        return _compiled_request(buffer)

    return request_for


def _handles(requests):
    """Return the requests of an array, or of a sequence of arrays, in one piece."""
    if isinstance(requests, np.ndarray):
        return np.ascontiguousarray(requests)
    return _joined(requests)


def _joined(requests):
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


@_overload(_handles)
def _compiled_handles(requests):
    if isinstance(requests, _types.Array):

        def handles(requests):
            return _contiguous(requests)

        return handles
    if requests == _types.Tuple(()):
        return lambda requests: np.zeros(0, RequestType)
    return _joined


def _store(requests, handles):
    """Write back which requests are complete."""
    if isinstance(requests, np.ndarray):
        _put_back(requests, handles)
    else:
        _divide(requests, handles)


def _divide(requests, handles):
    at = 0
    for request in requests:
        for k in range(request.size):
            request[k] = handles[at]
            at += 1


@_overload(_store)
def _compiled_store(requests, handles):
    if isinstance(requests, _types.Array):

        def store(requests, handles):
            _put_back(requests, handles)

        return store
    if requests == _types.Tuple(()):
        return lambda requests, handles: None
    return _divide


# The process
# -----------


@_call
def initialized() -> bool:
    """Report whether MPI is initialized."""
    return _initialized() != 0


@_call
def query_thread() -> int:
    """Return the level of thread support."""
    return THREAD_MULTIPLE


@_call
def rank(comm=_WORLD) -> int:
    """Return the rank of this process, 0 after an error."""
    return _rank(comm)


@_call
def size(comm=_WORLD) -> int:
    """Return the number of processes, 0 after an error."""
    return _size(comm)


@_call
def wtime() -> float:
    """Return an elapsed time in seconds."""
    return _wtime()


# Messages
# --------


@_call
def send(data, dest, tag=0, comm=_WORLD) -> int:
    """Send an array or a number."""
    buffer = _contiguous(data)
    status = _send(comm, buffer.ctypes.data, buffer.size, _datatype(buffer), dest, tag)
    return _ended(status, buffer)


@_call(fills="data")
def recv(data, source=ANY_SOURCE, tag=ANY_TAG, comm=_WORLD) -> int:
    """Receive into an array."""
    buffer = _contiguous(data)
    status = _recv(comm, buffer.ctypes.data, buffer.size, _datatype(buffer), source, tag)
    return _received(status, data, buffer)


@_call
def sendrecv(senddata, dest, recvdata, source=ANY_SOURCE, sendtag=0, recvtag=ANY_TAG, comm=_WORLD) -> int:
    """Send one array and receive another one."""
    sent = _contiguous(senddata)
    buffer = _contiguous(recvdata)
    status = _sendrecv(
        comm,
        sent.ctypes.data,
        sent.size,
        _datatype(sent),
        dest,
        sendtag,
        buffer.ctypes.data,
        buffer.size,
        _datatype(buffer),
        source,
        recvtag,
    )
    _ended(status, sent)
    return _received(status, recvdata, buffer)


@_call
def isend(data, dest, tag=0, comm=_WORLD):
    """Start to send an array; return the status and a request, an array of one element.

    The array must stay as it is until the request is complete; the request keeps it alive. Of an array that is not
    contiguous a copy is sent.
    """
    _release_unfinished()
    buffer = _contiguous(data)
    request = _request_for(buffer)
    status = _isend(comm, buffer.ctypes.data, buffer.size, _datatype(buffer), dest, tag, request.ctypes.data)
    return status, request


@_call(fills="data")
def irecv(data, source=ANY_SOURCE, tag=ANY_TAG, comm=_WORLD):
    """Start to receive into a contiguous array; return the status and a request, which keeps the array."""
    _release_unfinished()
    request = _request_for(data)
    if not data.flags.c_contiguous:
        return _refused(ERR_BUFFER), request
    status = _irecv(comm, data.ctypes.data, data.size, _datatype(data), source, tag, request.ctypes.data)
    return status, request


# Requests
# --------


@_call
def wait(request) -> int:
    """Wait for a request."""
    handles = _contiguous(request)
    if handles.size == 0:
        return _refused(ERR_REQUEST)
    status = _wait(handles.ctypes.data)
    _put_back(request, handles)
    return status


@_call
def waitall(requests) -> int:
    """Wait for all of an array of requests, or of a tuple or list of such arrays; return the first error."""
    handles = _handles(requests)
    status = _waitall(handles.size, handles.ctypes.data)
    _store(requests, handles)
    return status


@_call
def waitany(requests):
    """Wait for one of several requests; return the status and its index, UNDEFINED if none is active."""
    handles = _handles(requests)
    index = np.full(1, -1, np.int64)
    status = _waitany(handles.size, handles.ctypes.data, index.ctypes.data)
    _store(requests, handles)
    return status, index[0] if index[0] >= 0 else UNDEFINED


@_call
def test(request):
    """Return the status, and whether a request is complete."""
    handles = _contiguous(request)
    flag = np.zeros(1, np.int64)
    if handles.size == 0:
        return _refused(ERR_REQUEST), False
    status = _test(handles.ctypes.data, flag.ctypes.data)
    _put_back(request, handles)
    return status, flag[0] != 0


@_call
def testall(requests):
    """Return the status, and whether all requests are complete."""
    handles = _handles(requests)
    flag = np.zeros(1, np.int64)
    status = _testall(handles.size, handles.ctypes.data, flag.ctypes.data)
    _store(requests, handles)
    return status, flag[0] != 0


@_call
def testany(requests):
    """Return the status, whether a request is complete, and its index, UNDEFINED if none is complete or active."""
    handles = _handles(requests)
    flag, index = np.zeros(1, np.int64), np.full(1, -1, np.int64)
    status = _testany(handles.size, handles.ctypes.data, index.ctypes.data, flag.ctypes.data)
    _store(requests, handles)
    return status, flag[0] != 0, index[0] if index[0] >= 0 else UNDEFINED


# Collectives
# -----------


@_call
def barrier(comm=_WORLD) -> int:
    """Wait until all ranks have called it."""
    return _barrier(comm)


@_call(fills="data")
def bcast(data, root, comm=_WORLD) -> int:
    """Send an array of the root to all ranks."""
    buffer = _contiguous(data)
    status = _bcast(comm, buffer.ctypes.data, buffer.size, _datatype(buffer), root)
    return _received(status, data, buffer)


@_call
def scatter(send_data, recv_data, count, root, comm=_WORLD) -> int:
    """Send `count` elements of an array of the root to each rank."""
    sent = _contiguous(send_data)
    buffer = _contiguous(recv_data)
    if _rank(comm) == root and count * 1.0 * _size(comm) > sent.size:
        return _refused(ERR_COUNT)
    status = _scatter(
        comm, sent.ctypes.data, count, _datatype(sent), buffer.ctypes.data, buffer.size, _datatype(buffer), root
    )
    _ended(status, sent)
    return _received(status, recv_data, buffer)


@_call
def gather(send_data, recv_data, count, root, comm=_WORLD) -> int:
    """Collect the arrays of all ranks at the root, `count` elements of each."""
    sent = _contiguous(send_data)
    buffer = _contiguous(recv_data)
    if _rank(comm) == root and count * 1.0 * _size(comm) > buffer.size:
        return _refused(ERR_COUNT)
    status = _gather(
        comm, sent.ctypes.data, sent.size, _datatype(sent), buffer.ctypes.data, count, _datatype(buffer), root
    )
    _ended(status, sent)
    return _received(status, recv_data, buffer)


@_call
def allgather(send_data, recv_data, count, comm=_WORLD) -> int:
    """Collect the arrays of all ranks at all ranks, `count` elements of each."""
    sent = _contiguous(send_data)
    buffer = _contiguous(recv_data)
    if count * 1.0 * _size(comm) > buffer.size:
        return _refused(ERR_COUNT)
    status = _allgather(
        comm, sent.ctypes.data, sent.size, _datatype(sent), buffer.ctypes.data, count, _datatype(buffer), 0
    )
    _ended(status, sent)
    return _received(status, recv_data, buffer)


@_call(same=("sendobj", "recvobj"))
def reduce(sendobj, recvobj, operator, root, comm=_WORLD) -> int:
    """Combine the arrays or numbers of all ranks in an array of the root."""
    sent = _operand(sendobj, recvobj)
    buffer = _contiguous(recvobj)
    if _rank(comm) == root and sent.size > buffer.size:
        return _refused(ERR_COUNT)
    status = _reduce(comm, sent.ctypes.data, buffer.ctypes.data, sent.size, _datatype(sent), operator, root)
    _ended(status, sent)
    return _received(status, recvobj, buffer)


@_call(same=("sendobj", "recvobj"))
def allreduce(sendobj, recvobj, operator=Operator.SUM, comm=_WORLD) -> int:
    """Combine the arrays or numbers of all ranks in an array of each rank."""
    sent = _operand(sendobj, recvobj)
    buffer = _contiguous(recvobj)
    if sent.size > buffer.size:
        return _refused(ERR_COUNT)
    status = _allreduce(comm, sent.ctypes.data, buffer.ctypes.data, sent.size, _datatype(sent), operator)
    _ended(status, sent)
    return _received(status, recvobj, buffer)


# One-sided operations
# --------------------
# Numba frees an array after its last use, which is the call: so each call is complete at the origin when it returns.


@_call
def put(win, origin, target_rank, target_disp=0) -> int:
    """Put an array or a number into the window of another rank. `origin` may be changed then; see `flush`."""
    buffer = _contiguous(origin)
    address, kind = buffer.ctypes.data, _datatype(buffer)
    status = _put(win, address, buffer.size, kind, buffer.itemsize, target_rank, target_disp)
    return _ended(status, buffer)


@_call(fills="origin")
def get(win, origin, target_rank, target_disp=0) -> int:
    """Get an array from the window of another rank. The data is in `origin` then."""
    buffer = _contiguous(origin)
    address, kind = buffer.ctypes.data, _datatype(buffer)
    status = _get(win, address, buffer.size, kind, buffer.itemsize, target_rank, target_disp)
    return _received(status, origin, buffer)


@_call
def accumulate(win, origin, target_rank, target_disp=0, operator=Operator.SUM) -> int:
    """Combine an array or a number with what is in the window of another rank."""
    buffer = _contiguous(origin)
    address, kind = buffer.ctypes.data, _datatype(buffer)
    status = _accumulate(win, address, buffer.size, kind, buffer.itemsize, target_rank, target_disp, operator)
    return _ended(status, buffer)


@_call(same=("origin", "result"))
def fetch_and_op(win, origin, result, target_rank, target_disp=0, operator=Operator.SUM) -> int:
    """Combine one element with one in the window of another rank, and write what that was to `result`."""
    sent = _operand(origin, result)
    buffer = _contiguous(result)
    if sent.size != 1 or buffer.size < 1:
        return _refused(ERR_COUNT)
    address, kind = sent.ctypes.data, _datatype(sent)
    status = _fetch_and_op(win, address, buffer.ctypes.data, kind, sent.itemsize, target_rank, target_disp, operator)
    _ended(status, sent)
    return _received(status, result, buffer)


@_call
def flush(win, target_rank) -> int:
    """Wait until all that was put into the window of a rank is there."""
    return _flush(win, target_rank)


@_call
def flush_all(win) -> int:
    """Wait until all that was put into the window is there, at each rank."""
    return _flush_all(win)
