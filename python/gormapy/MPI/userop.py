"""Reductions that Python folds: with a function of the program, or of blocks of different sizes.

The core cannot call Python, so the operands are gathered as bytes, and folded in rank order by the thread that
completes the call on a rank that gets a result.
"""

from itertools import accumulate

from gormapy._ext import core, fast

from . import constants
from .exception import check, error
from .msgbuffer import acquire, byte
from .request import Step

NO_IN_PLACE = "IN_PLACE has no meaning in collectives of intercommunicators: the data go to the other group"


class Kept:
    """Datatype for an operation in progress, which stays valid if the program frees its own."""

    __slots__ = ("type",)

    def __init__(self, datatype):
        self.type = datatype._reference()
        if not (datatype.is_predefined and datatype._dense):
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


# What ends each part that is sent: its number of bytes, or _FAULT if it could not be packed.
_END = 8
_FAULT = (1 << 8 * _END) - 1


class Packed:
    """Packed parts of a rank for others, each with an end that tells whether it could be packed, and how long it is.

    If a part can't be packed, because its memory faults, the rank still takes part: the others would wait for it.
    """

    __slots__ = ("_failure", "_parts", "_room", "address", "holder")

    def __init__(self, nbytes, parts):
        """Make room of `nbytes`; `parts` are (index behind the part, its number of bytes)."""
        self._room = bytearray(max(nbytes, 1))
        self._parts = parts
        self._failure = None
        self.address, _, _, _, _, self.holder = acquire(self._room, False)

    def fill(self, function):
        """Pack by calling a function."""
        self._failure = None
        try:
            function()
        except Exception as failure:
            self._failure = failure
        for end, nbytes in self._parts:
            told = nbytes if self._failure is None else _FAULT
            self._room[end - _END : end] = told.to_bytes(_END, "little")

    def check(self, gathered=None):
        """Raise the failure of this rank, or an error of what has arrived that names another one."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if gathered is not None:
            gathered.check()


def told_by(room, rank, end, group):
    """Return what the end of a rank's part tells, its number of bytes; raise an error if it could not be packed."""
    told = int.from_bytes(room[end - _END : end], "little")
    if told == _FAULT:
        raise error(
            constants.ERR_OTHER,
            f"the collective can't complete: rank {rank} of the {group} can't access its memory "
            "(its own error says more)",
        )
    return told


class Arriving:
    """Room for a packed part of each of some ranks, one after the other, of `nbytes` each."""

    __slots__ = ("_nbytes", "_ranks", "_room", "_two_groups", "address", "holder", "rows")

    def __init__(self, comm, nbytes, ranks, parts):
        """Make room for `parts` parts, of which those of `ranks` are used."""
        sent = marked(nbytes)
        self._room = bytearray(max(sent * parts, 1))
        self._nbytes, self._ranks, self._two_groups = nbytes, ranks if nbytes else (), comm._two_groups
        self.address, _, _, _, _, self.holder = acquire(self._room, False)
        self.rows = [self.address + rank * sent for rank in ranks]

    def _ends(self):
        sent = marked(self._nbytes)
        return ((rank, (rank + 1) * sent) for rank in self._ranks)

    def clear(self):
        """Forget the parts of the last time, so that a shorter part is told from one that fits."""
        for _, end in self._ends():
            self._room[end - _END : end] = bytes(_END)

    def check(self):
        """Raise an error that names a rank whose part is none, or has another length."""
        group = "remote group" if self._two_groups else "communicator"
        for rank, end in self._ends():
            told = told_by(self._room, rank, end, group)
            if told != self._nbytes:
                raise error(
                    constants.ERR_TRUNCATE,
                    f"a reduction needs the same amount of data of all ranks: this rank has {self._nbytes} bytes, rank "
                    f"{rank} of the {group} {told or 'fewer'}",
                )


def marked(nbytes):
    """Return how many bytes are sent for a part of `nbytes`, with its end.

    Consecutive parts of several ranks stay aligned for every datatype. An empty part has no end.
    """
    return (nbytes + _END + 15) // 16 * 16 if nbytes else 0


def pack(datatype, address, count, where):
    """Copy elements to contiguous memory."""
    check(core.TypePack(datatype._h, address, count, where, count * datatype._size, 0))


def unpack(datatype, where, address, count):
    """Copy elements from contiguous memory."""
    check(core.TypeUnpack(datatype._h, where, count * datatype._size, 0, address, count))


def allreduce(how, comm, send, recv, op):
    """Reduce to all ranks."""
    return _gathered(how, fast.ALLGATHER, comm, send, recv, op, 0, range(comm._peers))


def reduce(how, comm, send, recv, op, root):
    """Reduce to a root."""
    return _gathered(how, fast.GATHER, comm, send, recv, op, root, range(comm._peers) if comm._is_root(root) else ())


def scan(how, comm, send, recv, op):
    """Reduce the operands of the ranks up to this one."""
    return _gathered(how, fast.ALLGATHER, comm, send, recv, op, 0, range(comm.rank + 1))


def exscan(how, comm, send, recv, op):
    """Reduce the operands of the ranks before this one."""
    return _gathered(how, fast.ALLGATHER, comm, send, recv, op, 0, range(comm.rank))


def reduce_scatter_block(how, comm, send, recv, op):
    """Reduce blocks of the same size and give each rank one."""
    if comm._two_groups:
        return reduce_scatter(how, comm, send, recv, [recv[1]] * comm.size, op)
    return _gathered(how, fast.ALLTOALL, comm, send, recv, op, 0, range(comm.size))


def _gathered(how, kind, comm, send, recv, op, root, ranks, block=None):
    """Gather the operands of all ranks and fold those of `ranks`; store a block (first, count) or all of the result.

    The extension does the same for usual arguments (pybind/shim/userop.c), by the same collectives.
    """
    if comm._two_groups and send[0] == fast.IN_PLACE:
        raise error(constants.ERR_BUFFER, NO_IN_PLACE)
    receives = send[0] == fast.IN_PLACE or (comm._two_groups and comm._is_root(root) and kind == fast.GATHER)
    address, count, datatype, holder = recv if receives else send
    apply = op._applier(datatype)
    kept, nbytes = Kept(datatype), count * datatype._size
    if comm._two_groups:
        return _gathered_across(how, kind, comm, (address, count, kept, holder), recv, apply, root, ranks, block)
    parts = comm._peers if ranks or kind != fast.GATHER else 0
    room, hold_room = memory(nbytes * parts)
    rows = [room + rank * nbytes for rank in ranks]

    def after():
        _fold(apply, kept.type, count, rows, recv[0], block)

    holders = (holder, recv[3], hold_room)
    handle = kept.type._h
    return how.coll(Step(after), kind, comm._h, address, count, handle, room, nbytes, byte()._h, 0, root, holders)


def _gathered_across(how, kind, comm, operand, recv, apply, root, ranks, block):
    """Do so in an intercommunicator, where the core does not compare the amounts of the groups."""
    address, count, kept, holder = operand
    nbytes, octet = count * kept.type._size, byte()._h
    sent = marked(nbytes)
    mine = Packed(sent, [(sent, nbytes)] if nbytes else [])
    theirs = Arriving(comm, nbytes, ranks, comm._peers if ranks or kind == fast.ALLGATHER else 0)

    def before():
        theirs.clear()
        mine.fill(lambda: pack(kept.type, address, count, mine.address))

    def after():
        mine.check(theirs)
        _fold(apply, kept.type, count, theirs.rows, recv[0], block)

    holders = (holder, recv[3], mine.holder, theirs.holder)
    step = Step(after, before)
    return how.coll(step, kind, comm._h, mine.address, sent, octet, theirs.address, sent, octet, 0, root, holders)


def reduce_scatter(how, comm, send, recv, counts, op):
    """Reduce blocks and give each rank one: `counts` are their numbers of elements."""
    if comm._two_groups:  # the blocks of the other group may be others: each rank gets all operands
        block = sum(counts[: comm.rank]), counts[comm.rank]
        return _gathered(how, fast.ALLGATHER, comm, send, recv, op, 0, range(comm._peers), block)
    address, _, datatype, holder = recv if send[0] == fast.IN_PLACE else send
    apply = op._applier(datatype)
    kept, octet = Kept(datatype), byte()._h
    count = counts[comm.rank]
    nbytes = count * datatype._size
    sent = marked(nbytes)
    out = [marked(n * datatype._size) for n in counts]
    ends = list(accumulate(out))
    mine = Packed(sum(out), [(end, n * datatype._size) for end, whole, n in zip(ends, out, counts) if whole])
    theirs = Arriving(comm, nbytes, range(comm.size), comm.size)
    displs = [rank * sent for rank in range(comm.size)]

    def fill():
        at = address
        for n, end, whole in zip(counts, ends, out):
            pack(kept.type, at, n, mine.address + end - whole)
            at += n * datatype._extent

    def before():
        theirs.clear()
        mine.fill(fill)

    def after():
        mine.check(theirs)
        _fold(apply, kept.type, count, theirs.rows, recv[0])

    return how.collv(
        Step(after, before),
        fast.ALLTOALLV,
        comm._h,
        mine.address,
        out,
        None,
        octet,
        theirs.address,
        [sent] * comm.size,
        displs,
        octet,
        0,
        (holder, recv[3], mine.holder, theirs.holder),
    )


def _fold(apply, datatype, count, rows, target, block=None):
    """Combine packed operands, given by their addresses, in order."""
    if not rows or not count:
        return
    # apply(in, inout) computes inout = in op inout: start with the last operand
    if datatype._dense:
        *others, last = rows
        for row in reversed(others):
            apply(row, last, count, datatype)
        first, n = block or (0, count)
        unpack(datatype, last + first * datatype._size, target, n)
        return
    low, hold_low = _room(datatype, count)
    high, hold_high = _room(datatype, count)
    *others, last = rows
    unpack(datatype, last, high, count)
    for row in reversed(others):
        unpack(datatype, row, low, count)
        apply(low, high, count, datatype)
    pack(datatype, high, count, last)
    first, n = block or (0, count)
    unpack(datatype, last + first * datatype._size, target, n)
    del hold_low, hold_high


def _room(datatype, count):
    """Return an address at which there is room for elements of any layout, and its holder."""
    true_lb, true_extent = datatype._true_lb, datatype._true_extent
    extent, way = datatype._extent, datatype._extent * (count - 1)
    begin = min(0, true_lb + min(0, way))
    end = max(extent * count, true_lb + max(0, way) + true_extent)
    address, holder = memory(end - begin)
    return address - begin, holder
