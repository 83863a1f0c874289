"""Reductions on buffers with a function of the program.

The core cannot call Python, so the ranks' operands are gathered and folded in rank order by the
calling thread of the rank that gets the result.
"""

from gormapy._ext import core, fast

from .exception import check
from .msgbuffer import acquire, byte


def fold(comm, send, recv, op, root):
    """Reduce to `root`, or to all ranks if it is None."""
    in_place = send[0] == fast.IN_PLACE
    address, count, datatype, holder = recv if in_place else send
    nbytes = count * datatype._size
    mine = bytearray(max(nbytes, 1))
    packed, _, _, _, _, hold_mine = acquire(mine, False)
    check(core.TypePack(datatype._h, address, count, packed, nbytes, 0))
    receiving = root is None or comm.rank == root
    gathered, where, hold_gathered = bytearray(), 0, None
    if receiving:
        gathered = bytearray(max(nbytes * comm.size, 1))
        where, _, _, _, _, hold_gathered = acquire(gathered, False)
    octet = byte()._h
    kind = fast.ALLGATHER if root is None else fast.GATHER
    fast.coll_blocking(
        kind, comm._h, packed, nbytes, octet, where, nbytes, octet, 0, root or 0, (hold_mine, hold_gathered)
    )
    if receiving and count:
        # function(in, inout) computes inout = in op inout: start with the last rank
        rows = datatype._extent * count
        low, _, _, _, _, hold_low = acquire(bytearray(rows), False)
        high, _, _, _, _, hold_high = acquire(bytearray(rows), False)
        last = comm.size - 1
        _unpack(datatype, where + last * nbytes, nbytes, high, count)
        for rank in range(last - 1, -1, -1):
            _unpack(datatype, where + rank * nbytes, nbytes, low, count)
            op._apply(low, high, count, datatype)
        check(core.TypePack(datatype._h, high, count, packed, nbytes, 0))
        _unpack(datatype, packed, nbytes, recv[0], count)
        del hold_low, hold_high
    del holder, hold_mine, hold_gathered


def _unpack(datatype, source, nbytes, target, count):
    check(core.TypeUnpack(datatype._h, source, nbytes, 0, target, count))
