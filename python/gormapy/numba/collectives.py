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
    """Wait until all ranks have called it."""
    return c.barrier(comm)


@compilable(fills="data")
def bcast(data, root, comm=WORLD) -> int:
    """Send an array of the root to all ranks."""
    buffer = contiguous(data)
    status = c.bcast(comm, buffer.ctypes.data, buffer.size, datatype(buffer), root)
    return received(status, data, buffer)


@compilable
def scatter(send_data, recv_data, count, root, comm=WORLD) -> int:
    """Send `count` elements of an array of the root to each rank."""
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
    """Collect the arrays of all ranks at the root, `count` elements of each."""
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
    """Collect the arrays of all ranks at all ranks, `count` elements of each."""
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
    """Combine the arrays or numbers of all ranks in an array of the root."""
    sent = operand(sendobj, recvobj)
    buffer = contiguous(recvobj)
    if c.rank(comm) == root and sent.size > buffer.size:
        return c.refused(ERR_COUNT)
    status = c.reduce(comm, sent.ctypes.data, buffer.ctypes.data, sent.size, datatype(sent), operator, root)
    ended(status, sent)
    return received(status, recvobj, buffer)


@compilable(same=("sendobj", "recvobj"))
def allreduce(sendobj, recvobj, operator=Operator.SUM, comm=WORLD) -> int:
    """Combine the arrays or numbers of all ranks in an array of each rank."""
    sent = operand(sendobj, recvobj)
    buffer = contiguous(recvobj)
    if sent.size > buffer.size:
        return c.refused(ERR_COUNT)
    status = c.allreduce(comm, sent.ctypes.data, buffer.ctypes.data, sent.size, datatype(sent), operator)
    ended(status, sent)
    return received(status, recvobj, buffer)
