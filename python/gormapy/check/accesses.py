"""Loads and stores of the program to windows and to buffers of pending operations."""

import collections
import functools
import os
import signal
import sys

from gormapy._ext import fast

from . import LIMIT, kinds, sites, threads
from .wrapping import event


def renew():
    """Let as many accesses be looked at as at the start."""
    fast.watch_renew()


def _site(address, write):
    """Return the number of the line that makes an access for the first time."""
    return sites.accessing(write, address)


def _gone(address, nbytes):
    """Tell the checker that the program frees or moves memory that is in use."""
    for place in list(_lingering):  # a copy: other threads release buffers meanwhile
        if place[0] < address + nbytes and address < place[0] + place[1]:
            try:
                _lingering.remove(place)
            except ValueError:  # another thread has taken it
                continue
            unwatch(*place)
    event(kinds.GONE, sites.here("resize") if fast.watched_memory(address, nbytes) else 0, None, address, nbytes)


def told(call, place, buffer, write):
    """Tell the checker that a call of MPI accesses memory of the program, if that is watched or can't be.

    `place` is that of the argument, and `buffer` what `elements.runs` returns.
    """
    for address, count, nbytes, stride in buffer:
        span = address, (count - 1) * stride + nbytes
        if fast.watched_memory(*span) or fast.foreign_memory(*span):
            event(kinds.ACCESS, sites.here(call, place), None, int(write), address, count, nbytes, stride)


def watch(address, nbytes):
    """Begin to watch memory; return whether it is watched."""
    return fast.watch_memory(address, nbytes)


def unwatch(address, nbytes):
    """Watch memory once less."""
    fast.unwatch_memory(address, nbytes)


_lingering = collections.deque()
_MOST_LINGERING = 256


def release(places):
    """Stop to watch buffers of a complete operation; later, where other threads may not know that it is complete."""
    if not threads.running and not _lingering:
        fast.check_threads(False)
        for place in places:
            unwatch(*place)
        return
    _lingering.extend(places)
    while len(_lingering) > (_MOST_LINGERING if threads.running else 0):
        unwatch(*_lingering.popleft())


def watch_own(address, nbytes):
    """Begin to watch memory of the program, if it has pages of its own; return whether it is watched."""
    return fast.watch_mappable(address, nbytes)


_sees = False  # whether loads and stores are seen here at all
_unseen = set()  # lines


def look(site, *places):
    """Tell the checker once of a line that uses memory whose loads and stores are not seen."""
    if not _sees or site in _unseen:
        return
    if any(fast.foreign_memory(*place) and not fast.watched_memory(*place) for place in places):
        _unseen.add(site)
        event(kinds.UNSEEN, site, None)


def install():
    """Begin to watch what is asked for."""
    global _sees
    limit = sys.maxsize if os.environ.get("GORMAPY_JOB_CHECK_EXACT") else LIMIT
    _sees = fast.watch_start((_site, _gone, limit))
    if _sees:
        signal.pthread_sigmask = _masking(signal.pthread_sigmask)
    else:
        event(kinds.UNSEEN, 0, None)


def _masking(function):
    @functools.wraps(function)
    def masking(how, mask, /):
        """Leave out the signals of accesses that are watched: while they are blocked, an access ends the process."""
        if how != signal.SIG_UNBLOCK:
            mask = set(mask) - {signal.SIGSEGV, signal.SIGTRAP}
        return function(how, mask)

    return masking
