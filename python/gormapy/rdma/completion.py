"""Completion queues and work completions."""

import struct
import threading
import time

from .._ext import core
from .constants import OPERATIONS, STATUS_NAMES, WCOpcode, WCStatus
from .device import Context
from .errors import TimedOut, check, described, integer, invalid, mismatch, refusal
from .handle import Handle
from .scratch import Scratch

__all__ = ["CompletionQueue", "WorkCompletion"]

_WC = struct.Struct("<Q11q")  # rdma.WC
_AT_ONCE = 64
_scratch = Scratch(_WC.size * _AT_ONCE)
_SLICE = 0.05  # seconds after which signals are looked at


class WorkCompletion:
    """The end of a work request.

    `wr_id` is the number given when it was posted, `status` a `WCStatus`, `opcode` a `WCOpcode`, `byte_len` the
    number of bytes received or moved, `imm_data` the immediate data or None, `qp_num` the number of the queue pair,
    `operation` and `length` those of the work request. If `status` is not IBV_WC_SUCCESS, only `wr_id`, `qp_num`,
    `operation` and `length` have a meaning, and `error` is the exception.
    """

    __slots__ = ("_opcode", "_status", "byte_len", "error", "imm_data", "length", "operation", "qp_num", "wr_id")

    def __init__(self, fields):
        self.wr_id, self._status, self._opcode, self.byte_len, has_imm, imm, self.qp_num = fields[:7]
        what, self.length, code = fields[8:11]
        self.imm_data = imm if has_imm else None
        self.operation = OPERATIONS[what]
        self.error = described(code, self) if code else None

    @property
    def ok(self):
        """Whether the work request succeeded."""
        return self._status == 0

    @property
    def status(self):
        """The status of the work request, a `WCStatus`."""
        return WCStatus(self._status)

    @property
    def status_name(self):
        """The name of the status, such as IBV_WC_SUCCESS."""
        return STATUS_NAMES[self._status]

    @property
    def opcode(self):
        """The kind of work request, a `WCOpcode`."""
        return WCOpcode(self._opcode)

    def check(self):
        """Raise `Error` unless the work request succeeded."""
        if self.error is not None:
            raise self.error
        return self

    def __repr__(self):
        imm = "" if self.imm_data is None else f", imm_data {self.imm_data:#x}"
        what = f"{self.operation} on queue pair {self.qp_num}"
        return f"<WorkCompletion {self.wr_id}: {what}, {self.status_name}, {self.byte_len} bytes{imm}>"


class CompletionQueue(Handle):
    """The queue of the completions of any number of queue pairs.

    `depth` is how many completions it has room for; a work request that might overrun it is refused.
    """

    def __init__(self, context, depth=256):
        if not isinstance(context, Context):
            raise mismatch("create CompletionQueue", "context", "a Context", context)
        self.depth = integer("create CompletionQueue", "depth", depth, 1, 2**31 - 1)
        self._handle = check(core.RdmaCreateCQ(context._handle, self.depth))
        self.context = context
        self._held = []  # completions behind one that failed
        self._lock = threading.Lock()

    def poll(self, n=16, check=True):
        """Return a list of at most `n` completions, empty if nothing has completed.

        A work request that failed raises its `Error` (with `Error.completion`), in its order: those before it
        are returned first, those after it by the next call. With ``check=False`` all are returned, and the caller
        checks `WorkCompletion.status`.
        """
        n = integer("poll", "n", n, 1, 2**20)
        found = self._take(n)
        if not check:
            return found
        for i, completion in enumerate(found):
            if completion.error is not None:
                keep = found[i + 1 :] if i == 0 else found[i:]
                with self._lock:
                    self._held[:0] = keep
                if i == 0:
                    raise completion.error
                return found[:i]
        return found

    def _take(self, n):
        found = []
        if self._held:
            with self._lock:
                found, self._held = self._held[:n], self._held[n:]
        while len(found) < n:
            at_once = min(n - len(found), _AT_ONCE)
            buffer = _scratch.take()
            got = core.RdmaPoll(self._handle, buffer[1], at_once)
            if got > 0:
                found += [WorkCompletion(_WC.unpack_from(buffer[0], i * _WC.size)) for i in range(got)]
            _scratch.give(buffer)
            if got < 0 and not found:
                raise described(got)
            if got < at_once:
                break
        return found

    def wait(self, timeout=None, n=1, check=True):
        """Wait until `n` work requests have completed and return their completions.

        The thread sleeps meanwhile, other threads run, and Ctrl-C ends the wait.

        Errors: `TimedOut` after `timeout` seconds (None: never), and requests that have completed by then are returned
        by the next call; the `Error` of a work request that failed, as in `poll`.
        """
        n = integer("wait", "n", n, 1, 2**20)
        if n > self.depth:
            raise invalid("wait", f"{n} completions of a queue of depth {self.depth}", n=n, depth=self.depth)
        end = None if timeout is None else time.monotonic() + _seconds(timeout)
        found = []
        try:
            while True:
                found += self.poll(n - len(found), check)
                if len(found) == n:
                    done, found = found, []
                    return done
                left = _SLICE if end is None else min(_SLICE, end - time.monotonic())
                if left <= 0:
                    text = f"{len(found)} of {n} completions came within {timeout} s"
                    raise refusal("ETIMEDOUT", "wait", text, {"n": n, "completed": len(found)}, kind=TimedOut)
                code = core.RdmaWait(self._handle, int(left * 1e6) + 1)
                if code < 0:
                    raise described(code)
        finally:
            if found:
                with self._lock:
                    self._held[:0] = found

    def __repr__(self):
        return f"<CompletionQueue of {self.context.name}, depth {self.depth}{' closed' if self.closed else ''}>"


def _seconds(timeout):
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        raise mismatch("wait", "timeout", "a number of seconds", timeout) from None
    if seconds != seconds or seconds < 0:
        raise invalid("wait", f"timeout is {timeout}; it must be a number of seconds from 0 on")
    return seconds
