"""Datatypes of NumPy made of those of MPI, and the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gormapy import MPI

try:
    from numpy import dtype as _np_dtype
except ImportError:  # then to_numpy_dtype returns what numpy.dtype would take
    _np_dtype = None

if TYPE_CHECKING:
    from numpy import dtype
    from numpy.typing import DTypeLike

__all__ = ["from_numpy_dtype", "to_numpy_dtype"]


# From NumPy
# ----------


def from_numpy_dtype(dtype: DTypeLike) -> MPI.Datatype:
    """Return a new MPI datatype of a NumPy type.

    `dtype` is anything that `numpy.dtype` takes; structured types and subarrays become derived datatypes, with the
    extent of the NumPy type. The caller commits and frees the datatype.

    Errors: ValueError for Python objects, a foreign byte order, or a type that MPI has not; RuntimeError without NumPy.

    >>> datatype = from_numpy_dtype('i4,f8')
    >>> datatype.Get_size()
    12
    >>> datatype.Free()
    """
    if _np_dtype is None:
        raise RuntimeError("from_numpy_dtype: NumPy is not available")
    made = _from(_np_dtype(dtype))
    return made.Dup() if made.is_predefined else made


def _from(kind):
    """Return a predefined datatype, or a new one."""
    if kind.hasobject:
        raise ValueError(f"{kind} has Python objects, which are no data")
    if kind.fields is not None:
        return _struct(kind)
    if kind.subdtype is not None:
        base, shape = kind.subdtype
        element = _from(base)
        made = element.Create_subarray(shape, shape, [0] * len(shape))
        _release(element)
        return made
    if not kind.isnative:
        raise ValueError(f"{kind} is not in the byte order of this machine")
    return _basic(kind)


_basics: dict[Any, MPI.Datatype] = {}


def _basic(kind):
    found = _basics.get(kind)
    if found is None:
        try:
            found = MPI.Datatype.fromcode(kind.char if kind.char in "cgG" else kind.str[1:])
        except (ValueError, KeyError):
            raise ValueError(f"there is no MPI datatype for {kind}") from None
        _basics[kind] = found
    return found


def _struct(kind):
    fields = [kind.fields[name] for name in kind.names]
    types = [_from(field[0]) for field in fields]
    made = MPI.Datatype.Create_struct([1] * len(types), [field[1] for field in fields], types)
    for part in types:
        _release(part)
    if made.lb == 0 and made.extent == kind.itemsize:
        return made
    resized = made.Create_resized(0, kind.itemsize)
    made.Free()
    return resized


# To NumPy
# --------


def to_numpy_dtype(datatype: MPI.Datatype) -> dtype[Any]:
    """Convert MPI datatype to NumPy datatype."""
    if datatype == MPI.DATATYPE_NULL:
        raise ValueError("DATATYPE_NULL has no NumPy datatype")
    return _to(datatype)


def _to(datatype, size=None):
    """Convert a datatype; a structure gets a size if one is given."""
    if datatype.is_predefined:
        return _predefined(datatype)
    base, combiner, params = datatype.decode()
    if combiner == "STRUCT":
        parts = params["datatypes"]
        blocks = [
            (offset, _block(part, count))
            for offset, count, part in zip(params["displacements"], params["blocklengths"], parts)
        ]
        for part in parts:
            _release(part)
        return _made(datatype, blocks) if size is None else _fields(blocks, size)
    try:
        if combiner == "DUP":
            return _to(base, size)
        if combiner == "RESIZED":
            return _resized(base, params["lb"], params["extent"] if size is None else size)
        return _derived(datatype, base, combiner, params)
    finally:
        _release(base)


def _release(part):
    """Free a datatype that was made for us."""
    if not part.is_predefined:
        part.Free()


def _resized(base, lb, extent):
    """Convert a datatype whose extent was set."""
    if lb == 0:
        if base.extent == extent:
            return _to(base)
        found = _to(base, extent)
        if _np_dtype is not None and found.itemsize == extent:
            return found
    raise ValueError("a resized datatype has a NumPy datatype only if it is a structure that begins at 0")


def _derived(datatype, base, combiner, params):
    """Convert a datatype made of one other."""
    if combiner == "CONTIGUOUS":
        return _array(base, (params["count"],))
    if combiner == "SUBARRAY":
        if params["subsizes"] != params["sizes"] or any(params["starts"]):
            raise ValueError("a part of an array has no NumPy datatype")
        shape = params["sizes"]
        return _array(base, tuple(shape if params["order"] == MPI.ORDER_C else reversed(shape)))
    if combiner in ("VECTOR", "HVECTOR"):
        stride = params["stride"] * (base.extent if combiner == "VECTOR" else 1)
        offsets = [stride * k for k in range(params["count"])]
    elif combiner in ("INDEXED", "INDEXED_BLOCK", "HINDEXED", "HINDEXED_BLOCK"):
        offsets = params["displacements"]
        if not combiner.startswith("H"):
            offsets = [base.extent * k for k in offsets]
    else:
        raise ValueError(f"a datatype made by Create_{combiner.lower()} has no NumPy datatype")
    counts = params.get("blocklengths")
    if counts is None:
        counts = [params["blocklength"]] * len(offsets)
    return _made(datatype, [(offset, _block(base, count)) for offset, count in zip(offsets, counts)])


def _predefined(datatype):
    """Convert a datatype that was not made by the program."""
    key = datatype.handle, _np_dtype is None
    found = _predefined_known.get(key)
    if found is None:
        found = _predefined_known[key] = _predefined_made(datatype)
    return found


_predefined_known: dict[Any, Any] = {}


def _predefined_made(datatype):
    pair = _PAIRS.get(datatype.name) if datatype.is_named else None
    if pair is not None:
        value, index = (MPI.Datatype.fromcode(code) for code in pair)
        align = max(MPI._typealign(value), MPI._typealign(index))
        offset = -(-value.extent // MPI._typealign(index)) * MPI._typealign(index)
        size = -(-(offset + index.extent) // align) * align
        return _fields([(0, _predefined(value)), (offset, _predefined(index))], size)
    code = datatype.tocode()
    if _np_dtype is None:
        return code
    return _np_dtype(code if code in "cgG" else datatype.typestr)


_PAIRS = {
    f"MPI_{name}": pair
    for name, pair in {
        "SHORT_INT": "hi",
        "2INT": "ii",
        "LONG_INT": "li",
        "FLOAT_INT": "fi",
        "DOUBLE_INT": "di",
        "LONG_DOUBLE_INT": "gi",
    }.items()
}


def _block(datatype, count):
    """Convert a number of elements that follow each other."""
    return _to(datatype) if count == 1 else _array(datatype, (count,))


def _array(datatype, shape):
    element = _to(datatype)
    if _np_dtype is None:
        return element, shape
    if element.itemsize != datatype.extent:
        raise ValueError("elements that overlap have no NumPy datatype")
    return _np_dtype((element, shape))


def _made(datatype, blocks):
    """Make the NumPy datatype of a datatype that consists of blocks at some offsets."""
    extent = datatype.extent
    if _np_dtype is None:
        return _fields(blocks, extent)
    end = _end(blocks)
    if end > extent and datatype.lb == 0:
        # the last element may have padding that the datatype does not have
        blocks = [part for block in blocks for part in _trimmed(*block, extent)]
        end = _end(blocks)
    return _fields(blocks, extent if end <= extent else max(end, datatype.lb + extent))


def _end(blocks):
    return max((offset + kind.itemsize for offset, kind in blocks), default=0)


def _trimmed(offset, kind, limit):
    """Return the parts of a block, without the padding at its end that is beyond a limit."""
    if offset + kind.itemsize <= limit:
        return [(offset, kind)]
    if kind.names is not None:
        fields = [(kind.fields[name][1], kind.fields[name][0]) for name in kind.names]
        return [(offset, _fields(fields, min(kind.itemsize, max(_end(fields), limit - offset))))]
    if kind.subdtype is None or len(kind.shape) != 1:
        return [(offset, kind)]
    element, (count,) = kind.subdtype
    last = offset + (count - 1) * element.itemsize
    before = [] if count == 1 else [(offset, element if count == 2 else _np_dtype((element, (count - 1,))))]
    return before + _trimmed(last, element, limit)


def _fields(blocks, size):
    spec = {
        "names": [f"f{k}" for k in range(len(blocks))],
        "formats": [kind for _, kind in blocks],
        "offsets": [offset for offset, _ in blocks],
        "itemsize": size,
        "aligned": True,
    }
    if _np_dtype is None:
        return spec
    align = max((kind.alignment for _, kind in blocks), default=1)
    spec["aligned"] = size % align == 0 and all(offset % kind.alignment == 0 for offset, kind in blocks)
    return _np_dtype(spec)
