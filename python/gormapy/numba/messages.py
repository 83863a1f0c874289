"""Messages, blocking and started."""

from __future__ import annotations

from gormapy.MPI.constants import ANY_SOURCE, ANY_TAG, ERR_BUFFER
from gormapy.numba import functions as c
from gormapy.numba.arguments import compilable
from gormapy.numba.datatypes import datatype
from gormapy.numba.memory import contiguous, ended, received
from gormapy.numba.process import WORLD
from gormapy.numba.requestmemory import release_unfinished, request_for


@compilable
def send(data, dest, tag=0, comm=WORLD) -> int:
    """Send an array or a number."""
    buffer = contiguous(data)
    status = c.send(comm, buffer.ctypes.data, buffer.size, datatype(buffer), dest, tag)
    return ended(status, buffer)


@compilable(fills="data")
def recv(data, source=ANY_SOURCE, tag=ANY_TAG, comm=WORLD) -> int:
    """Receive into an array."""
    buffer = contiguous(data)
    status = c.recv(comm, buffer.ctypes.data, buffer.size, datatype(buffer), source, tag)
    return received(status, data, buffer)


@compilable
def sendrecv(senddata, dest, recvdata, source=ANY_SOURCE, sendtag=0, recvtag=ANY_TAG, comm=WORLD) -> int:
    """Send one array and receive another one."""
    sent = contiguous(senddata)
    buffer = contiguous(recvdata)
    status = c.sendrecv(
        comm,
        sent.ctypes.data,
        sent.size,
        datatype(sent),
        dest,
        sendtag,
        buffer.ctypes.data,
        buffer.size,
        datatype(buffer),
        source,
        recvtag,
    )
    ended(status, sent)
    return received(status, recvdata, buffer)


@compilable
def isend(data, dest, tag=0, comm=WORLD):
    """Start to send an array; return the status and a request, an array of one element.

    The array must stay as it is until the request is complete; the request keeps it alive. Of an array that is not
    contiguous a copy is sent.
    """
    release_unfinished()
    buffer = contiguous(data)
    request = request_for(buffer)
    status = c.isend(comm, buffer.ctypes.data, buffer.size, datatype(buffer), dest, tag, request.ctypes.data)
    return status, request


@compilable(fills="data")
def irecv(data, source=ANY_SOURCE, tag=ANY_TAG, comm=WORLD):
    """Start to receive into a contiguous array; return the status and a request, which keeps the array."""
    release_unfinished()
    request = request_for(data)
    if not data.flags.c_contiguous:
        return c.refused(ERR_BUFFER), request
    status = c.irecv(comm, data.ctypes.data, data.size, datatype(data), source, tag, request.ctypes.data)
    return status, request
