"""Collective operations on buffers.

For each operation there is a function that parses the buffers of this rank and passes them to the core, by a
blocking, a nonblocking or a persistent call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gormapy._ext import fast

from . import userop
from .alltoallw import alltoallw
from .calling import Blocking, Nonblocking
from .constants import PROC_NULL
from .hot import hot
from .msgbuffer import NOTHING, index, message, reduction, vector
from .op import SUM, is_user_defined
from .sentinel import is_in_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gormapy.typing import BufSpec, BufSpecB, BufSpecV, BufSpecW, InPlace

    from .op import Op
    from .request import Request

IN_PLACE = (fast.IN_PLACE, 0, NOTHING[2], None)


def _start(how, kind, comm, send, recv, op, root):
    """Start a collective operation of the core."""
    return how.coll(
        None, kind, comm._h, send[0], send[1], send[2]._h, recv[0], recv[1], recv[2]._h, op, root, (send[3], recv[3])
    )


def _own_part(comm, buf, readonly):
    """Return the root's own part of a gather or scatter: in an intercommunicator it has none."""
    if comm._two_groups:
        return NOTHING
    return IN_PLACE if is_in_place(buf) else message(buf, readonly, 0, 0)


def barrier(how, comm):
    """Synchronize."""
    return _start(how, fast.IBARRIER, comm, NOTHING, NOTHING, 0, 0)


def bcast(how, comm, buf, root):
    """Broadcast."""
    return _start(how, fast.BCAST, comm, NOTHING, message(buf, comm._is_root(root), root, 0), 0, root)


def gather(how, comm, sendbuf, recvbuf, root):
    """Gather to one process."""
    if comm._is_root(root):
        recv = message(recvbuf, False, 0, comm._peers)
        send = _own_part(comm, sendbuf, True)
    else:
        recv, send = NOTHING, message(sendbuf, True, root, 0)
    return _start(how, fast.GATHER, comm, send, recv, 0, root)


def scatter(how, comm, sendbuf, recvbuf, root):
    """Scatter from one process."""
    if comm._is_root(root):
        send = message(sendbuf, True, 0, comm._peers)
        recv = _own_part(comm, recvbuf, False)
    else:
        send, recv = NOTHING, message(recvbuf, False, root, 0)
    return _start(how, fast.SCATTER, comm, send, recv, 0, root)


def allgather(how, comm, sendbuf, recvbuf):
    """Gather to all processes."""
    recv = message(recvbuf, False, 0, comm._peers)
    send = IN_PLACE if is_in_place(sendbuf) else message(sendbuf, True, 0, 0)
    return _start(how, fast.ALLGATHER, comm, send, recv, 0, 0)


def alltoall(how, comm, sendbuf, recvbuf):
    """Send from all to all processes."""
    size = comm._peers
    recv = message(recvbuf, False, 0, size)
    send = IN_PLACE if is_in_place(sendbuf) else message(sendbuf, True, 0, size)
    return _start(how, fast.ALLTOALL, comm, send, recv, 0, 0)


# Different amounts for each rank
# -------------------------------

_IN_PLACE_V = (fast.IN_PLACE, None, None, NOTHING[2], None)


def _one(parsed):
    """Return a plain message in the form of a vector."""
    address, count, datatype, holder = parsed
    return address, [count], None, datatype, holder


def _own_part_v(comm, buf, readonly):
    """Return the root's own part of a gather or scatter in the form of a vector."""
    part = _own_part(comm, buf, readonly)
    return _IN_PLACE_V if part is IN_PLACE else _one(part)


def _startv(how, kind, comm, send, recv, root):
    return how.collv(
        None,
        kind,
        comm._h,
        send[0],
        send[1],
        send[2],
        send[3]._h,
        recv[0],
        recv[1],
        recv[2],
        recv[3]._h,
        root,
        (send[4], recv[4]),
    )


def gatherv(how, comm, sendbuf, recvbuf, root):
    """Gather different amounts."""
    if comm._is_root(root):
        recv = vector(recvbuf, False, 0, comm._peers)
        send = _own_part_v(comm, sendbuf, True)
    else:
        recv, send = vector(None, False, PROC_NULL, 0), _one(message(sendbuf, True, root, 0))
    return _startv(how, fast.GATHERV, comm, send, recv, root)


def scatterv(how, comm, sendbuf, recvbuf, root):
    """Scatter different amounts."""
    if comm._is_root(root):
        send = vector(sendbuf, True, 0, comm._peers)
        recv = _own_part_v(comm, recvbuf, False)
    else:
        send, recv = vector(None, True, PROC_NULL, 0), _one(message(recvbuf, False, root, 0))
    return _startv(how, fast.SCATTERV, comm, send, recv, root)


def allgatherv(how, comm, sendbuf, recvbuf):
    """Gather different amounts to all processes."""
    recv = vector(recvbuf, False, 0, comm._peers)
    send = _IN_PLACE_V if is_in_place(sendbuf) else _one(message(sendbuf, True, 0, 0))
    return _startv(how, fast.ALLGATHERV, comm, send, recv, 0)


def alltoallv(how, comm, sendbuf, recvbuf):
    """Send different amounts from all to all processes."""
    size = comm._peers
    recv = vector(recvbuf, False, 0, size)
    send = _IN_PLACE_V if is_in_place(sendbuf) else vector(sendbuf, True, 0, size)
    return _startv(how, fast.ALLTOALLV, comm, send, recv, 0)


# Reductions
# ----------


def _operands(sendbuf, recvbuf):
    recv = message(recvbuf, False, 0, 0)
    if is_in_place(sendbuf):
        return IN_PLACE, recv
    send = message(sendbuf, True, 0, 0)
    reduction(send, recv)
    return send, recv


def reduce(how, comm, sendbuf, recvbuf, op, root):
    """Reduce to one process."""
    if comm._two_groups:
        send = NOTHING if comm._is_root(root) else message(sendbuf, True, root, 0)
        recv = message(recvbuf, False, 0, 0) if comm._is_root(root) else NOTHING
    elif comm.rank == root:
        send, recv = _operands(sendbuf, recvbuf)
    else:
        send = message(sendbuf, True, 0, 0)
        recv = (0, send[1], send[2], None)
    if is_user_defined(op):
        return userop.reduce(how, comm, send, recv, op, root)
    return _start(how, fast.REDUCE, comm, send, recv, op._h, root)


def allreduce(how, comm, sendbuf, recvbuf, op):
    """Reduce to all processes."""
    send, recv = _operands(sendbuf, recvbuf)
    if is_user_defined(op):
        return userop.allreduce(how, comm, send, recv, op)
    return _start(how, fast.ALLREDUCE, comm, send, recv, op._h, 0)


def reduce_scatter_block(how, comm, sendbuf, recvbuf, op):
    """Reduce and scatter blocks of the same size."""
    size = comm.size
    if is_in_place(sendbuf):
        send, recv = IN_PLACE, message(recvbuf, False, 0, size)
    else:
        recv = message(recvbuf, False, 0, 0)
        send = message(sendbuf, True, 0, size)
        reduction(send, recv)
    if is_user_defined(op):
        return userop.reduce_scatter_block(how, comm, send, recv, op)
    if send is not IN_PLACE:
        send = (send[0], send[1] * size, send[2], send[3])
    return _start(how, fast.REDUCE_SCATTER_BLOCK, comm, send, recv, op._h, 0)


def reduce_scatter(how, comm, sendbuf, recvbuf, recvcounts, op):
    """Reduce and scatter blocks of different size."""
    size, rank = comm.size, comm.rank
    recv = message(recvbuf, False, 0, 0)
    in_place = is_in_place(sendbuf)
    send = IN_PLACE if in_place else message(sendbuf, True, 0, 0)
    if recvcounts is None:
        if in_place or comm._two_groups:
            where = "in place" if in_place else "in an intercommunicator"
            raise ValueError(f"Reduce_scatter: {where}, the counts have to be given")
        recvcounts = comm.allgather(recv[1])
    recvcounts = [index(count, "Reduce_scatter: recvcounts") for count in recvcounts]
    if len(recvcounts) != size:
        raise ValueError(f"Reduce_scatter: expecting {size} counts, got {len(recvcounts)}")
    if any(count < 0 for count in recvcounts):
        raise ValueError(f"Reduce_scatter: expecting counts of 0 or more, got {min(recvcounts)}")
    total = sum(recvcounts)
    if in_place and recv[1] != total:
        raise ValueError(f"mismatch in receive count {recv[1]} and sum(counts) {total}")
    if not in_place:
        if send[2]._h != recv[2]._h:
            raise ValueError(f"mismatch in send and receive MPI datatypes: {send[2].name} and {recv[2].name}")
        if send[1] != total:
            raise ValueError(f"mismatch in send count {send[1]} and sum(counts) {total}")
        if recv[1] != recvcounts[rank]:
            raise ValueError(f"mismatch in receive count {recv[1]} and counts[{rank}] {recvcounts[rank]}")
    if not comm._two_groups and min(recvcounts) == max(recvcounts) and not is_user_defined(op):
        if in_place:
            recv = (recv[0], recvcounts[rank], recv[2], recv[3])
        return _start(how, fast.REDUCE_SCATTER_BLOCK, comm, send, recv, op._h, 0)
    return userop.reduce_scatter(how, comm, send, recv, recvcounts, op)


def scan(how, comm, sendbuf, recvbuf, op):
    """Reduce the operands of the processes up to this one."""
    send, recv = _operands(sendbuf, recvbuf)
    if is_user_defined(op):
        return userop.scan(how, comm, send, recv, op)
    return _start(how, fast.SCAN, comm, send, recv, op._h, 0)


def exscan(how, comm, sendbuf, recvbuf, op):
    """Reduce the operands of the processes before this one."""
    send, recv = _operands(sendbuf, recvbuf)
    if is_user_defined(op):
        return userop.exscan(how, comm, send, recv, op)
    return _start(how, fast.EXSCAN, comm, send, recv, op._h, 0)


class Collectives:
    """Mix-in with the upper-case collective operations of a communicator."""

    __slots__ = ()

    @hot
    def Barrier(self) -> None:
        """Wait for all ranks."""
        fast.barrier(self._h)

    @hot
    def Bcast(self, buf: BufSpec, root: int = 0) -> None:
        """Copy the data of one rank to all others."""
        bcast(Blocking, self, buf, root)

    @hot
    def Gather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None, root: int = 0) -> None:
        """Gather the blocks of all ranks at one rank."""
        gather(Blocking, self, sendbuf, recvbuf, root)

    @hot
    def Gatherv(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV | None, root: int = 0) -> None:
        """Gather different amounts of data of all ranks at one rank."""
        gatherv(Blocking, self, sendbuf, recvbuf, root)

    @hot
    def Scatter(self, sendbuf: BufSpecB | None, recvbuf: BufSpec | InPlace, root: int = 0) -> None:
        """Scatter the blocks of one rank to all ranks."""
        scatter(Blocking, self, sendbuf, recvbuf, root)

    @hot
    def Scatterv(self, sendbuf: BufSpecV | None, recvbuf: BufSpec | InPlace, root: int = 0) -> None:
        """Scatter different amounts of data of one rank to all ranks."""
        scatterv(Blocking, self, sendbuf, recvbuf, root)

    @hot
    def Allgather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB) -> None:
        """Gather the blocks of all ranks at all ranks."""
        allgather(Blocking, self, sendbuf, recvbuf)

    @hot
    def Allgatherv(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV) -> None:
        """Gather different amounts of data of all ranks at all ranks."""
        allgatherv(Blocking, self, sendbuf, recvbuf)

    @hot
    def Alltoall(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB) -> None:
        """Exchange blocks among all ranks."""
        alltoall(Blocking, self, sendbuf, recvbuf)

    @hot
    def Alltoallv(self, sendbuf: BufSpecV | InPlace, recvbuf: BufSpecV) -> None:
        """Exchange different amounts of data among all ranks."""
        alltoallv(Blocking, self, sendbuf, recvbuf)

    def Alltoallw(self, sendbuf: BufSpecW | InPlace, recvbuf: BufSpecW) -> None:
        """Exchange data of different amounts and datatypes among all ranks."""
        alltoallw(Blocking, self, sendbuf, recvbuf)

    @hot
    def Reduce(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec | None, op: Op = SUM, root: int = 0) -> None:
        """Combine the operands of all ranks at one rank."""
        reduce(Blocking, self, sendbuf, recvbuf, op, root)

    @hot
    def Allreduce(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> None:
        """Combine the operands of all ranks at all ranks."""
        allreduce(Blocking, self, sendbuf, recvbuf, op)

    @hot
    def Reduce_scatter_block(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpec | BufSpecB, op: Op = SUM) -> None:
        """Combine the blocks of all ranks, and give each rank one of the result."""
        reduce_scatter_block(Blocking, self, sendbuf, recvbuf, op)

    @hot
    def Reduce_scatter(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, recvcounts: Sequence[int] | None = None, op: Op = SUM
    ) -> None:
        """Combine blocks of different lengths of all ranks, and give each rank one of the result."""
        reduce_scatter(Blocking, self, sendbuf, recvbuf, recvcounts, op)

    # Nonblocking
    # -----------

    @hot
    def Ibarrier(self) -> Request:
        """Start to wait for all ranks."""
        return barrier(Nonblocking, self)

    @hot
    def Ibcast(self, buf: BufSpec, root: int = 0) -> Request:
        """Start to copy the data of one rank to all others."""
        return bcast(Nonblocking, self, buf, root)

    @hot
    def Igather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None, root: int = 0) -> Request:
        """Start to gather the blocks of all ranks at one rank."""
        return gather(Nonblocking, self, sendbuf, recvbuf, root)

    def Igatherv(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV | None, root: int = 0) -> Request:
        """Start to gather different amounts of data of all ranks at one rank."""
        return gatherv(Nonblocking, self, sendbuf, recvbuf, root)

    @hot
    def Iscatter(self, sendbuf: BufSpecB | None, recvbuf: BufSpec | InPlace, root: int = 0) -> Request:
        """Start to scatter the blocks of one rank to all ranks."""
        return scatter(Nonblocking, self, sendbuf, recvbuf, root)

    def Iscatterv(self, sendbuf: BufSpecV | None, recvbuf: BufSpec | InPlace, root: int = 0) -> Request:
        """Start to scatter different amounts of data of one rank to all ranks."""
        return scatterv(Nonblocking, self, sendbuf, recvbuf, root)

    @hot
    def Iallgather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB) -> Request:
        """Start to gather the blocks of all ranks at all ranks."""
        return allgather(Nonblocking, self, sendbuf, recvbuf)

    def Iallgatherv(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV) -> Request:
        """Start to gather different amounts of data of all ranks at all ranks."""
        return allgatherv(Nonblocking, self, sendbuf, recvbuf)

    @hot
    def Ialltoall(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB) -> Request:
        """Start to exchange blocks among all ranks."""
        return alltoall(Nonblocking, self, sendbuf, recvbuf)

    def Ialltoallv(self, sendbuf: BufSpecV | InPlace, recvbuf: BufSpecV) -> Request:
        """Start to exchange different amounts of data among all ranks."""
        return alltoallv(Nonblocking, self, sendbuf, recvbuf)

    def Ialltoallw(self, sendbuf: BufSpecW | InPlace, recvbuf: BufSpecW) -> Request:
        """Start to exchange data of different amounts and datatypes among all ranks."""
        return alltoallw(Nonblocking, self, sendbuf, recvbuf)

    @hot
    def Ireduce(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec | None, op: Op = SUM, root: int = 0) -> Request:
        """Start to combine the operands of all ranks at one rank."""
        return reduce(Nonblocking, self, sendbuf, recvbuf, op, root)

    @hot
    def Iallreduce(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> Request:
        """Start to combine the operands of all ranks at all ranks."""
        return allreduce(Nonblocking, self, sendbuf, recvbuf, op)

    @hot
    def Ireduce_scatter_block(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpec | BufSpecB, op: Op = SUM) -> Request:
        """Start to combine the blocks of all ranks, and to give each rank one of the result."""
        return reduce_scatter_block(Nonblocking, self, sendbuf, recvbuf, op)

    def Ireduce_scatter(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, recvcounts: Sequence[int] | None = None, op: Op = SUM
    ) -> Request:
        """Start to combine blocks of different lengths of all ranks, and to give each rank one of the result."""
        return reduce_scatter(Nonblocking, self, sendbuf, recvbuf, recvcounts, op)


class Scans:
    """Mix-in with the scans of an intracommunicator."""

    __slots__ = ()

    @hot
    def Scan(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> None:
        """Combine the operands of the ranks up to this one."""
        scan(Blocking, self, sendbuf, recvbuf, op)

    @hot
    def Exscan(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> None:
        """Combine the operands of the ranks before this one."""
        exscan(Blocking, self, sendbuf, recvbuf, op)

    def Iscan(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> Request:
        """Start to combine the operands of the ranks up to this one."""
        return scan(Nonblocking, self, sendbuf, recvbuf, op)

    def Iexscan(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM) -> Request:
        """Start to combine the operands of the ranks before this one."""
        return exscan(Nonblocking, self, sendbuf, recvbuf, op)
