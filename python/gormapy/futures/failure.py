"""Exceptions that travel from a worker to the manager, with their tracebacks as text."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

from gormapy import MPI


class RemoteTraceback(Exception):
    """The traceback of an exception in another process, as text. It is the cause of the exception here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'

    def __reduce__(self) -> Any:
        return RemoteTraceback, (self.text,)


def pack(error: BaseException, skip: int = 0) -> bytes:
    """Serialize an exception. One that can't be is replaced by the error of trying, or by its text.

    The first `skip` frames of its traceback, which are not the program's, are left out.
    """
    text = _text(error, skip)
    try:
        data = MPI.pickle.dumps(error)
    except BaseException as refused:
        if isinstance(refused, KeyboardInterrupt):
            raise
        text = f"{text}\nThis exception can't be pickled:\n\n{_text(refused, 0)}"
        try:
            data = MPI.pickle.dumps(refused.with_traceback(None))
        except Exception:
            data = pickle.dumps(RuntimeError(f"{type(error).__name__}: {_said(error)} (it can't be pickled)"))
    return pickle.dumps((data, text))


def unpack(packed: Any) -> BaseException:
    """Make the exception that `pack` has serialized. One that can't be made is replaced by the error of trying."""
    data, text = pickle.loads(packed)
    try:
        error = MPI.pickle.loads(data)
        if not isinstance(error, BaseException):
            raise TypeError(f"an exception was pickled, and unpickled as {type(error).__name__}")
    except Exception as refused:
        error = refused
        text = f"{text}\nThis exception can't be unpickled."
    error.__cause__ = RemoteTraceback(text)
    return error


def _text(error, skip):
    trace = error.__traceback__
    for _ in range(skip):
        if trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
    try:
        return "".join(traceback.format_exception(type(error), error, trace))
    except Exception:  # its __str__ may raise
        return f"{type(error).__name__}\n"


def _said(error):
    try:
        return str(error)
    except Exception:
        return "its text can't be had"
