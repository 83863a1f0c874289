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
    """Wait for a request."""
    handles = contiguous(request)
    if handles.size == 0:
        return c.refused(ERR_REQUEST)
    status = c.wait(handles.ctypes.data)
    put_back(request, handles)
    return status


@compilable
def waitall(requests) -> int:
    """Wait for all of an array of requests, or of a tuple or list of such arrays; return the first error."""
    handles = joined(requests)
    status = c.waitall(handles.size, handles.ctypes.data)
    divide(requests, handles)
    return status


@compilable
def waitany(requests):
    """Wait for one of several requests; return the status and its index, UNDEFINED if none is active."""
    handles = joined(requests)
    index = np.full(1, -1, np.int64)
    status = c.waitany(handles.size, handles.ctypes.data, index.ctypes.data)
    divide(requests, handles)
    return status, index[0] if index[0] >= 0 else UNDEFINED


@compilable
def test(request):
    """Return the status, and whether a request is complete."""
    handles = contiguous(request)
    flag = np.zeros(1, np.int64)
    if handles.size == 0:
        return c.refused(ERR_REQUEST), False
    status = c.test(handles.ctypes.data, flag.ctypes.data)
    put_back(request, handles)
    return status, flag[0] != 0


@compilable
def testall(requests):
    """Return the status, and whether all requests are complete."""
    handles = joined(requests)
    flag = np.zeros(1, np.int64)
    status = c.testall(handles.size, handles.ctypes.data, flag.ctypes.data)
    divide(requests, handles)
    return status, flag[0] != 0


@compilable
def testany(requests):
    """Return the status, whether a request is complete, and its index, UNDEFINED if none is complete or active."""
    handles = joined(requests)
    flag, index = np.zeros(1, np.int64), np.full(1, -1, np.int64)
    status = c.testany(handles.size, handles.ctypes.data, index.ctypes.data, flag.ctypes.data)
    divide(requests, handles)
    return status, flag[0] != 0, index[0] if index[0] >= 0 else UNDEFINED
