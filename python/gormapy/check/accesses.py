"""Loads and stores of the program to windows and to buffers of pending operations."""

import collections
import functools
import os
import signal
import sys

from gormapy._ext import fast

from . import LIMIT, kinds, sites, threads
from .wrapping import event

_left = LIMIT
watching = False


def _told(address, nbytes, write, count, stride):
    """Tell the checker of an access to runs of bytes; return whether there may be more."""
    global _left, watching
    site = sites.accessing(write, address)
    fast.check_event(kinds.ACCESS, site, None, int(write), address, count, nbytes, stride or nbytes)
    _left -= 1
    if _left > 0:
        return True
    watching = False
    fast.watch_stop()
    fast.check_event(kinds.LIMIT, 0, None, LIMIT)
    return False


def renew():
    """Let as many accesses be looked at as at the start."""
    global _left, watching
    if _left <= 0:
        fast.watch_resume()
        watching = True
    _left = max(_left, LIMIT)


def _gone(address, nbytes):
    """Tell the checker that the program frees or moves memory that is in use."""
    for place in [place for place in _lingering if place[0] < address + nbytes and address < place[0] + place[1]]:
        _lingering.remove(place)
        unwatch(*place)
    event(kinds.GONE, sites.here("resize") if fast.watched_memory(address, nbytes) else 0, None, address, nbytes)


def told(call, place, buffer, write):
    """Tell the checker that a call of MPI accesses memory of the program, if it is watched.

    `place` is that of the argument, and `buffer` what `elements.runs` returns.
    """
    for address, count, nbytes, stride in buffer:
        if fast.watched_memory(address, (count - 1) * stride + nbytes):
            event(kinds.ACCESS, sites.here(call, place), None, int(write), address, count, nbytes, stride)


def watch(address, nbytes):
    """Begin to watch memory; return whether it can be watched."""
    if not watching or not nbytes:
        return False
    fast.watch_memory(address, nbytes, 1)
    return True


def unwatch(address, nbytes):
    """Watch memory once less."""
    fast.watch_memory(address, nbytes, -1)


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
    """Begin to watch memory of the program, if it has pages of its own; return whether it has."""
    return watching and fast.watch_mappable(address, nbytes)


def install():
    """Begin to watch what is asked for."""
    global watching, _left
    if os.environ.get("GORMAPY_JOB_CHECK_EXACT"):
        _left = sys.maxsize
    watching = bool(fast.watch_start((_told, _gone)))
    if watching:
        signal.pthread_sigmask = _masking(signal.pthread_sigmask)


def _masking(function):
    @functools.wraps(function)
    def masking(how, mask, /):
        """Leave out the signals of accesses that are watched: while they are blocked, an access ends the process."""
        if how != signal.SIG_UNBLOCK:
            mask = set(mask) - {signal.SIGSEGV, signal.SIGTRAP}
        return function(how, mask)

    return masking
