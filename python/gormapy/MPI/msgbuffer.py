"""Buffer specifications: from what a program passes to address, count and datatype.

A specification is a buffer, or a list or tuple that starts with one:
(buffer, count), (buffer, type), (buffer, count, type), (buffer, (count, displ), type),
(buffer, count, displ, type). Parsing never waits and never communicates.
"""

import sys
from array import array

from gormapy._ext import fast

from . import constants
from .datatype import Datatype
from .sentinel import BOTTOM, is_sentinel
from .typecode import DATATYPES, for_format, lookup

_buffer_info = fast.buffer_info

NOTHING = (0, 0, DATATYPES["BYTE"], None)  # values in place of a buffer


# Buffers
# -------


def acquire(obj, readonly, window=False):
    """Return (address, nbytes, format, itemsize, readonly, holder) of a buffer, or of a window's memory.

    The holder keeps the memory in place: keep it until the operation has completed.
    """
    try:
        return _buffer_info(obj, not readonly)
    except (BufferError, TypeError, ValueError):
        pass  # the error is described below
    integers = _bfloat16_as_integers(obj)
    if integers is not None:
        address, nbytes, _, itemsize, locked, holder = acquire(integers, readonly, window)
        return address, nbytes, "bfloat16", itemsize, locked, holder
    _explain(obj, readonly, window)
    if hasattr(obj, "__dlpack__"):
        from .dlpack import acquire as acquire_dlpack

        try:
            return acquire_dlpack(obj, readonly)
        except NotImplementedError:
            pass
    if hasattr(obj, "__cuda_array_interface__"):
        from .cudaarray import acquire as acquire_cuda_array

        return acquire_cuda_array(obj, readonly)
    return _buffer_info(obj, not readonly)  # raises its own error


def _bfloat16_as_integers(obj):
    """Return a view of an array of ml_dtypes' bfloat16, which NumPy does not show; None for other objects."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(obj, numpy.ndarray) and obj.dtype.name == "bfloat16":
        return obj.view(numpy.uint16)
    return None


def _explain(obj, readonly, window):
    """Raise the error for a buffer that cannot be used; return if the object is no buffer."""
    from .explain import no_format, unusable

    if is_sentinel(obj):
        return
    try:
        view = memoryview(obj)
    except (BufferError, TypeError):
        return
    except ValueError as reason:
        error = no_format(obj, reason)
    else:
        error = unusable(obj, view, readonly, window)
    if error is not None:
        raise error


def _is_buffer(obj):
    if obj is None or obj is BOTTOM:
        return True
    if is_sentinel(obj):
        return False
    try:
        memoryview(obj).release()
    except (BufferError, ValueError):
        return True
    except TypeError:
        return hasattr(obj, "__dlpack__") or hasattr(obj, "__cuda_array_interface__")
    return True


def _not_a_message(msg, readonly):
    from .explain import no_buffer

    return no_buffer(msg, readonly)


def _not_a_specification(spec, readonly, error=None):
    from .explain import no_specification

    return no_specification(spec, readonly, error)


def as_datatype(spec):
    """Return the datatype that a specification names."""
    if isinstance(spec, Datatype):
        return spec
    return lookup(spec)


def _base(obj, datatype, readonly):
    """Return address, nbytes, datatype and holder of the buffer in a specification."""
    if obj is None or obj is BOTTOM:
        if datatype is None:
            raise KeyError("cannot map None to MPI datatype: a message without a buffer needs a datatype")
        return 0, 0, as_datatype(datatype), None
    address, nbytes, format, itemsize, _, holder = acquire(obj, readonly)
    if datatype is None:
        datatype = for_format(format, itemsize)
    elif not isinstance(datatype, Datatype):
        datatype = lookup(datatype)
    return address, nbytes, datatype, holder


def _extent(datatype, what):
    if not datatype._h:
        raise ValueError(f"message: cannot {what}, datatype is null")
    extent = datatype._extent
    if extent <= 0:
        lb = datatype._lb
        raise ValueError(f"message: cannot {what}, datatype extent {extent} (lb:{lb}, ub:{lb + extent})")
    return extent


def _infer(nbytes, datatype, blocks):
    """Return how many elements of a datatype a buffer holds, for each of `blocks` blocks."""
    if nbytes == 0:
        return 0
    extent = _extent(datatype, "infer count")
    entries, rest = divmod(nbytes, extent)
    if rest:
        lb = datatype._lb
        raise ValueError(
            f"message: cannot infer count, buffer length {nbytes} is not a multiple of "
            f"datatype extent {extent} (lb:{lb}, ub:{lb + extent})"
        )
    if blocks < 2:
        return entries
    if entries % blocks:
        raise ValueError(
            f"message: cannot infer count, number of entries {entries} is not a multiple of "
            f"required number of blocks {blocks}"
        )
    return entries // blocks


def index(value, what):
    """Return an integer argument."""
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        from .explain import no_integer

        raise no_integer(value, what) from None


def _unpack(msg, vector, readonly):
    """Return (buffer, count, displ, datatype) of a specification in a list or tuple."""
    count = displ = datatype = None
    items = len(msg)
    if items == 2:
        obj, count = msg
        if isinstance(count, (Datatype, str)):
            count, datatype = None, count
    elif items == 3:
        obj, count, datatype = msg
    elif items == 4:
        obj, count, displ, datatype = msg
    else:
        raise _not_a_specification(msg, readonly, ValueError)
    if items != 4 and isinstance(count, tuple if vector else (tuple, list)):
        if len(count) != 2:
            raise ValueError(f"message: expecting (count, displ), got {len(count)} items")
        count, displ = count
    return obj, count, displ, datatype


def message(msg, readonly, rank=0, blocks=1):
    """Parse a plain specification; return address, count, datatype and holder."""
    if rank == constants.PROC_NULL:
        given = msg[-1] if isinstance(msg, (list, tuple)) and msg else None
        # the core refuses one that is not committed
        return (*NOTHING[:2], given, None) if isinstance(given, Datatype) and given else NOTHING
    if not isinstance(msg, (list, tuple)):
        # the common case: a bare buffer
        try:
            address, nbytes, format, itemsize, _, holder = _buffer_info(msg, not readonly)
        except (BufferError, TypeError, ValueError):
            holder = None
        if holder is None:
            if msg is None or msg is BOTTOM or not _is_buffer(msg):
                raise _not_a_message(msg, readonly)
            address, nbytes, format, itemsize, _, holder = acquire(msg, readonly)
        datatype = for_format(format, itemsize)
        extent = datatype._extent
        if blocks < 2 and extent > 0 and nbytes % extent == 0:
            return address, nbytes // extent, datatype, holder
        return address, _infer(nbytes, datatype, blocks), datatype, holder
    obj, count, displ, datatype = _unpack(msg, False, readonly)
    if not isinstance(obj, (memoryview, bytearray, bytes)) and not _is_buffer(obj):
        raise _not_a_specification(msg, readonly)
    address, nbytes, datatype, holder = _base(obj, datatype, readonly)
    if displ is not None:
        displ = index(displ, "message: displacement")
        if displ < 0:
            raise ValueError(f"message: negative displacement {displ}")
        if displ > 0:
            extent = _extent(datatype, "handle displacement")
            if displ * extent > nbytes:
                raise ValueError(
                    f"message: displacement {displ} out of bounds, number of datatype entries {nbytes // extent}"
                )
            address += displ * extent
            nbytes -= displ * extent
    if count is None:
        count = _infer(nbytes, datatype, blocks)
    else:
        count = index(count, "message: count")
        if count < 0:
            raise ValueError(f"message: negative count {count}")
        if count > 0 and obj is None:
            raise ValueError(f"message: buffer is None but count is {count}")
        if count > 1 or datatype._construction is None:
            _check_room(obj, count, datatype, nbytes, blocks)
    return address, count, datatype, holder


def _check_room(obj, count, datatype, nbytes, blocks):
    """Refuse a count for which a buffer of plain elements has no room."""
    if obj is None or obj is BOTTOM or datatype._construction is not None or not datatype._h:
        return
    need = count * max(blocks, 1) * datatype._size
    if need > nbytes:
        each = f" for each of {blocks} ranks" if blocks > 1 else ""
        raise ValueError(
            f"message: count {count} of {datatype._size}-byte elements{each} needs {need} bytes, "
            f"the buffer has {nbytes}"
        )


# Vectors: a count and a displacement for each rank
# -------------------------------------------------


def _integer(value):
    """Return an integer, also of an array without dimensions; None if it is none."""
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        return None


def _integers(values, blocks, what):
    try:
        integers = array("q", values)
    except TypeError:
        raise TypeError(f"message: expecting integers as {what}") from None
    if len(integers) != blocks:
        raise ValueError(f"message: expecting {blocks} items as {what}, got {len(integers)}")
    return integers.tolist()


def vector(msg, readonly, rank, blocks):
    """Parse a vector specification; return address, counts, displacements, datatype and holder."""
    if rank == constants.PROC_NULL:
        return 0, None, None, NOTHING[2], None
    if isinstance(msg, (list, tuple)):
        obj, counts, displs, datatype = _unpack(msg, True, readonly)
        if not _is_buffer(obj):
            raise _not_a_specification(msg, readonly)
    elif msg is not None and msg is not BOTTOM and _is_buffer(msg):
        obj, counts, displs, datatype = msg, None, None, None
    else:
        raise _not_a_message(msg, readonly)
    address, nbytes, datatype, holder = _base(obj, datatype, readonly)
    if counts is None:
        each, more = divmod(_infer(nbytes, datatype, 1), blocks) if blocks else (0, 0)
        counts = [each + (i < more) for i in range(blocks)]
    elif (single := _integer(counts)) is not None:
        counts = [single] * blocks
    else:
        counts = _integers(counts, blocks, "counts")
    if displs is None:
        displs, end = [], 0
        for count in counts:
            displs.append(end)
            end += count
    elif (single := _integer(displs)) is not None:
        displs = [single * i for i in range(blocks)]
    else:
        displs = _integers(displs, blocks, "displacements")
    if obj is not None and obj is not BOTTOM:
        _check_places(counts, displs, datatype, nbytes)
    return address, counts, displs, datatype, holder


def _check_places(counts, displs, datatype, nbytes):
    if datatype._construction is not None or not datatype._h or min(counts, default=0) < 0:
        return  # a negative count is an error of the call itself
    for part, (count, displ) in enumerate(zip(counts, displs)):
        check_place(part, count, datatype, displ * datatype._extent, nbytes)


def check_place(part, count, datatype, offset, nbytes):
    """Refuse a part of plain elements that is not in its buffer: a receive would write to other memory."""
    if count < 1 or datatype._construction is not None or not datatype._h:
        return
    if not 0 <= offset <= nbytes - (count - 1) * datatype._extent - datatype._size:
        raise ValueError(
            f"message: part {part} has {count} elements of {datatype._size} bytes from byte {offset} on, "
            f"the buffer has {nbytes} bytes"
        )


# One-sided
# ---------


def target(spec, count, datatype):
    """Parse a target specification; return displacement, count and datatype."""
    if spec is None:
        return 0, count, datatype
    if isinstance(spec, (list, tuple)):
        items = len(spec)
        if items > 3:
            raise ValueError("target: expecting 3 items at most")
        disp = index(spec[0], "target: displacement") if items >= 1 else 0
        if items >= 2:
            count = index(spec[1], "target: count")
        if items >= 3:
            datatype = as_datatype(spec[2])
        return disp, count, datatype
    if hasattr(spec, "__index__") and not (hasattr(spec, "__len__") and not hasattr(spec, "dtype")):
        return spec.__index__(), count, datatype
    raise ValueError("target: expecting integral or list/tuple")


def parse_access(origin, readonly, rank, spec):
    """Parse origin and target of a one-sided call; return both, and the holder.

    The result is (address, count, datatype), (displacement, count, datatype), holder.
    """
    address, count, datatype, holder = message(origin, readonly, rank, 0)
    nothing = rank == constants.PROC_NULL
    if nothing and isinstance(origin, (list, tuple)) and origin and isinstance(origin[-1], (Datatype, str)):
        datatype = as_datatype(origin[-1])
    return (address, count, datatype), target(spec, count, datatype), holder


def single(what, buf, readonly, rank):
    """Parse the buffer of exactly one element."""
    parsed = message(buf, readonly, rank, 0)
    if rank != constants.PROC_NULL and parsed[1] != 1:
        raise ValueError(f"{what}: expecting a single element, got {parsed[1]}")
    return parsed


def same_type(rank, **parsed):
    """Refuse operands of different datatypes."""
    (first, a), *rest = parsed.items()
    for name, b in rest:
        if rank != constants.PROC_NULL and a[2]._h != b[2]._h:
            raise ValueError(f"mismatch in {first} and {name} MPI datatypes: {a[2].name} and {b[2].name}")


def reduction(sendbuf, recvbuf):
    """Refuse parsed operands of a reduction that do not fit each other."""
    if sendbuf[2]._h != recvbuf[2]._h:
        raise ValueError(f"mismatch in send and receive MPI datatypes: {sendbuf[2].name} and {recvbuf[2].name}")
    if sendbuf[1] != recvbuf[1]:
        raise ValueError(f"mismatch in send count {sendbuf[1]} and receive count {recvbuf[1]}")


def byte():
    """Return the datatype BYTE."""
    return DATATYPES["BYTE"]
