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
    """Send an array or a number, and return when it may be changed.

    `data` is an array, of which a view with gaps is copied, or a number; `dest` is a rank or PROC_NULL. Blocking: a
    long message may wait for its receive. Returns the status: 0, or the class of an error, such as ERR_RANK or ERR_TAG.

    MPI 4.1, section 3.2.1.
    """
    buffer = contiguous(data)
    status = c.send(comm, buffer.ctypes.data, buffer.size, datatype(buffer), dest, tag)
    return ended(status, buffer)


@compilable(fills="data")
def recv(data, source=ANY_SOURCE, tag=ANY_TAG, comm=WORLD) -> int:
    """Receive into an array.

    `data` is an array with room for the message, which may be shorter. Blocking: `data` has the message when it
    returns. Returns the status: 0, or the class of an error, such as ERR_RANK, ERR_TRUNCATE or ERR_PROC_FAILED.

    MPI 4.1, section 3.2.4.
    """
    buffer = contiguous(data)
    status = c.recv(comm, buffer.ctypes.data, buffer.size, datatype(buffer), source, tag)
    return received(status, data, buffer)


@compilable
def sendrecv(senddata, dest, recvdata, source=ANY_SOURCE, sendtag=0, recvtag=ANY_TAG, comm=WORLD) -> int:
    """Send one array and receive another one, in whatever order they go.

    `senddata` and `recvdata` do not overlap. Blocking: when it returns, `senddata` may be changed and `recvdata` has
    the message that came. Returns the status: 0, or the class of an error, such as ERR_RANK or ERR_TRUNCATE.

    MPI 4.1, section 3.2.7.
    """
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

    Nonblocking. The array must not be changed until the request is complete (wait, test); the request keeps it alive.
    Of an array that is not contiguous a copy is sent. The status is 0, or the class of an error, such as ERR_RANK or
    ERR_TAG.

    MPI 4.1, section 3.7.2.
    """
    release_unfinished()
    buffer = contiguous(data)
    request = request_for(buffer)
    status = c.isend(comm, buffer.ctypes.data, buffer.size, datatype(buffer), dest, tag, request.ctypes.data)
    return status, request


@compilable(fills="data")
def irecv(data, source=ANY_SOURCE, tag=ANY_TAG, comm=WORLD):
    """Start to receive into a contiguous array; return the status and a request, which keeps the array.

    Nonblocking. `data` must not be touched until the request is complete (wait, test). The status is 0, or the class of
    an error: ERR_BUFFER for an array that is not contiguous, ERR_RANK, ERR_TAG.

    MPI 4.1, section 3.7.2.
    """
    release_unfinished()
    request = request_for(data)
    if not data.flags.c_contiguous:
        return c.refused(ERR_BUFFER), request
    status = c.irecv(comm, data.ctypes.data, data.size, datatype(data), source, tag, request.ctypes.data)
    return status, request
