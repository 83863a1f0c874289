"""Reductions that Python folds: with a function of the program, or of blocks of different sizes.

The core cannot call Python, so the operands are gathered, packed, and folded in rank order by the thread that
completes the call on a rank that gets a result.
"""

from gormapy._ext import core, fast

from .exception import check
from .msgbuffer import acquire, byte
from .request import Step


class Kept:
    """Datatype for an operation in progress: the program may free its own meanwhile."""

    __slots__ = ("type",)

    def __init__(self, datatype):
        self.type = datatype._reference()

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
    """Reduce the operands of the ranks up to the own."""
    return _gathered(how, fast.ALLGATHER, comm, send, recv, op, 0, range(comm.rank + 1))


def exscan(how, comm, send, recv, op):
    """Reduce the operands of the ranks before the own."""
    return _gathered(how, fast.ALLGATHER, comm, send, recv, op, 0, range(comm.rank))


def _gathered(how, kind, comm, send, recv, op, root, ranks):
    """Gather the operands of all ranks and fold those of some."""
    address, count, datatype, holder = recv if send[0] == fast.IN_PLACE else send
    apply = op._applier(datatype)
    kept, octet = Kept(datatype), byte()._h
    nbytes = count * datatype._size
    mine, hold_mine = memory(nbytes)
    gathered, hold_gathered = memory(nbytes * comm.size if ranks or kind == fast.ALLGATHER else 0)
    rows = [gathered + rank * nbytes for rank in ranks]

    def before():
        pack(kept.type, address, count, mine)

    def after():
        _fold(apply, kept.type, count, rows, recv[0])

    holders = (holder, recv[3], hold_mine, hold_gathered)
    step = Step(after, before)
    return how.coll(step, kind, comm._h, mine, nbytes, octet, gathered, nbytes, octet, 0, root, holders)


def reduce_scatter(how, comm, send, recv, counts, op):
    """Reduce blocks and give each rank one: `counts` are their numbers of elements."""
    address, _, datatype, holder = recv if send[0] == fast.IN_PLACE else send
    apply = op._applier(datatype)
    kept, octet = Kept(datatype), byte()._h
    total, count = sum(counts), counts[comm.rank]
    nbytes = count * datatype._size
    out = [n * datatype._size for n in counts]
    mine, hold_mine = memory(sum(out))
    gathered, hold_gathered = memory(nbytes * comm.size)
    rows = [gathered + rank * nbytes for rank in range(comm.size)]
    displs = [rank * nbytes for rank in range(comm.size)]

    def before():
        pack(kept.type, address, total, mine)

    def after():
        _fold(apply, kept.type, count, rows, recv[0])

    return how.collv(
        Step(after, before),
        fast.ALLTOALLV,
        comm._h,
        mine,
        out,
        None,
        octet,
        gathered,
        [nbytes] * comm.size,
        displs,
        octet,
        0,
        (holder, recv[3], hold_mine, hold_gathered),
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
