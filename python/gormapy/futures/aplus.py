"""Futures that can be chained, as promises of JavaScript (Promises/A+) are."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, overload

from gormapy.typing import S, T, U

if TYPE_CHECKING:
    from collections.abc import Callable


class ThenableFuture(Future[T]):
    """Future with the methods `then` and `catch`."""

    def then(
        self,
        on_success: Callable[[T], T | Future[T]] | None = None,
        on_failure: Callable[[BaseException], T | BaseException] | None = None,
    ) -> ThenableFuture[T]:
        """Return a new future for what a function makes of the result, or of the exception; see `then`."""
        return _then(self, on_success, on_failure)

    def catch(self, on_failure: Callable[[BaseException], T | BaseException] | None = None) -> ThenableFuture[T]:
        """Return a new future for what a function makes of the exception; see `catch`."""
        return _catch(self, on_failure)


@overload
def then(future: Future[T], on_success: None = None, on_failure: None = None) -> Future[T]: ...
@overload
def then(future: Future[T], on_success: Callable[[T], S | Future[S]], on_failure: None = None) -> Future[S]: ...
@overload
def then(
    future: Future[T],
    on_success: None = None,
    *,
    on_failure: Callable[[BaseException], BaseException | U | Future[U]],
) -> Future[T | U]: ...
@overload
def then(
    future: Future[T],
    on_success: Callable[[T], S | Future[S]],
    on_failure: Callable[[BaseException], BaseException | U | Future[U]],
) -> Future[S | U]: ...
def then(
    future: Future[Any],
    on_success: Callable[[Any], Any] | None = None,
    on_failure: Callable[[BaseException], Any] | None = None,
) -> Any:
    """Return a new future of what a function makes of the result of a future, or of its exception.

    `on_success(result)` is called with the result; without it, the new future has the same. `on_failure(exception)` is
    called with the exception; without it, the new future fails with the same. If the function returns a future, the new
    one gets the result of that one; if it returns or raises an exception, the new one fails with it. Cancelling the
    first future cancels the new one, which is of its type.
    """
    return _then(future, on_success, on_failure)


@overload
def catch(future: Future[T], on_failure: None = None) -> Future[T]: ...
@overload
def catch(future: Future[T], on_failure: Callable[[BaseException], BaseException | U | Future[U]]) -> Future[T | U]: ...
def catch(future: Future[Any], on_failure: Callable[[BaseException], Any] | None = None) -> Any:
    """Return a new future of what a function makes of the exception of a future.

    `on_failure(exception)` is called with it; without a function, the exception is ignored, and the new future has the
    result None.
    """
    return _catch(future, on_failure)


def _then(future, on_success, on_failure):
    chained = type(future)()

    def done(base):
        if base.cancelled():
            _cancel(chained)
            return
        error = base.exception()
        try:
            if error is None:
                outcome = base.result() if on_success is None else on_success(base.result())
            else:
                outcome = error if on_failure is None else on_failure(error)
        except BaseException as raised:
            outcome = raised
        _resolve(chained, outcome, [])

    future.add_done_callback(done)
    return chained


def _catch(future, on_failure):
    return _then(future, None, (lambda _: None) if on_failure is None else on_failure)


def _resolve(chained, outcome, passed):
    """Finish a chained future with a result, an exception, or what a future comes to; `passed` are those before."""
    if isinstance(outcome, Future):
        if outcome is chained or any(outcome is one for one in passed):
            outcome = RuntimeError("chain cycle detected: a future would wait for itself")
        else:
            passed.append(outcome)
            outcome.add_done_callback(lambda inner: _follow(chained, inner, passed))
            return
    with suppress(InvalidStateError):
        if isinstance(outcome, BaseException):
            chained.set_exception(outcome)
        else:
            chained.set_result(outcome)


def _follow(chained, inner, passed):
    if inner.cancelled():
        _cancel(chained)
        return
    error = inner.exception()
    _resolve(chained, inner.result() if error is None else error, passed)


def _cancel(future):
    if future.cancel():
        with suppress(RuntimeError):
            future.set_running_or_notify_cancel()
