"""What the checker is told of requests."""

from . import kinds
from .sites import here
from .wrapping import event, replace

_requests = {}  # id of a request -> (the request, its handle, its number, its window or None)
persistent = {}  # handle of a persistent collective call -> (communicator, name, root)


def started(request, number, known=None):
    """Remember a request, with the window of its operation."""
    _requests[id(request)] = request, request._h, number, known


def _tell_of(listed):
    """Tell the checker which of these requests have completed."""
    for request in listed:
        entry = _requests.get(id(request))
        if entry is None:
            continue
        _, handle, number, known = entry
        if request._h == handle and handle not in persistent:
            continue
        del _requests[id(request)]
        event(kinds.REQ_DONE, 0, None, number)
        if known is not None:
            known.complete(number=number)


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
    def told(cls, listed, *args, **kwargs):
        before = list(listed) if _requests else []
        try:
            return method(cls, listed, *args, **kwargs)
        finally:
            _tell_of(before)

    return told


def _freeing(call):
    def make(method):
        def told(self):
            entry = _requests.get(id(self))
            if entry is not None and entry[3] is not None:
                text = "the request of an operation is freed, so that nobody can learn when it is complete"
                event(kinds.MISUSE, here(call), text, kinds.CLASS["request-lost"], 0, -1, entry[2])
            method(self)

        return told

    return make


def install():
    """Replace the methods of requests."""
    from gormapy import MPI

    for name in ("Wait", "Test", "wait", "test"):
        replace(MPI.Request, name, _completing_one)
    for name in ("Waitany", "Testany", "Waitall", "Testall", "Waitsome", "Testsome"):
        replace(MPI.Request, name, _completing)
        replace(MPI.Request, name.lower(), _completing)
    replace(MPI.Request, "Free", _freeing("Free"))
