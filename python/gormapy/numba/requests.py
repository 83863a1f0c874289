"""Waits and tests of requests."""

from __future__ import annotations

import numpy as np

from gormapy.MPI.constants import ERR_REQUEST, UNDEFINED
from gormapy.numba import functions as c
from gormapy.numba.arguments import compilable
from gormapy.numba.memory import contiguous, put_back
from gormapy.numba.requestmemory import divide, joined


@compilable
def wait(request) -> int:
    """Wait for a request.

    `request` is what `isend` or `irecv` returned. When it returns, the array may be touched, and the request is 0.
    Returns the status: 0, or the class of an error: ERR_REQUEST for an empty array, or that of the operation, such as
    ERR_TRUNCATE.

    MPI 4.1, section 3.7.3.
    """
    handles = contiguous(request)
    if handles.size == 0:
        return c.refused(ERR_REQUEST)
    status = c.wait(handles.ctypes.data)
    put_back(request, handles)
    return status


@compilable
def waitall(requests) -> int:
    """Wait for all of an array of requests, or of a tuple or list of such arrays.

    When it returns, their arrays may be touched, and the requests are 0. Returns the status: 0, or the class of the
    first error.

    MPI 4.1, section 3.7.5.
    """
    handles = joined(requests)
    status = c.waitall(handles.size, handles.ctypes.data)
    divide(requests, handles)
    return status


@compilable
def waitany(requests):
    """Wait for one of several requests; return the status and its index, UNDEFINED if none is active.

    When it returns, the array of that request may be touched, and the request is 0. The status is 0, or the class of an
    error.

    MPI 4.1, section 3.7.5.
    """
    handles = joined(requests)
    index = np.full(1, -1, np.int64)
    status = c.waitany(handles.size, handles.ctypes.data, index.ctypes.data)
    divide(requests, handles)
    return status, index[0] if index[0] >= 0 else UNDEFINED


@compilable
def test(request):
    """Return the status, and whether a request is complete.

    It never waits. If the request is complete, its array may be touched, and it is 0. The status is 0, or the class of
    an error, such as ERR_REQUEST for an empty array.

    MPI 4.1, section 3.7.3.
    """
    handles = contiguous(request)
    flag = np.zeros(1, np.int64)
    if handles.size == 0:
        return c.refused(ERR_REQUEST), False
    status = c.test(handles.ctypes.data, flag.ctypes.data)
    put_back(request, handles)
    return status, flag[0] != 0


@compilable
def testall(requests):
    """Return the status, and whether all requests are complete.

    It never waits. If all are complete, their arrays may be touched, and they are 0; otherwise none has changed. The
    status is 0, or the class of an error.

    MPI 4.1, section 3.7.5.
    """
    handles = joined(requests)
    flag = np.zeros(1, np.int64)
    status = c.testall(handles.size, handles.ctypes.data, flag.ctypes.data)
    divide(requests, handles)
    return status, flag[0] != 0


@compilable
def testany(requests):
    """Return the status, whether a request is complete, and its index, UNDEFINED if none is complete or active.

    It never waits. If one is complete, its array may be touched, and it is 0. The status is 0, or the class of an
    error.

    MPI 4.1, section 3.7.5.
    """
    handles = joined(requests)
    flag, index = np.zeros(1, np.int64), np.full(1, -1, np.int64)
    status = c.testany(handles.size, handles.ctypes.data, index.ctypes.data, flag.ctypes.data)
    divide(requests, handles)
    return status, flag[0] != 0, index[0] if index[0] >= 0 else UNDEFINED
