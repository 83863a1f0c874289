"""Results of many calls, for `map` and `starmap`."""

from __future__ import annotations

import operator
import time
from collections import deque
from concurrent.futures import as_completed
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def results(
    executor: Any,
    fn: Callable[..., Any],
    calls: Iterable[Any],
    timeout: float | None,
    chunksize: int,
    buffersize: int | None,
    unordered: bool,
) -> Iterator[Any]:
    """Submit calls, given as tuples of arguments, and return an iterator over their results."""
    if chunksize < 1:
        raise ValueError("chunksize must be >= 1.")
    if buffersize is not None:
        try:
            buffersize = operator.index(buffersize)
        except TypeError:
            raise TypeError("buffersize must be an integer or None") from None
        if buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        if unordered:
            raise ValueError("buffersize and unordered can't be combined")
    end = None if timeout is None else timeout + time.monotonic()
    if chunksize == 1:
        submitted = (executor.submit(fn, *args) for args in calls)
    else:
        submitted = (executor.submit(_chunk, fn, chunk) for chunk in _chunks(calls, chunksize))
    if unordered:
        found = _as_they_come(list(submitted), end)
    else:
        futures = deque(submitted if buffersize is None else islice(submitted, buffersize))
        found = _in_order(futures, submitted, end)
    return found if chunksize == 1 else _flat(found)


def _chunks(calls, size):
    calls = iter(calls)
    while chunk := list(islice(calls, size)):
        yield chunk


def _chunk(fn, calls):
    return [fn(*args) for args in calls]


def _flat(found):
    try:
        for chunk in found:
            yield from chunk
    finally:
        found.close()


def _left(end):
    return None if end is None else max(0.0, end - time.monotonic())


def _in_order(futures, more, end):
    """Yield results in the order of the calls. For each that is taken, one call of `more` is submitted."""
    try:
        while futures:
            yield _result(futures, more, end)
    finally:
        for future in futures:
            future.cancel()


def _result(futures, more, end):
    result = futures[0].result(_left(end))
    futures.popleft()
    for future in islice(more, 1):
        futures.append(future)
    return result


def _as_they_come(futures, end):
    """Yield results as they come."""
    pending = set(futures)
    futures.clear()
    coming = as_completed(pending, _left(end))
    try:
        for future in coming:
            pending.discard(future)
            yield future.result()
            del future
    finally:
        coming.close()
        for left in pending:
            left.cancel()
