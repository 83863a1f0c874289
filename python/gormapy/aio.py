"""Requests in asyncio, beside ``await request``.

A request of `gormapy.MPI` can be awaited. This module has what awaits several of them::

    async for index, received in aio.completed(requests):
        ...
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from gormapy.MPI import Request

__all__ = ["completed"]


async def completed(requests: Iterable[Request]) -> AsyncIterator[tuple[int, Any]]:
    """Yield (index, result) of each request, in the order in which they complete: Waitsome for asyncio.

    The result is what `Request.wait` returns. If a request fails, its exception is raised, and the others go on:
    they can be awaited again.
    """
    tasks = [asyncio.ensure_future(_numbered(index, request)) for index, request in enumerate(requests)]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for unfinished in tasks:
            unfinished.cancel()


async def _numbered(index: int, request: Request) -> tuple[int, Any]:
    return index, await request
