"""Exchanges in which each part has its own datatype and displacement.

Between two groups the parts are packed, travel as bytes, and are unpacked when the exchange is complete.
"""

from gormapy._ext import fast

from .constants import ERR_BUFFER
from .datatype import Datatype
from .exception import error
from .msgbuffer import acquire, byte, check_place
from .request import Step
from .sentinel import BOTTOM, is_in_place
from .userop import NO_IN_PLACE, Kept, Packed, marked, pack, told_by, unpack


def alltoallw(how, comm, sendbuf, recvbuf):
    """Send data of different amounts and types from all to all processes."""
    size = comm._peers
    if comm._two_groups and is_in_place(sendbuf):
        raise error(ERR_BUFFER, NO_IN_PLACE)
    recv, hold_recv = parts(recvbuf, False, size)
    send, hold_send = ([], None) if is_in_place(sendbuf) else parts(sendbuf, True, size)
    if comm._two_groups:
        return _across(how, comm, send, recv, (hold_send, hold_recv))
    return how.neighbor(comm._h, fast.ALLTOALLW, flat(send), flat(recv), (hold_send, hold_recv))


def flat(found):
    """Return parts as the core takes them: address, count and handle of each, one after the other."""
    return [word for address, count, datatype in found for word in (address, count, datatype._h)]


class Part:
    """Elements of one datatype at an address."""

    __slots__ = ("address", "count", "kept", "nbytes")

    def __init__(self, address, count, datatype):
        self.address, self.count, self.kept = address, count, Kept(datatype)
        self.nbytes = count * datatype.Get_size()


def parts(msg, readonly, blocks):
    """Parse a specification with counts, displacements in bytes and datatypes.

    Return (address, count, datatype) for each, and the holder.

    (buffer, types), (buffer, (counts, displs), types) or (buffer, counts, displs, types).
    """
    if not isinstance(msg, (list, tuple)):
        raise TypeError(f"message: expecting a list or tuple with datatypes, got {type(msg).__name__}")
    counts = displs = None
    if len(msg) == 2:
        obj, types = msg
    elif len(msg) == 3:
        obj, (counts, displs), types = msg
    elif len(msg) == 4:
        obj, counts, displs, types = msg
    else:
        raise ValueError("message: expecting 2 to 4 items")
    base, nbytes, holder = 0, None, None
    if obj is BOTTOM or obj is None:
        if counts is None or displs is None:
            raise ValueError("message: BOTTOM requires counts and displacements")
    else:
        base, nbytes, _, _, _, holder = acquire(obj, readonly)
    if counts is None and displs is None:
        counts, displs = [1] * blocks, [0] * blocks
    counts, displs, types = list(counts), list(displs), list(types)
    for what, given in (("counts", counts), ("displacements", displs), ("datatypes", types)):
        if len(given) != blocks:
            raise ValueError(f"message: expecting {blocks} {what}, got {len(given)}")
    for datatype in types:
        if not isinstance(datatype, Datatype):
            raise TypeError(f"message: expecting datatypes, got {type(datatype).__name__}")
    for count in counts:
        if count.__index__() < 0:
            raise ValueError(f"message: negative count {count}")
    if nbytes is not None:
        for part, (count, displ, datatype) in enumerate(zip(counts, displs, types)):
            check_place(part, count.__index__(), datatype, displ.__index__(), nbytes)
    found = [
        (base + displ.__index__(), count.__index__(), datatype) for count, displ, datatype in zip(counts, displs, types)
    ]
    return found, holder


def _across(how, comm, send, recv, holders):
    """Exchange parts with the ranks of the other group, packed: send[r] is for rank r, recv[r] comes from it."""
    out, outgoing, marks_out = _layout(send)
    into, incoming, marks_into = _layout(recv)
    mine = Packed(sum(out), [(end, nbytes) for _, end, nbytes in marks_out])
    room = bytearray(max(sum(into), 1))
    there, _, _, _, _, hold_into = acquire(room, False)

    def fill():
        for offset, part in outgoing:
            pack(part.kept.type, part.address, part.count, mine.address + offset)

    def before():
        mine.fill(fill)

    def after():
        mine.check()
        for rank, end, _ in marks_into:
            told_by(room, rank, end, "remote group")
        for offset, part in incoming:
            unpack(part.kept.type, there + offset, part.address, part.count)

    octet = byte()._h
    step = Step(after, before)
    holders = (*holders, mine.holder, hold_into)
    sides = (mine.address, out, None, octet, there, into, None, octet)
    return how.collv(step, fast.ALLTOALLV, comm._h, *sides, 0, holders)


def _layout(found):
    """Lay out parts one after the other, with an end after each; see Packed.

    Return the bytes of each, (offset, Part) for each, and (rank, index behind it, bytes of the part) for each end.
    """
    sizes, placed, marks, begin = [], [], [], 0
    for rank, part in enumerate(Part(*each) for each in found):
        placed.append((begin, part))
        sizes.append(marked(part.nbytes))
        begin += sizes[-1]
        if part.nbytes:
            marks.append((rank, begin, part.nbytes))
    return sizes, placed, marks
