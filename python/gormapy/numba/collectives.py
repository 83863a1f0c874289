"""Collective calls."""

from __future__ import annotations

from gormapy.MPI.constants import ERR_COUNT
from gormapy.numba import functions as c
from gormapy.numba.arguments import compilable
from gormapy.numba.datatypes import datatype
from gormapy.numba.memory import contiguous, ended, operand, received
from gormapy.numba.operators import Operator
from gormapy.numba.process import WORLD


@compilable
def barrier(comm=WORLD) -> int:
    """Wait until all ranks have called it.

    Collective. Returns the status: 0, or the class of an error, such as ERR_PROC_FAILED.

    MPI 4.1, section 6.3.
    """
    return c.barrier(comm)


@compilable(fills="data")
def bcast(data, root, comm=WORLD) -> int:
    """Copy an array of the root to all ranks.

    Collective. `data` has the same number of bytes at all ranks; that of `root` is sent, and those of the others have
    it when the call returns. Returns the status: 0, or the class of an error, such as ERR_ROOT or ERR_TRUNCATE.

    MPI 4.1, section 6.4.
    """
    buffer = contiguous(data)
    status = c.bcast(comm, buffer.ctypes.data, buffer.size, datatype(buffer), root)
    return received(status, data, buffer)


@compilable
def scatter(send_data, recv_data, count, root, comm=WORLD) -> int:
    """Send `count` elements of an array of the root to each rank.

    Collective. `send_data` matters at `root` only and has `count` elements for each rank, in the order of ranks;
    `recv_data` has room for `count`. When the call returns, `recv_data` has them and `send_data` may be changed.
    Returns the status: 0, or the class of an error: ERR_COUNT for a `send_data` that is too short, ERR_ROOT,
    ERR_TRUNCATE.

    MPI 4.1, section 6.6.
    """
    sent = contiguous(send_data)
    buffer = contiguous(recv_data)
    if c.rank(comm) == root and count * 1.0 * c.size(comm) > sent.size:
        return c.refused(ERR_COUNT)
    status = c.scatter(
        comm, sent.ctypes.data, count, datatype(sent), buffer.ctypes.data, buffer.size, datatype(buffer), root
    )
    ended(status, sent)
    return received(status, recv_data, buffer)


@compilable
def gather(send_data, recv_data, count, root, comm=WORLD) -> int:
    """Collect the arrays of all ranks at the root, `count` elements of each.

    Collective. `recv_data` matters at `root` only and has room for `count` elements of each rank, in the order of
    ranks. When the call returns, it has them and `send_data` may be changed. Returns the status: 0, or the class of an
    error: ERR_COUNT for a `recv_data` that is too short, ERR_ROOT, ERR_TRUNCATE.

    MPI 4.1, section 6.5.
    """
    sent = contiguous(send_data)
    buffer = contiguous(recv_data)
    if c.rank(comm) == root and count * 1.0 * c.size(comm) > buffer.size:
        return c.refused(ERR_COUNT)
    status = c.gather(
        comm, sent.ctypes.data, sent.size, datatype(sent), buffer.ctypes.data, count, datatype(buffer), root
    )
    ended(status, sent)
    return received(status, recv_data, buffer)


@compilable
def allgather(send_data, recv_data, count, comm=WORLD) -> int:
    """Collect the arrays of all ranks at all ranks, `count` elements of each.

    Collective. `recv_data` has room for `count` elements of each rank, in the order of ranks. When the call returns, it
    has them and `send_data` may be changed. Returns the status: 0, or the class of an error: ERR_COUNT for a
    `recv_data` that is too short, ERR_TRUNCATE.

    MPI 4.1, section 6.7.
    """
    sent = contiguous(send_data)
    buffer = contiguous(recv_data)
    if count * 1.0 * c.size(comm) > buffer.size:
        return c.refused(ERR_COUNT)
    status = c.allgather(
        comm, sent.ctypes.data, sent.size, datatype(sent), buffer.ctypes.data, count, datatype(buffer), 0
    )
    ended(status, sent)
    return received(status, recv_data, buffer)


@compilable(same=("sendobj", "recvobj"))
def reduce(sendobj, recvobj, operator, root, comm=WORLD) -> int:
    """Combine the arrays or numbers of all ranks in an array of the root.

    Collective. `sendobj` is an array or a number, `recvobj` an array of the same type, with room for the result at
    `root`; `operator` is one of `Operator`. When the call returns, `sendobj` may be changed. Returns the status: 0, or
    the class of an error: ERR_COUNT for a `recvobj` that is too short, ERR_OP, ERR_ROOT.

    MPI 4.1, section 6.9.1.
    """
    sent = operand(sendobj, recvobj)
    buffer = contiguous(recvobj)
    if c.rank(comm) == root and sent.size > buffer.size:
        return c.refused(ERR_COUNT)
    status = c.reduce(comm, sent.ctypes.data, buffer.ctypes.data, sent.size, datatype(sent), operator, root)
    ended(status, sent)
    return received(status, recvobj, buffer)


@compilable(same=("sendobj", "recvobj"))
def allreduce(sendobj, recvobj, operator=Operator.SUM, comm=WORLD) -> int:
    """Combine the arrays or numbers of all ranks in an array of each rank.

    Collective. `sendobj` is an array or a number, `recvobj` an array of the same type, with room for the result;
    `operator` is one of `Operator`. When the call returns, `sendobj` may be changed. Returns the status: 0, or the
    class of an error: ERR_COUNT for a `recvobj` that is too short, ERR_OP.

    MPI 4.1, section 6.9.6.
    """
    sent = operand(sendobj, recvobj)
    buffer = contiguous(recvobj)
    if sent.size > buffer.size:
        return c.refused(ERR_COUNT)
    status = c.allreduce(comm, sent.ctypes.data, buffer.ctypes.data, sent.size, datatype(sent), operator)
    ended(status, sent)
    return received(status, recvobj, buffer)
