"""What the checker is told of messages. The core tells it who has received which (package p2p)."""

from . import accesses, kinds, requests
from .communicators import handle_of, ranks_of
from .sites import here
from .wrapping import event, numbers, replace

_BUFFER, _SENT, _GOT, _NONE = (0, "buf"), (0, "sendbuf"), (3, "recvbuf"), None

# What calls load and what they store: places of their arguments
_BUFFERS = {
    "send": (_BUFFER, _NONE),
    "recv": (_NONE, _BUFFER),
    "sendrecv": (_SENT, _GOT),
    "sendrecv_replace": (_BUFFER, _BUFFER),
    "probe": (_NONE, _NONE),
}


def _kind(name):
    """Return which of these a call is."""
    name = name.removesuffix("_init").lower()
    return next(kind for kind in ("sendrecv_replace", "sendrecv", "send", "recv", "probe") if name.endswith(kind))


def buffer_of(given, readonly):
    """Return address and number of bytes of a buffer in a call, or None."""
    from gormapy.MPI.msgbuffer import message

    try:
        address, count, datatype, _ = message(given, readonly, 0, 0)
    except Exception:
        return None  # a specification with counts, or none
    return (address, count * datatype._extent) if address and count else None


def argument(place, args, kwargs):
    if place is None:
        return None
    return args[place[0]] if len(args) > place[0] else kwargs.get(place[1])


def _message(name):
    kind = _kind(name)
    # objects are pickled, which loads what it loads
    loads, stores = _BUFFERS[kind] if name[0].isupper() else (_NONE, _NONE)
    receives = kind != "send"
    synchronous = name.lower() in ("ssend", "issend")

    def make(method):
        def told(self, *args, **kwargs):
            site = here(name)
            for place, write in ((loads, False), (stores, True)):
                given = argument(place, args, kwargs)
                found = None if given is None else buffer_of(given, not write)
                if found:
                    accesses.told(site, *found, write)
            if receives:
                event(kinds.RECEIVING, 0, None)
            made = method(self, *args, **kwargs)
            if synchronous:
                _sent(self, made, args, kwargs)
            return made

        return told

    return make


def _sent(communicator, request, args, kwargs):
    """Tell the checker of a synchronous send, which is over when the receiver has begun to receive."""
    ranks = ranks_of[handle_of(communicator)]
    dest = argument((1, "dest"), args, kwargs)
    if ranks is None or type(dest) is not int or not 0 <= dest < len(ranks):
        return
    number = 0
    if request is not None:
        number = next(numbers)
        requests.started(request, number)
    event(kinds.SYNC_SENT, 0, None, ranks[dest], number)


def install(classes):
    """Replace the methods of communicators and matched messages."""
    from gormapy import MPI
    from gormapy.trace.calls import CALLS, MESSAGE

    for cls in classes:
        for name, category in CALLS["Comm"].items():
            if category == MESSAGE:
                replace(cls, name, _message(name))
    for name in ("Recv", "Irecv", "recv", "irecv"):
        replace(MPI.Message, name, lambda method: method)
