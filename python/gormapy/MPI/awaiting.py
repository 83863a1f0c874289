"""Awaited requests: how an event loop of asyncio learns that a request has ended.

The core makes a descriptor readable for each loop, see gocore/mpi/awaiting.go.
"""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, finalize, ref

from gormapy._ext import core

from .exception import check

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Generator

_AT_ONCE = 512  # numbers that are taken by a call


class _Waker:
    """The tasks of an event loop that await requests."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._handle = check(core.WakerOpen())
        self._fd = core.WakerFD(self._handle)
        self._process = os.getpid()
        finalize(loop, _close, self._process, self._handle).atexit = False
        self._futures: dict[int, Future[None]] = {}
        self._last = 0
        self._ended = array("q", [0]) * _AT_ONCE

    def ended(self, loop: AbstractEventLoop, handle: int) -> Generator[Future[None], None, None]:
        """Wait until a request has ended."""
        self._last = number = self._last + 1
        if not self._futures:
            loop.add_reader(self._fd, self._read, loop)
        self._futures[number] = future = loop.create_future()
        try:
            check(core.WakerWatch(self._handle, handle, number))
            yield from future.__await__()
        except BaseException:  # such as the task's cancellation
            if os.getpid() == self._process:  # a forked child shares what the loop sleeps in
                core.WakerForget(self._handle, number)
                self._forget(loop, number)
            raise

    def _forget(self, loop, number):
        future = self._futures.pop(number, None)
        if future is not None and not self._futures:
            loop.remove_reader(self._fd)
        return future

    def _read(self, loop):
        if os.getpid() != self._process:
            return  # the numbers are the parent's
        count = _AT_ONCE
        while count == _AT_ONCE:
            count = core.WakerTake(self._handle, self._ended.buffer_info()[0], _AT_ONCE)
            for number in self._ended[:count]:
                future = self._forget(loop, number)
                if future is not None and not future.done():  # the task may have been cancelled
                    future.set_result(None)


def _close(process, handle):
    if os.getpid() == process:  # in a forked child there is nothing of MPI
        core.WakerClose(handle)


# The futures of a waker refer to their loop. Only the loop owns its waker, so both go when the program has no more use
# for the loop, whatever it still awaits.
_wakers: WeakKeyDictionary[AbstractEventLoop, ref[_Waker]] = WeakKeyDictionary()


def _waker(loop):
    known = _wakers.get(loop)
    waker = None if known is None else known()
    if waker is None:
        waker = _Waker(loop)
        loop._gormapy_waker = waker
        _wakers[loop] = ref(waker)
    return waker


def ended(handle: int) -> Generator[Future[None], None, None]:
    """Wait in the running task until a request has ended: Wait then returns at once."""
    import asyncio

    loop = asyncio.get_running_loop()
    return _waker(loop).ended(loop, handle)
