"""The status of transfers, and waiting for them."""

import time
from contextlib import suppress
from enum import IntEnum
from weakref import WeakKeyDictionary

from .._ext import core
from .errors import TimedOut, check, described, invalid, mismatch, refusal
from .handle import Handle
from .scratch import Scratch

__all__ = ["StatusCode", "TransferStatus", "wait_all"]


class StatusCode(IntEnum):
    """The state or result of a transfer, numbered as in MORI-IO."""

    SUCCESS = 0
    INIT = 1
    IN_PROGRESS = 2
    ERR_INVALID_ARGS = 11
    ERR_NOT_FOUND = 12
    ERR_RDMA_OP = 13
    ERR_BAD_STATE = 14


_OF_ERRNO = {"EINVAL": 11, "ENOENT": 12, "EBADF": 14}
_STATUS_OF = {11: "EINVAL", 12: "ENOENT", 13: "EIO", 14: "EBADF"}
_SLICE = 50_000  # microseconds after which signals are checked


class TransferStatus:
    """The status of a transfer.

    It goes from INIT (waits for a connection or for room) to IN_PROGRESS and ends as SUCCESS or as an error. As soon as
    the transfer has ended, nothing accesses its memory any more; at SUCCESS all data has arrived, and if there is a
    uid, the target has been notified. It can be awaited: ``await status`` returns the status when the transfer has
    ended.
    """

    __slots__ = ("__weakref__", "_engine", "_final", "_handle", "uid")

    def __init__(self, handle, engine=None, uid=None, final=None):
        self._handle = handle
        self._engine = engine  # which a transfer needs
        self._final = final
        self.uid = uid

    def _look(self, microseconds=0):
        """Return the code, after waiting at most this time for it to be final."""
        if self._final is None:
            handle = self._handle
            code = core.RdmaStatusWait(handle, microseconds)
            if code in (1, 2):
                return code
            text = core.RdmaStatusText(handle) if code > 0 else ""
            if self._final is None:  # else another thread was here
                self._final = (code, text)
            core.RdmaStatusFree(handle)
            self._engine = None
        return self._final[0]

    @property
    def code(self):
        """The state or result of the transfer, a `StatusCode`."""
        return StatusCode(self._look())

    @property
    def message(self):
        """Why the transfer has failed, "" if it has not."""
        self._look()
        return self._final[1] if self._final else ""

    @property
    def done(self):
        """Whether the transfer has ended, as a success or not."""
        return self._look() not in (1, 2)

    @property
    def failed(self):
        """Whether the transfer has ended as an error."""
        return self._look() > 2

    @property
    def succeeded(self):
        """Whether the transfer has ended as a success."""
        return self._look() == 0

    def wait(self, timeout=None):
        """Wait until the transfer has ended and return it; raise `TimedOut` after `timeout` seconds (None: never).

        Other threads run meanwhile, and Ctrl-C ends the wait. A failure raises no exception here: see `check`.
        """
        _wait(self, deadline(timeout, "wait"), timeout)
        return self

    def check(self):
        """Return the status; raise `Error` if the transfer has failed."""
        if self.failed:
            code, text = self._final
            name = StatusCode(code).name
            raise refusal(_STATUS_OF[code], "transfer", f"{name}: {text}")
        return self

    def __await__(self):
        if not self.done:
            yield from _reader().future(self).__await__()
        return self

    def __del__(self):
        with suppress(Exception):  # a forked child, the end of the interpreter
            if self._final is None:
                core.RdmaStatusFree(self._handle)

    def __repr__(self):
        uid = "" if self.uid is None else f" uid {self.uid}"
        return f"<TransferStatus{uid} {self.code.name}{': ' + self.message if self.failed else ''}>"


def unsuccessful(code, text, uid=None):
    """Return the status of a transfer that failed before it began."""
    return TransferStatus(0, None, uid, (int(code), text))


def refused(error, uid=None):
    """Return the status of a transfer that was refused with an `Error`."""
    return unsuccessful(_OF_ERRNO.get(error.status, 13), str(error), uid)


def deadline(timeout, operation):
    """Return the time at which a time-out in seconds is over, or None."""
    if timeout is None:
        return None
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        raise mismatch(operation, "timeout", "a number of seconds", timeout) from None
    if not seconds >= 0:
        raise invalid(operation, f"timeout is {timeout}; it must be a number of seconds from 0 on")
    return time.monotonic() + seconds


def _wait(status, end, timeout):
    while True:
        left = _SLICE if end is None else min(_SLICE, int((end - time.monotonic()) * 1e6) + 1)
        if status._look(max(left, 0)) not in (1, 2):
            return
        if left <= 0:
            raise refusal("ETIMEDOUT", "wait", f"the transfer has not ended within {timeout} s", kind=TimedOut)


def wait_all(statuses, timeout=None):
    """Wait until all transfers have ended and return their statuses as a list.

    Some may have failed. Errors: `TimedOut` after `timeout` seconds for all together (None: never).
    """
    statuses = list(statuses)
    for status in statuses:
        if not isinstance(status, TransferStatus):
            raise mismatch("wait_all", "statuses", "TransferStatus objects", status)
    end = deadline(timeout, "wait_all")
    for status in statuses:
        _wait(status, end, timeout)
    return statuses


_AT_ONCE = 512
_scratch = Scratch(8 * _AT_ONCE)
_readers = WeakKeyDictionary()  # of event loops


def _reader():
    import asyncio

    loop = asyncio.get_running_loop()
    reader = _readers.get(loop)
    if reader is None:
        reader = _readers[loop] = _Reader()
    return reader


class _Reader(Handle):
    """Informs an event loop of transfers that have ended, by a descriptor that becomes readable."""

    def __init__(self):
        self._handle = check(core.RdmaWakerOpen())
        self._fd = check(core.RdmaWakerFD(self._handle))
        self._waiting = {}

    def future(self, status):
        """Return a future that is done when a transfer has ended."""
        import asyncio

        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.add_reader(self._fd, self._read, loop)
        future = loop.create_future()
        self._waiting.setdefault(status._handle, []).append(future)
        check(core.RdmaWakerWatch(self._handle, status._handle))
        return future

    def _read(self, loop):
        while True:
            buffer = _scratch.take()
            count = core.RdmaWakerTake(self._handle, buffer[1], _AT_ONCE)
            ended = memoryview(buffer[0]).cast("q")[: max(count, 0)].tolist()
            _scratch.give(buffer)
            for handle in ended:
                for future in self._waiting.pop(handle, ()):
                    if not future.done():  # cancelled
                        future.set_result(None)
            if count < 0:
                raise described(count)
            if count < _AT_ONCE:
                break
        if not self._waiting:
            loop.remove_reader(self._fd)
