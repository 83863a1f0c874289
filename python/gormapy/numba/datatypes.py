"""The elements that can be communicated: dtypes and their MPI datatypes."""

from __future__ import annotations

import numba
import numpy as np
from numba.core import types
from numba.extending import overload
from numba.np.numpy_support import as_dtype

from gormapy import MPI

DATATYPES = {
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
NUMBERS = (types.Number, types.Boolean)


def handle_of(dtype):
    """Return the datatype of a dtype of Numba, or None."""
    try:
        return DATATYPES.get(np.dtype(as_dtype(dtype)))
    except numba.core.errors.NumbaNotImplementedError:
        return None


def datatype(array):
    return DATATYPES[array.dtype]


@overload(datatype)
def _compiled_datatype(array):
    value = handle_of(array.dtype)
    return lambda array: value
