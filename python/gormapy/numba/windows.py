"""One-sided operations.

Numba frees an array after its last use, which is the call: so each call is complete at the origin when it returns.
"""

from __future__ import annotations

from gormapy.MPI.constants import ERR_COUNT
from gormapy.numba import functions as c
from gormapy.numba.arguments import compilable
from gormapy.numba.datatypes import datatype
from gormapy.numba.memory import contiguous, ended, operand, received
from gormapy.numba.operators import Operator


@compilable
def put(win, origin, target_rank, target_disp=0) -> int:
    """Put an array or a number into the window of another rank.

    `win` is the `handle` of a window in an epoch for the target; `target_disp` counts units of the target's `disp_unit`
    bytes. `origin` may be changed when the call returns; the target has the data after `flush`, Unlock or Fence.
    Returns the status: 0, or the class of an error, such as ERR_RANK, ERR_RMA_RANGE or ERR_RMA_SYNC.

    MPI 4.1, section 12.3.1.
    """
    buffer = contiguous(origin)
    address, kind = buffer.ctypes.data, datatype(buffer)
    status = c.put(win, address, buffer.size, kind, buffer.itemsize, target_rank, target_disp)
    return ended(status, buffer)


@compilable(fills="origin")
def get(win, origin, target_rank, target_disp=0) -> int:
    """Get an array from the window of another rank.

    `win` is the `handle` of a window in an epoch for the target; `target_disp` counts units of the target's `disp_unit`
    bytes. `origin` has the data when the call returns. Returns the status: 0, or the class of an error, such as
    ERR_RANK, ERR_RMA_RANGE or ERR_RMA_SYNC.

    MPI 4.1, section 12.3.2.
    """
    buffer = contiguous(origin)
    address, kind = buffer.ctypes.data, datatype(buffer)
    status = c.get(win, address, buffer.size, kind, buffer.itemsize, target_rank, target_disp)
    return received(status, origin, buffer)


@compilable
def accumulate(win, origin, target_rank, target_disp=0, operator=Operator.SUM) -> int:
    """Combine an array or a number with what is in the window of another rank.

    Atomic for each element, as `MPI.Win.Accumulate`. `win` is the `handle` of a window in an epoch for the target;
    `target_disp` counts units of the target's `disp_unit` bytes. `origin` may be changed when the call returns; the
    target is changed after `flush`, Unlock or Fence. Returns the status: 0, or the class of an error, such as
    ERR_RMA_RANGE, ERR_RMA_SYNC or ERR_OP.

    MPI 4.1, section 12.3.4.
    """
    buffer = contiguous(origin)
    address, kind = buffer.ctypes.data, datatype(buffer)
    status = c.accumulate(win, address, buffer.size, kind, buffer.itemsize, target_rank, target_disp, operator)
    return ended(status, buffer)


@compilable(same=("origin", "result"))
def fetch_and_op(win, origin, result, target_rank, target_disp=0, operator=Operator.SUM) -> int:
    """Combine one element with one in the window of another rank, and write what that was to `result`.

    Atomic, as `MPI.Win.Fetch_and_op`. `win` is the `handle` of a window in an epoch for the target; `target_disp`
    counts units of the target's `disp_unit` bytes. `origin` is a number or an array of one element, `result` another
    array of its type. `result` has the old value when the call returns. Returns the status: 0, or the class of an
    error: ERR_COUNT for more than one element, ERR_RMA_RANGE, ERR_RMA_SYNC, ERR_OP.

    MPI 4.1, section 12.3.4.
    """
    sent = operand(origin, result)
    buffer = contiguous(result)
    if sent.size != 1 or buffer.size < 1:
        return c.refused(ERR_COUNT)
    address, kind = sent.ctypes.data, datatype(sent)
    status = c.fetch_and_op(win, address, buffer.ctypes.data, kind, sent.itemsize, target_rank, target_disp, operator)
    ended(status, sent)
    return received(status, result, buffer)


@compilable
def flush(win, target_rank) -> int:
    """Wait until all that was put into the window of a rank is there.

    Within Lock or Lock_all; the target makes no call. Returns the status: 0, or the class of an error, such as
    ERR_RMA_SYNC.

    MPI 4.1, section 12.5.4.
    """
    return c.flush(win, target_rank)


@compilable
def flush_all(win) -> int:
    """Wait until all that was put into the window is there, at each rank.

    Within Lock or Lock_all; the targets make no call. Returns the status: 0, or the class of an error, such as
    ERR_RMA_SYNC.

    MPI 4.1, section 12.5.4.
    """
    return c.flush_all(win)
