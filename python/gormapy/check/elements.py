"""Datatypes and elements, as the checker knows them."""

from gormapy._ext import core, fast

from . import kinds
from .wrapping import event

_MOST_PIECES = 240  # of a datatype whose bytes the checker looks at
_SMALL = 8  # bytes of an element whose value is told

_pieces = {}  # handle of a datatype -> [(offset, bytes)]
_types = {}  # handle of a datatype -> (bytes of its only element or 0, whether that is an integer)


def number_of(datatype):
    """Return the number that the checker has for a datatype."""
    handle = datatype._h
    if handle not in _types:
        layout = [int(word) for word in core.TypeLayout(handle, _MOST_PIECES).split()]
        small, integer = 0, False
        if layout:
            event(kinds.DEF_TYPE, 0, None, handle, *layout)
            if datatype.is_predefined and datatype._size <= _SMALL:
                small, integer = datatype._size, datatype.typechar in "bhilqBHILQp"
        _types[handle] = small, integer
        fast.check_type(handle)
    return handle


def runs(address, count, datatype):
    """Return the bytes of a buffer as runs: address, number of blocks, their bytes, and how far apart they begin.

    A type of very many pieces has none: which bytes those are the checker does not know.
    """
    handle = datatype._h
    if handle not in _pieces:
        layout = [int(word) for word in core.TypeLayout(handle, _MOST_PIECES).split()]
        _pieces[handle] = list(zip(layout[3::2], layout[4::2]))
    extent = datatype._extent
    if count == 0 or not address:
        return []
    return [_run(address + offset, count, nbytes, extent) for offset, nbytes in _pieces[handle]]


def _run(start, count, nbytes, extent):
    """Return count blocks of bytes, each an extent behind the one before, as a run whose blocks go upwards."""
    if count == 1 or 0 <= extent <= nbytes:
        length = (count - 1) * extent + nbytes
        return start, 1, length, length
    if extent < 0:
        return start + (count - 1) * extent, count, nbytes, -extent
    return start, count, nbytes, extent


def is_small(datatype):
    """Return whether an element is so small that its value is told."""
    return _types[datatype._h][0] > 0


def value_at(address, datatype):
    """Return the element at an address as an integer, and what kind of value it is (see events.Operation)."""
    small, integer = _types[datatype._h]
    if not small or not address:
        return 0, 0
    return fast.watch_read(address, small), 2 if integer else 1


_ops = {}  # handle of an operation -> its number (race.go)


def number_of_op(op):
    """Return the number that the checker has for an operation of accumulates."""
    number = _ops.get(op._h)
    if number is None:
        from gormapy import MPI

        known = {MPI.NO_OP._h: 0, MPI.REPLACE._h: 1, MPI.SUM._h: 2}
        number = _ops[op._h] = known.get(op._h, 100 + op._h)
    return number


def places(*buffers):
    """Return address and number of the bytes from the first to the last, of an operation's buffers that have any."""
    found = []
    for buffer in buffers:
        if buffer is not None and buffer[0] and buffer[1]:
            address, count, datatype = buffer[:3]
            step = (count - 1) * datatype._extent
            found.append((address + datatype._true_lb + min(0, step), datatype._true_extent + abs(step)))
    return found
