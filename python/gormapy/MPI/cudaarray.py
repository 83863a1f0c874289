"""Buffers by the CUDA array interface, if the processor can access their memory.

Managed and pinned memory of CUDA, and arrays of the host that have the interface, are used like any other memory.
Memory that only a device can access is refused before any data moves.
"""

import errno
import math
import os
import sys

_NATIVE, _FOREIGN = "<>" if sys.byteorder == "little" else "><"

# (kind, size) -> format
_FORMATS = {
    ("b", 1): "?",
    ("i", 1): "b",
    ("i", 2): "h",
    ("i", 4): "i",
    ("i", 8): "l",
    ("u", 1): "B",
    ("u", 2): "H",
    ("u", 4): "I",
    ("u", 8): "L",
    ("f", 2): "e",
    ("f", 4): "f",
    ("f", 8): "d",
    ("f", 16): "g",
    ("c", 4): "Ze",
    ("c", 8): "Zf",
    ("c", 16): "Zd",
    ("c", 32): "Zg",
}


def acquire(obj, readonly):
    """Return (address, nbytes, format, itemsize, readonly, holder) as buffer_info does."""
    described = obj.__cuda_array_interface__
    address, locked = described["data"]
    typestr, shape = described["typestr"], described["shape"]
    order, kind, itemsize = typestr[0], typestr[1], int(typestr[2:])
    if order == _FOREIGN:
        raise BufferError(f"__cuda_array_interface__: {typestr!r} has a byte order that is not the machine's")
    if order not in (_NATIVE, "|"):
        raise BufferError(f"__cuda_array_interface__: {typestr!r} begins with no byte order (one of < > |)")
    if described.get("mask") is not None:
        raise BufferError("__cuda_array_interface__: a masked array is no contiguous memory")
    if any(n < 0 for n in shape):
        raise BufferError(f"__cuda_array_interface__: the shape {shape} has a negative length")
    strides = described.get("strides")
    if strides is not None and not (_packed(shape, strides, itemsize) or _packed(shape[::-1], strides[::-1], itemsize)):
        raise BufferError(f"__cuda_array_interface__: shape {shape} with strides {strides} is not contiguous")
    if locked and not readonly:
        raise BufferError("__cuda_array_interface__: the array is read-only, but MPI writes to this buffer")
    nbytes = math.prod(shape) * itemsize
    address = 0 if address is None and not nbytes else address.__index__()
    descr = described.get("descr")
    if descr is not None and list(descr) != [("", typestr)]:
        import warnings

        warnings.warn("__cuda_array_interface__: ignoring 'descr' key", RuntimeWarning, stacklevel=2)
    check_reachable(obj, address, nbytes)
    format = _FORMATS.get((kind, itemsize))
    return address, nbytes, format, itemsize if format else 1, bool(locked), obj


def _packed(shape, strides, itemsize):
    expected = itemsize
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n > 1 and stride != expected:
            return False
        expected *= n
    return True


def check_reachable(obj, address, nbytes):
    """Refuse memory that this process cannot read, such as a GPU's."""
    from .buffer import view

    if not nbytes:
        return
    reader, writer = os.pipe()
    try:
        # the kernel reads the bytes: where this process would fault it returns an error
        for end in (address, address + nbytes - 1):
            os.write(writer, view(end, 1, True, None))
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno != errno.EFAULT:
            raise
        raise BufferError(
            f"message: {type(obj).__name__} is memory of a GPU, which this version of gormapy cannot reach; "
            "copy it to the host first"
        ) from None
    finally:
        os.close(reader)
        os.close(writer)
