"""Functions of pybind/shim/compiled.c, for compiled code and for Python."""

from __future__ import annotations

import ctypes
import operator

import llvmlite.binding as llvm
from numba.core import types
from numba.extending import typeof_impl

from gormapy._ext import fast

_addresses = fast.compiled_addresses()


class Function:
    """A function of pybind/shim/compiled.c, for Python by ctypes, and for compiled code by a symbol.

    The address of a symbol is looked up when code is loaded: so Numba can keep compiled code for other processes.
    """

    def __init__(self, name, parameters, result=types.int32):
        address = _addresses[name]
        symbol = f"gormapy_compiled_{name}"
        llvm.add_symbol(symbol, address)
        self.type = types.ExternalFunction(symbol, result(*[types.int64] * parameters))
        ctype = {types.int32: ctypes.c_int, types.int64: ctypes.c_int64, types.float64: ctypes.c_double}[result]
        self.function = ctypes.CFUNCTYPE(ctype, *[ctypes.c_int64] * parameters)(address)

    def __call__(self, *arguments):
        return self.function(*map(operator.index, arguments))


@typeof_impl.register(Function)
def _type_of_function(value, context):
    return value.type


initialized = Function("initialized", 0)
last_error = Function("last_error", 0)
refused = Function("refused", 1)
wtime = Function("wtime", 0, types.float64)
rank = Function("rank", 1, types.int64)
size = Function("size", 1, types.int64)
send = Function("send", 6)
recv = Function("recv", 6)
sendrecv = Function("sendrecv", 11)
isend = Function("isend", 7)
irecv = Function("irecv", 7)
keep = Function("keep", 3)
collect = Function("collect", 1, types.int64)
wait = Function("wait", 1)
waitall = Function("waitall", 2)
waitany = Function("waitany", 3)
test = Function("test", 2)
testall = Function("testall", 3)
testany = Function("testany", 4)
barrier = Function("barrier", 1)
bcast = Function("bcast", 5)
scatter = Function("scatter", 8)
gather = Function("gather", 8)
allgather = Function("allgather", 8)
reduce = Function("reduce", 7)
allreduce = Function("allreduce", 6)
put = Function("put", 7)
get = Function("get", 7)
accumulate = Function("accumulate", 8)
fetch_and_op = Function("fetch_and_op", 8)
flush = Function("flush", 2)
flush_all = Function("flush_all", 1)
