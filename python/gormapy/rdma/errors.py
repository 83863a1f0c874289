"""Exceptions, with the names that verbs has for errors."""

import json

from .._ext import core

__all__ = ["Error", "TimedOut", "TypeMismatch"]


class Error(RuntimeError):
    """An operation that was refused, or that failed.

    `status` is a name: ``IBV_WC_...`` for a work request that failed, or was refused since it would fail, and that of
    an errno (``ENOMEM``, ``EINVAL``, ``EBADF`` for closed objects, ``ENODEV``) for other calls. `operation` is the
    name of the operation, such as ``post_write``. `sizes` is a dictionary of the relevant numbers, in bytes or
    counts. `completion` is the `WorkCompletion` if there is one.
    """

    def __init__(self, text, status="EIO", operation="", sizes=None, completion=None):
        super().__init__(text)
        self.status = status
        self.operation = operation
        self.sizes = dict(sizes or {})
        self.completion = completion


class TypeMismatch(Error, TypeError):
    """An argument of the wrong type."""


class TimedOut(Error, TimeoutError):
    """The time-out of a wait has passed."""


def refusal(status, operation, text, sizes=None, completion=None, kind=Error):
    """Return an exception, with all of its attributes in its message."""
    numbers = "".join(f"; {name} {size}" for name, size in (sizes or {}).items())
    return kind(f"{operation}: {text} ({status}{numbers})", status, operation, sizes, completion)


def mismatch(operation, name, expected, got):
    """Return the exception for an argument of the wrong type."""
    text = f"{name} must be {expected}, not {type(got).__name__}"
    return refusal("EINVAL", operation, text, kind=TypeMismatch)


def invalid(operation, text, **sizes):
    """Return the exception for an argument with a wrong value."""
    return refusal("EINVAL", operation, text, sizes)


def integer(operation, name, value, least=0, most=2**63 - 1):
    """Return an integer argument, checked."""
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise mismatch(operation, name, "an integer", value) from None
    if not least <= number <= most:
        raise invalid(operation, f"{name} is {number}; it must be from {least} to {most}", **{name: number})
    return number


def described(code, completion=None):
    """Return the exception for a negative code of the core."""
    told = json.loads(core.RdmaError(code))
    return refusal(told["status"], told["operation"], told["text"], told["sizes"], completion)


def check(code):
    """Return a result of the core; raise `Error` if it is a negative code."""
    if code < 0:
        raise described(code)
    return code
