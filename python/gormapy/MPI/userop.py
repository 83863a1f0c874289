"""Reductions that Python folds: with a function of the program, or of blocks of different sizes.

The core cannot call Python, so the operands are gathered, packed, and folded in rank order by the thread that
completes the call on a rank that gets a result.
"""

from itertools import accumulate

from gormapy._ext import core, fast

from . import constants
from .exception import check, error
from .msgbuffer import acquire, byte
from .request import Step


class Kept:
    """Datatype for an operation in progress, which stays valid if the program frees its own."""

    __slots__ = ("type",)

    def __init__(self, datatype):
        self.type = datatype._reference()
        pack(self.type, 0, 0, 0)  # refuses a datatype that is not committed

    def __del__(self):
        try:
            if not self.type.is_predefined:
                self.type.Free()
        except Exception:  # the interpreter ends
            pass


def memory(nbytes):
    """Return the address of new memory, and its holder."""
    address, _, _, _, _, holder = acquire(bytearray(max(nbytes, 1)), False)
    return address, holder


class Packed:
    """Packed parts of a rank for others, with a byte after each part that says whether it could be packed.

    If a part can't be packed, because its memory faults, the rank still takes part: the others would wait for it.
    """

    __slots__ = ("_failure", "_marks", "_room", "address", "holder")

    def __init__(self, nbytes, marks):
        self._room = bytearray(max(nbytes, 1))
        self._marks = marks
        self._failure = None
        self.address, _, _, _, _, self.holder = acquire(self._room, False)

    def fill(self, function):
        """Pack by calling a function."""
        self._failure = None
        try:
            function()
        except Exception as failure:
            self._failure = failure
        for mark in self._marks:
            self._room[mark] = self._failure is not None

    def check(self, gathered, marks):
        """Raise the failure of this rank, or an error that names another one; marks are (rank, index of its byte)."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        for rank, mark in marks:
            if gathered[mark]:
                raise error(
                    constants.ERR_OTHER,
                    f"the collective can't complete: rank {rank} of the communicator can't access its memory "
                    "(its own error says more)",
                )


def marked(nbytes):
    """Return how many bytes are sent for a part of `nbytes`, with the byte behind it that marks it.

    Consecutive parts of several ranks stay aligned for every datatype. An empty part has no mark.
    """
    return (nbytes + 16) // 16 * 16 if nbytes else 0


def pack(datatype, address, count, where):
    """Copy elements to contiguous memory."""
    check(core.TypePack(datatype._h, address, count, where, count * datatype._size, 0))


def unpack(datatype, where, address, count):
    """Copy elements from contiguous memory."""
    check(core.TypeUnpack(datatype._h, where, count * datatype._size, 0, address, count))


def allreduce(how, comm, send, recv, op):
    """Reduce to all ranks."""
    return _gathered(how, fast.ALLGATHER, comm, send, recv, op, 0, range(comm.size))


def reduce(how, comm, send, recv, op, root):
    """Reduce to a root."""
    return _gathered(how, fast.GATHER, comm, send, recv, op, root, range(comm.size) if comm.rank == root else ())


def scan(how, comm, send, recv, op):
    """Reduce the operands of the ranks up to this one."""
    return _gathered(how, fast.ALLGATHER, comm, send, recv, op, 0, range(comm.rank + 1))


def exscan(how, comm, send, recv, op):
    """Reduce the operands of the ranks before this one."""
    return _gathered(how, fast.ALLGATHER, comm, send, recv, op, 0, range(comm.rank))


def _gathered(how, kind, comm, send, recv, op, root, ranks):
    """Gather the operands of all ranks and fold those of `ranks`."""
    address, count, datatype, holder = recv if send[0] == fast.IN_PLACE else send
    apply = op._applier(datatype)
    kept, octet = Kept(datatype), byte()._h
    nbytes = count * datatype._size
    sent = marked(nbytes)
    mine = Packed(sent, [nbytes] if nbytes else [])
    room = bytearray(max(sent * comm.size, 1) if ranks or kind == fast.ALLGATHER else 1)
    gathered, _, _, _, _, hold_gathered = acquire(room, False)
    rows = [gathered + rank * sent for rank in ranks]
    marks = [(rank, rank * sent + nbytes) for rank in ranks] if nbytes else []

    def before():
        mine.fill(lambda: pack(kept.type, address, count, mine.address))

    def after():
        mine.check(room, marks)
        _fold(apply, kept.type, count, rows, recv[0])

    holders = (holder, recv[3], mine.holder, hold_gathered)
    step = Step(after, before)
    return how.coll(step, kind, comm._h, mine.address, sent, octet, gathered, sent, octet, 0, root, holders)


def reduce_scatter(how, comm, send, recv, counts, op):
    """Reduce blocks and give each rank one: `counts` are their numbers of elements."""
    address, _, datatype, holder = recv if send[0] == fast.IN_PLACE else send
    apply = op._applier(datatype)
    kept, octet = Kept(datatype), byte()._h
    count = counts[comm.rank]
    nbytes = count * datatype._size
    sent = marked(nbytes)
    out = [marked(n * datatype._size) for n in counts]
    ends = list(accumulate(out))
    mine = Packed(sum(out), [end - whole + n * datatype._size for end, whole, n in zip(ends, out, counts) if whole])
    room = bytearray(max(sent * comm.size, 1))
    gathered, _, _, _, _, hold_gathered = acquire(room, False)
    rows = [gathered + rank * sent for rank in range(comm.size)]
    displs = [rank * sent for rank in range(comm.size)]
    marks = [(rank, rank * sent + nbytes) for rank in range(comm.size)] if nbytes else []

    def fill():
        at = address
        for n, end, whole in zip(counts, ends, out):
            pack(kept.type, at, n, mine.address + end - whole)
            at += n * datatype._extent

    def before():
        mine.fill(fill)

    def after():
        mine.check(room, marks)
        _fold(apply, kept.type, count, rows, recv[0])

    return how.collv(
        Step(after, before),
        fast.ALLTOALLV,
        comm._h,
        mine.address,
        out,
        None,
        octet,
        gathered,
        [sent] * comm.size,
        displs,
        octet,
        0,
        (holder, recv[3], mine.holder, hold_gathered),
    )


def _fold(apply, datatype, count, rows, target):
    """Combine packed operands, given by their addresses, in order."""
    if not rows or not count:
        return
    # apply(in, inout) computes inout = in op inout: start with the last operand
    low, hold_low = _room(datatype, count)
    high, hold_high = _room(datatype, count)
    *others, last = rows
    unpack(datatype, last, high, count)
    for row in reversed(others):
        unpack(datatype, row, low, count)
        apply(low, high, count, datatype)
    pack(datatype, high, count, last)
    unpack(datatype, last, target, count)
    del hold_low, hold_high


def _room(datatype, count):
    """Return an address at which there is room for elements of any layout, and its holder."""
    _, true_lb, true_extent = datatype._layout
    extent, way = datatype._extent, datatype._extent * (count - 1)
    begin = min(0, true_lb + min(0, way))
    end = max(extent * count, true_lb + max(0, way) + true_extent)
    address, holder = memory(end - begin)
    return address - begin, holder
