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

    from . import accesses, collectives, epochs, files, messages, operations, requests, threads, windows

    communicators = (
        MPI.Comm,
        MPI.Intracomm,
        MPI.Intercomm,
        MPI.Topocomm,
        MPI.Cartcomm,
        MPI.Graphcomm,
        MPI.Distgraphcomm,
    )
    for module in (accesses, windows, operations, epochs, requests, files, threads):
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


def findings(timeout: float = 60) -> list[dict[str, Any]]:
    """Return what has been found so far in the job, as records.

    It waits until the checker has seen all that this rank has done, at most `timeout` seconds.

    Errors: RuntimeError if the job is not checked, or the checker does not answer.
    """
    if not _on:
        raise RuntimeError("the job is not checked: start it by mpiexec --check")
    from gormapy._ext import fast

    from . import kinds

    mark = os.getpid() << 24 | next(_marks)
    fast.check_event(kinds.MARK, 0, None, mark)
    end = time.monotonic() + timeout
    while True:
        with open(os.environ["GORMAPY_JOB_FINDINGS"], encoding="utf-8") as file:
            lines = file.read().splitlines()
        records = []
        for line in lines:
            record = json.loads(line)
            if record.get("mark") == mark:
                return records
            if "class" in record:
                records.append(record)
        if time.monotonic() > end:
            raise RuntimeError(f"the checker has not answered within {timeout} s")
        time.sleep(0.002)


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
