"""What the checker is told of requests."""

from typing import NamedTuple

from gormapy._ext import fast

from . import kinds
from .known import gone
from .sites import here
from .wrapping import event, replace

_requests = {}  # id of a request -> (the request, its handle, its number, its window or None)


class Prepared(NamedTuple):
    """A persistent request: what happens when it is started."""

    communicator: int | None  # of a collective call
    name: str
    root: int | None  # of a synchronous send, its receiver
    buffers: list  # what `elements.runs` returns, and whether that is stored


persistent: dict[int, Prepared] = {}  # by handle


def started(request, number, known=None):
    """Remember a request, with the window of its operation."""
    _requests[id(request)] = request, request._h, number, known


def reset():
    """Forget all requests: those that were not complete have failed."""
    _requests.clear()


def _tell_of(listed):
    """Tell the checker which of these requests have completed."""
    for request in listed:
        entry = _requests.get(id(request))
        if entry is None:
            continue
        _, handle, number, known = entry
        if not fast.request_status(handle, None) if handle in persistent else request._h == handle:
            continue
        del _requests[id(request)]
        event(kinds.REQ_DONE, 0, None, number)
        if known is not None:
            gone(known.complete(number=number))


def _completing_one(method):
    def told(self, *args, **kwargs):
        made = True
        try:
            made = method(self, *args, **kwargs)
            return made
        finally:
            if _requests and made is not False:
                _tell_of([self])

    return told


def _completing(method):
    def told(cls, *args, **kwargs):
        args, kwargs, before = _copied(args, kwargs)
        try:
            return method(cls, *args, **kwargs)
        finally:
            _tell_of(before)

    return told


def _copied(args, kwargs):
    """Return the arguments of a call for a list of requests, and the list as it is now."""
    given = args[0] if args else kwargs.get("requests")
    if not hasattr(given, "__iter__"):
        return args, kwargs, []  # the method has a better error
    before = list(given)
    if isinstance(given, (list, tuple)):
        return args, kwargs, before
    return ((before, *args[1:]), kwargs, before) if args else (args, {**kwargs, "requests": before}, before)


def _asking(method):
    def told(self, *args, **kwargs):
        made = method(self, *args, **kwargs)
        entry = _requests.get(id(self))
        if made and entry is not None:
            event(kinds.REQ_DONE, 0, None, entry[2])
            if entry[3] is not None:
                gone(entry[3].complete(number=entry[2]))
        return made

    return told


def _freeing(call):
    def make(method):
        def told(self):
            entry = _requests.get(id(self))
            if entry is not None and entry[3] is not None:
                text = "the request of an operation is freed, so that nobody can learn when it is complete"
                event(kinds.MISUSE, here(call), text, kinds.CLASS["request-lost"], 0, -1, entry[2])
            handle = self._h
            method(self)
            persistent.pop(handle, None)

        return told

    return make


def install():
    """Replace the methods of requests."""
    from gormapy import MPI

    for name in ("Wait", "Test", "wait", "test"):
        replace(MPI.Request, name, _completing_one)
    replace(MPI.Request, "Get_status", _asking)
    for name in ("Waitany", "Testany", "Waitall", "Testall", "Waitsome", "Testsome"):
        replace(MPI.Request, name, _completing)
        replace(MPI.Request, name.lower(), _completing)
    replace(MPI.Request, "Free", _freeing("Free"))
