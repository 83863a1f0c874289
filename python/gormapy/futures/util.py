"""Futures made of other futures."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from gormapy.typing import T, U, V

__all__ = ["collect", "compose"]


def collect(fs: Collection[Future[T]]) -> Future[list[T]]:
    """Return a new future of the list of the results of several futures.

    The first that fails or is cancelled makes the new one so, and cancels the others; cancelling the new one cancels
    all. It is of the type of the first.
    """
    fs = list(fs)
    gathered: Future[list[T]] = type(fs[0])() if fs else Future()
    if not fs:
        gathered.set_result([])
        return gathered
    left = [len(fs)]
    lock = threading.Lock()

    def cancel_others():
        for future in fs:
            if not future.done():
                future.cancel()

    def one_done(future):
        with lock:
            left[0] -= 1
            last = not left[0]
        if gathered.done():
            return
        try:
            error = future.exception()
        except CancelledError:
            gathered.cancel()
            cancel_others()
            return
        with suppress(InvalidStateError):
            if error is not None:
                gathered.set_exception(error)
                cancel_others()
            elif last:
                gathered.set_result([f.result() for f in fs])

    def gathered_done(future):
        if future.cancelled():
            cancel_others()

    gathered.add_done_callback(gathered_done)
    for future in fs:
        future.add_done_callback(one_done)
    return gathered


@overload
def compose(future: Future[T], resulthook: None = None, excepthook: None = None) -> Future[T]: ...
@overload
def compose(future: Future[T], resulthook: Callable[[T], U], excepthook: None = None) -> Future[U]: ...
@overload
def compose(
    future: Future[T],
    resulthook: None = None,
    *,
    excepthook: Callable[[BaseException], BaseException | V],
) -> Future[T | V]: ...
@overload
def compose(
    future: Future[T],
    resulthook: Callable[[T], U],
    excepthook: Callable[[BaseException], BaseException | V],
) -> Future[U | V]: ...
def compose(
    future: Future[Any],
    resulthook: Callable[[Any], Any] | None = None,
    excepthook: Callable[[BaseException], Any] | None = None,
) -> Future[Any]:
    """Return a new future of what functions make of the result of a future, or of its exception.

    `resulthook(result)` returns the new result; without it, it is the same. `excepthook(exception)` returns the new
    exception, or a result; without it, the new future fails with the same. The new future is of the type of `future`;
    cancelling one cancels the other.
    """
    composed = type(future)()

    def composed_done(f):
        if f.cancelled():
            future.cancel()

    def done(f):
        if f.cancelled():
            composed.cancel()
            if composed.cancelled():
                with suppress(InvalidStateError, RuntimeError):
                    composed.set_running_or_notify_cancel()
            return
        if composed.done():
            return
        error, result = f.exception(), None
        try:
            if error is None:
                result = f.result() if resulthook is None else resulthook(f.result())
            elif excepthook is not None:
                result = excepthook(error)
                error = None
                if isinstance(result, BaseException):
                    error, result = result, None
        except BaseException as raised:
            error = raised
        with suppress(InvalidStateError):
            if error is not None:
                composed.set_exception(error)
            else:
                composed.set_result(result)

    composed.add_done_callback(composed_done)
    future.add_done_callback(done)
    return composed
