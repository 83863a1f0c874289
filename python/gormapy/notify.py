"""Notified one-sided operations: the target of a put learns that the data has come.

MPI's own target has to poll its memory, or wait for a message. Here each rank has `SLOTS` counters in every window.
A rank that puts data adds 1 to a counter of the target once the data is there; the target waits for the counter,
asleep::

    from gormapy import MPI, notify

    win = MPI.Win.Allocate(8 * n, 8, comm=comm)
    win.Lock_all()
    notify.put_notify(win, edge, right, 0, slot=LEFT)      # at the neighbour on the left
    notify.win_notified(win, LEFT)                         # here: the data is in the window
    await notify.notified(win, LEFT)                       # the same in a task of asyncio

Standard MPI has no such calls; proposals to the MPI Forum, foMPI-NA and GASPI have similar ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gormapy._ext import core, fast
from gormapy.MPI import PROC_NULL, Request, Win
from gormapy.MPI import awaiting as _awaiting
from gormapy.MPI.exception import check as _check
from gormapy.MPI.msgbuffer import index as _index

if TYPE_CHECKING:
    from collections.abc import Generator

    from gormapy.typing import BufSpec, TargetSpec

__all__ = ["SLOTS", "notified", "pending", "put_notify", "win_notified"]

SLOTS: int = fast.NOTIFY_SLOTS
"""Number of counters that each rank has in a window: slots are 0 to SLOTS - 1."""


def put_notify(win: Win, origin: BufSpec, target_rank: int, target: TargetSpec | None = None, slot: int = 0) -> None:
    """Put `origin` into the window of `target_rank`, and then add 1 to the target's counter `slot`.

    The target must be locked (Lock or Lock_all). When the call returns, the data is at the target and `origin` may be
    changed; it waits for no call of the target. `origin` and `target` are those of `Win.Put`. Other puts of this rank
    to the same target come before the notification as well if they were flushed.

    Errors: ERR_RMA_SYNC if the target is not locked, ERR_ARG for a slot that there is not, those of Win.Put, and
    ERR_PROC_FAILED if the target has failed. After an error nothing has been notified.
    """
    if fast.put_notify(win, origin, target_rank, target, slot):
        return
    if not isinstance(win, Win):
        raise TypeError(f"put_notify: win: expecting a Win, not {type(win).__name__}")
    rank, slot = _index(target_rank, "put_notify: target_rank"), _index(slot, "put_notify: slot")
    _check(core.WinCheckNotify(win._h, rank, slot))
    win.Put(origin, rank, target)
    if rank != PROC_NULL:
        win.Flush(rank)
        _check(core.WinNotify(win._h, rank, slot))


def win_notified(win: Win, slot: int, count: int = 1, timeout: float | None = None) -> bool:
    """Wait until `count` notifications have come to this rank's counter `slot`, and take them.

    Return True, or False if `timeout` seconds are over before; then none is taken. The data that was put before these
    notifications can be read then. Where the memory model of the window is not unified, call Sync before.

    Errors: ERR_PROC_FAILED if a rank of the window has failed, or all others have ended, so that they may never come;
    ERR_ARG for a slot that there is not, ERR_COUNT for a count below 1. If a signal's handler raises an exception
    meanwhile, such as KeyboardInterrupt, none is taken.
    """
    return fast.win_notified(*_arguments(win, slot, count, timeout))


def _arguments(win, slot, count, timeout):
    if not isinstance(win, Win):
        raise TypeError(f"win_notified: win: expecting a Win, not {type(win).__name__}")
    slot, count = _index(slot, "win_notified: slot"), _index(count, "win_notified: count")
    wait = -1
    if timeout is not None:
        if not timeout >= 0:
            raise ValueError(f"win_notified: timeout: expecting a number of seconds from 0 on, got {timeout!r}")
        wait = int(min(timeout, 1e9) * 1e9)
    return win._h, slot, count, wait


class notified:
    """What waits in a task of asyncio as `win_notified` does: ``await notified(win, slot, count)``.

    If the task is cancelled, no notification is taken.
    """

    __slots__ = ("_arguments",)

    def __init__(self, win: Win, slot: int, count: int = 1) -> None:
        self._arguments = (win, slot, count)

    def __await__(self) -> Generator[Any, None, None]:
        """Wait until the notifications have come, and take them."""
        request = Request._from_handle(_check(core.WinNotified(*_arguments(*self._arguments, None))))
        try:
            while not request.Get_status():
                yield from _awaiting.ended(request._h)
        except BaseException:
            core.WinNotifiedDrop(request._h)
            raise
        request.Wait()


def pending(win: Win, slot: int) -> int:
    """Return how many notifications have come to this rank's counter `slot` and were not taken.

    Local: it never waits. Errors: ERR_ARG for a slot that there is not.
    """
    if not isinstance(win, Win):
        raise TypeError(f"pending: win: expecting a Win, not {type(win).__name__}")
    return _check(core.WinPending(win._h, _index(slot, "pending: slot")))
