"""What the checker is told of messages. The core tells it who has received which (package p2p)."""

from . import accesses, buffers, kinds, requests
from .communicators import handle_of, ranks_of
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
    name = name.lower()
    return next(kind for kind in ("sendrecv_replace", "sendrecv", "send", "recv", "probe") if name.endswith(kind))


def _message(name):
    kind = _kind(name)
    # objects are pickled, which loads what it loads
    loads, stores = _BUFFERS[kind] if name[0].isupper() else (_NONE, _NONE)
    receives = kind != "send"
    synchronous = name.lower() in ("ssend", "issend")

    def make(method):
        def told(self, *args, **kwargs):
            for place, write in ((loads, False), (stores, True)):
                accesses.told(name, place, buffers.at(place, args, kwargs, write), write)
            if receives:
                event(kinds.RECEIVING, 0, None)
            made = method(self, *args, **kwargs)
            if synchronous:
                _sent(self, made, args, kwargs)
            return made

        return told

    return make


def _matched(name):
    """Make the replacement of a receive of a matched message, of which the core tells."""

    def make(method):
        def told(self, *args, **kwargs):
            if name[0].isupper():
                accesses.told(name, _BUFFER, buffers.at(_BUFFER, args, kwargs, True), True)
            return method(self, *args, **kwargs)

        return told

    return make


def _prepared(name):
    """Make the replacement of a method that makes a persistent request: its buffer is accessed when it is started."""

    def make(method):
        def told(self, *args, **kwargs):
            made = method(self, *args, **kwargs)
            write = name == "Recv_init"
            places = [(buffers.at(_BUFFER, args, kwargs, write), write)]
            receiver = _receiver(self, args, kwargs) if name == "Ssend_init" else None
            requests.persistent[made._h] = requests.Prepared(None, "", receiver, places)
            return made

        return told

    return make


def _sent(communicator, request, args, kwargs):
    """Tell the checker of a synchronous send, which is over when the receiver has begun to receive."""
    receiver = _receiver(communicator, args, kwargs)
    if receiver is None:
        return
    number = 0
    if request is not None:
        number = next(numbers)
        requests.started(request, number)
    event(kinds.SYNC_SENT, 0, None, receiver, number)


def _receiver(communicator, args, kwargs):
    """Return the rank in COMM_WORLD of the receiver of a send, None if it is not known."""
    ranks = ranks_of.get(handle_of(communicator))
    dest = buffers.argument((1, "dest"), args, kwargs)
    return ranks[dest] if ranks is not None and type(dest) is int and 0 <= dest < len(ranks) else None


def install(classes):
    """Replace the methods of communicators and matched messages."""
    from gormapy import MPI
    from gormapy.trace.calls import CALLS, MESSAGE

    for cls in classes:
        for name, category in CALLS["Comm"].items():
            if category == MESSAGE:
                replace(cls, name, _prepared(name) if name.endswith("_init") else _message(name))
    for name in ("Recv", "Irecv", "recv", "irecv"):
        replace(MPI.Message, name, _matched(name))
