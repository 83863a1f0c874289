"""Memory of Python objects: the buffer protocol, and DLPack for arrays in the processor's memory."""

from .._ext import fast
from .errors import mismatch, refusal

# DLDeviceType: CPU, CUDA host, ROCm host, CUDA managed
_HOST = (1, 3, 11, 13)


def locate(obj, writable, operation, name="buffer"):
    """Return (address, number of bytes, object that keeps the memory in place) of an object's contiguous memory.

    Raises `TypeMismatch` for objects without memory, and `Error` for memory that is read-only but has to be written,
    that is on another device, or that is not contiguous.
    """
    read_only = False
    try:
        with memoryview(obj) as view:
            read_only = view.readonly
    except TypeError:
        obj, read_only = _by_dlpack(obj, operation, name)
    except BufferError:
        pass  # the words are better below
    try:
        address, nbytes, _, _, _, holder = fast.buffer_info(obj, False)
    except (BufferError, ValueError) as error:
        text = f"{name} must be contiguous memory ({error}): pass a copy (numpy.ascontiguousarray)"
        raise refusal("EINVAL", operation, text) from None
    if writable and read_only:
        text = f"{name} is read-only memory: pass access=Access.REMOTE_READ, which does not write to it, or a copy"
        raise refusal("EACCES", operation, text, {"length": nbytes})
    return address, nbytes, holder


def _by_dlpack(obj, operation, name):
    """Return an array of an object's memory, and whether the memory is read-only."""
    import numpy as np  # here, since most programs do without

    if not hasattr(obj, "__dlpack__") or not hasattr(obj, "__dlpack_device__"):
        raise mismatch(operation, name, "an object with memory (buffer protocol or DLPack)", obj)
    device = int(obj.__dlpack_device__()[0])
    if device not in _HOST:
        text = f"{name} lies in the memory of a device (DLPack device type {device}): copy it to the host"
        raise refusal("EINVAL", operation, text)
    try:
        array = np.from_dlpack(obj)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise refusal("EINVAL", operation, f"{name} can't be used by DLPack: {error}") from None
    # Of an object that can't say whether it may be written NumPy makes an array that may not.
    return array, not array.flags.writeable and _says_read_only(obj)


def _says_read_only(obj):
    """Return whether an object passes a versioned capsule, which has a flag for read-only memory."""
    try:
        return "dltensor_versioned" in repr(obj.__dlpack__(max_version=(1, 0)))
    except (TypeError, BufferError, RuntimeError, ValueError):
        return False
