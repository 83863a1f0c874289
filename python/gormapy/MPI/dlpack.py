"""Buffers by DLPack, for arrays without the buffer protocol in memory that the processor can access."""

import ctypes

from .cudaarray import check_reachable

_CPU = 1
HOST_DEVICES = (1, 3, 11, 13)  # CPU, CUDA host, ROCm host, CUDA managed
_READ_ONLY = 1


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


# Separate prototypes: attributes of ctypes.pythonapi are shared with all other modules.
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))

# (code, bits) -> format: signed, unsigned, float, bfloat, complex, bool
_FORMATS = {
    (0, 8): "b",
    (0, 16): "h",
    (0, 32): "i",
    (0, 64): "l",
    (1, 8): "B",
    (1, 16): "H",
    (1, 32): "I",
    (1, 64): "L",
    (2, 16): "e",
    (2, 32): "f",
    (2, 64): "d",
    (2, 128): "g",
    (4, 16): "bfloat16",
    (5, 32): "Ze",
    (5, 64): "Zf",
    (5, 128): "Zd",
    (5, 256): "Zg",
    (6, 8): "?",
}


def acquire(obj, readonly):
    """Return (address, nbytes, format, itemsize, readonly, holder) as buffer_info does."""
    if not hasattr(obj, "__dlpack_device__"):
        raise NotImplementedError("dlpack: missing support")
    device, device_id = (int(number) for number in obj.__dlpack_device__())
    on_host = device in HOST_DEVICES
    if device_id < 0:
        raise BufferError(f"dlpack: the device has the number {device_id}, expecting 0 or more")
    # -1: the caller has synchronised with the device before it communicates, as in mpi4py
    stream = {} if device == _CPU else {"stream": -1}
    try:
        capsule = obj.__dlpack__(**stream, max_version=(1, 0), copy=False)
    except TypeError:  # a producer of version 0
        capsule = obj.__dlpack__(**stream)
    read_only = False
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _ManagedVersioned.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        if managed.major < 1:
            raise BufferError(f"dlpack: unexpected version {managed.major}")
        read_only = bool(managed.flags & _READ_ONLY)
    elif _is_valid(capsule, b"dltensor"):
        managed = _Managed.from_address(_get_pointer(capsule, b"dltensor"))
    else:
        raise BufferError("dlpack: unexpected capsule")
    if read_only and not readonly:
        raise BufferError("dlpack: buffer is not writable")
    tensor = managed.tensor
    if tensor.ndim < 0:
        raise BufferError("dlpack: number of dimensions is negative")
    if tensor.ndim and not tensor.shape:
        raise BufferError("dlpack: shape is NULL")
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    if any(n < 0 for n in shape):
        raise BufferError("dlpack: shape item is negative")
    if tensor.ndim and tensor.strides:
        strides = [tensor.strides[i] for i in range(tensor.ndim)]
        if any(stride < 0 for stride in strides):
            raise BufferError("dlpack: strides item is negative")
        if not (_packed(shape, strides) or _packed(shape[::-1], strides[::-1])):
            raise BufferError("dlpack: buffer is not contiguous")
    itemsize = (tensor.dtype.bits * tensor.dtype.lanes + 7) // 8
    nbytes = itemsize
    for n in shape:
        nbytes *= n
    code, bits = tensor.dtype.code, tensor.dtype.bits
    if tensor.dtype.lanes == 1:
        format = _FORMATS.get((code, bits))
    elif tensor.dtype.lanes == 2 and code == 2:  # complex, if the producer has no such type
        format = _FORMATS.get((5, 2 * bits))
    else:
        format = None
    if format is None:
        itemsize = 1
    address = (tensor.data or 0) + tensor.byte_offset
    if not on_host:
        check_reachable(obj, address, nbytes)
    # the capsule was not consumed: it and the array keep the memory
    return address, nbytes, format, itemsize, read_only, (obj, capsule)


def _packed(shape, strides):
    size = 1
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n > 1 and stride != size:
            return False
        size *= n
    return True
