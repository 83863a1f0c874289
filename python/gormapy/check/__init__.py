"""Races and misuse of one-sided communication, found while the program runs: ``mpiexec --check``."""

from __future__ import annotations

import itertools
import json
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["assert_none", "collect", "findings", "is_on", "paused"]

# How many loads and stores of a rank are looked at, in each cell and test; --check=exact has no limit.
LIMIT = 50_000

_marks = itertools.count(1)
_on = False


def is_on() -> bool:
    """Return whether the job is checked."""
    return _on


def join_job() -> None:
    """Tell the launcher's checker what this rank does, until the process ends."""
    global _on
    from gormapy._ext import core, fast

    code = core.CheckJob()
    if code < 0:
        from gormapy.MPI.exception import check

        check(code)
    if code != 1:
        return
    fast.check_open()
    from gormapy import MPI

    from . import accesses, collectives, epochs, files, local, messages, operations, requests, threads, windows

    communicators = (
        MPI.Comm,
        MPI.Intracomm,
        MPI.Intercomm,
        MPI.Topocomm,
        MPI.Cartcomm,
        MPI.Graphcomm,
        MPI.Distgraphcomm,
    )
    for module in (accesses, windows, operations, epochs, requests, files, local, threads):
        module.install()
    messages.install(communicators)
    collectives.install(communicators)
    _on = True
    import atexit

    atexit.register(_end)


def _end():
    import sys

    from gormapy._ext import fast

    fast.check_end(getattr(sys, "last_value", None) is not None)


def was_reset() -> None:
    """Tell the checker that the rank has left `gormapy.reset`: nothing of before is in flight."""
    if os.environ.get("GORMAPY_UNKIND"):
        from . import unkind

        unkind.was_reset()
    if not _on:
        return
    from gormapy._ext import fast

    from . import kinds, known, requests

    for window in list(known.windows.values()):
        window.reset()
    requests.reset()
    fast.check_event(kinds.RESET, 0, None)


def findings(timeout: float = 60) -> list[dict[str, Any]]:
    """Return what has been found so far in the job, as records.

    It waits until the checker has seen all that this rank has done, at most `timeout` seconds.

    Errors: RuntimeError if the job is not checked, or the checker does not answer.
    """
    if not _on:
        raise RuntimeError("the job is not checked: start it by mpiexec --check")
    records = map(json.loads, _answer(timeout)[0])
    return [record for record in records if "class" in record]


_answered = 0  # bytes of the file of findings up to the last answer that `await_checker` has waited for


def await_checker() -> str:
    """Wait until the checker has seen all that this rank has done; return why that was not possible, or ""."""
    global _answered
    if not _on:
        return ""
    try:
        _, _answered = _answer(start=_answered)
    except (OSError, RuntimeError) as error:
        return str(error)
    return ""


def _answer(timeout=60, start=0):
    """Wait until the checker has seen all that this rank has done.

    Return the lines of its file from a byte on, up to the answer, and where that ends.
    """
    from gormapy._ext import fast

    from . import kinds

    mark = os.getpid() << 24 | next(_marks)
    fast.check_event(kinds.MARK, 0, None, mark)
    answer = b'{"mark":%d}\n' % mark
    end = time.monotonic() + timeout
    with open(os.environ["GORMAPY_JOB_FINDINGS"], "rb", buffering=0) as file:
        file.seek(start)
        text = b""
        while True:
            seen = max(0, len(text) - len(answer))
            text += file.read()
            at = text.find(answer, seen)
            if at >= 0:
                return text[:at].splitlines(), start + at + len(answer)
            if time.monotonic() > end:
                raise RuntimeError(f"the checker has not answered within {timeout} s")
            time.sleep(0.002)


def renew() -> None:
    """Let as many loads and stores be looked at as at the start: a cell or a test begins."""
    if _on:
        from . import accesses

        accesses.renew()


@contextmanager
def collect() -> Iterator[list[dict[str, Any]]]:
    """Yield a list, which has the records of what was found in the block when the block has ended.

    ``with gormapy.check.collect() as found: step(win)``. What other ranks do meanwhile may be among them.

    Errors: those of `findings`.
    """
    before = len(findings())
    found: list[dict[str, Any]] = []
    try:
        yield found
    finally:
        found += findings()[before:]


def assert_none(since: int = 0) -> int:
    """Raise an AssertionError with what has been found, but for the first `since` records; return how many there are.

    Contested findings do not count.

    Errors: AssertionError; those of `findings`.
    """
    records = findings()
    found = [record for record in records[since:] if not record.get("contested")]
    if found:
        from .reports import text

        raise AssertionError("\n".join(map(text, found)))
    return len(records)


@contextmanager
def paused() -> Iterator[None]:
    """Do not look at what this thread does in the block: its operations, and its loads and stores.

    For code that is known to be right in a way that the checker can't see. Outside of a checked job it does nothing.
    """
    if not _on:
        yield
        return
    from gormapy._ext import fast

    from . import kinds

    fast.check_event(kinds.EXEMPT, 0, None, 1)
    try:
        yield
    finally:
        fast.check_event(kinds.EXEMPT, 0, None, 0)
