"""What the checker is told of collective calls."""

from gormapy._ext import core

from . import accesses, buffers, kinds, requests
from .communicators import handle_of, ranks_of, sources
from .sites import here
from .wrapping import REFUSING, event, has_ended, numbers, replace

# The place of the root among the arguments
_ROOTS = {"Bcast": 1, "Gather": 2, "Gatherv": 2, "Scatter": 2, "Scatterv": 2, "Reduce": 3}
_ROOTS_OF_OBJECTS = {"bcast": 1, "gather": 1, "scatter": 1, "reduce": 2}
# Making one of these is no collective call of the communicator, or returns a request.
_NOT_BLOCKING = {
    "Free",
    "Disconnect",
    "Create_group",
    "Create_intercomm",
    "Create_from_groups",
    "Idup",
    "Idup_with_info",
}

_DIFFERENT = "the ranks do not call the same collective"
_UNEQUAL = "bytes for one rank, the receive buffer"  # of the two buffers of this rank


def _root(name, args, kwargs, handle):
    ranks = ranks_of.get(handle)
    place = _ROOTS.get(name, _ROOTS_OF_OBJECTS.get(name))
    if place is None or ranks is None:
        return -1
    root = kwargs.get("root", args[place] if len(args) > place else 0)
    return ranks[root] if type(root) is int and 0 <= root < len(ranks) else -1


def _buffers(name, communicator, args, kwargs, rooted):
    """Return the buffers of a collective call: places of arguments, bytes, and whether they are stored."""
    if name == "Bcast":
        places = [((0, "buf"), not rooted)]
    else:
        places = [((0, "sendbuf"), False), ((1, "recvbuf"), True)]
        if name in ("Gather", "Gatherv", "Reduce") and not rooted:
            places.pop()
        if name in ("Scatter", "Scatterv") and not rooted:
            places.pop(0)
    return [
        (place, buffers.of_collective(name, communicator, place, args, kwargs, write), write) for place, write in places
    ]


def _blocking(name):
    def make(method):
        def told(self, *args, **kwargs):
            site = here(name)
            handle = handle_of(self)
            root = _root(name, args, kwargs, handle)
            if name[0].isupper():
                for buffer in _buffers(name, self, args, kwargs, root == core.CommRank(1)):
                    accesses.told(name, *buffer)
            event(kinds.COLL, site, name, handle, 0, kinds.BEGINS, root, *sources(name, self, handle))
            try:
                made = method(self, *args, **kwargs)
            except BaseException as error:
                phase = kinds.REFUSED if _is_refused(name, error, args, kwargs) else kinds.FAILED
                event(kinds.COLL, site, name, handle, 0, phase, root)
                _differs(error, site)
                raise
            event(kinds.COLL, site, name, handle, 0, kinds.ENDED, root)
            return made

        return told

    return make


def _is_refused(name, error, args, kwargs):
    """Return whether an error is about the arguments of a call, which then has done nothing."""
    from gormapy import MPI

    if isinstance(error, MPI.Exception):
        kind, text = error.Get_error_class(), str(error)
        classes = (MPI.ERR_ROOT, MPI.ERR_COUNT, MPI.ERR_TYPE, MPI.ERR_OP, MPI.ERR_ARG, MPI.ERR_DIMS, MPI.ERR_GROUP)
        local = kind == MPI.ERR_ROOT if name[0].islower() else kind in classes
        if not (local or (kind == MPI.ERR_TRUNCATE and _UNEQUAL in text)) or _DIFFERENT in text:
            return False
    elif not isinstance(error, REFUSING) or name[0].islower():  # calls for objects pickle and unpickle
        return False
    # a function of the program may have raised it
    return all(op.is_predefined for op in (*args, *kwargs.values()) if isinstance(op, MPI.Op))


def _differs(error, site):
    """Tell the checker if ranks make one call with arguments that do not fit together, or have ended without it.

    Different calls and roots it finds itself.
    """
    from gormapy import MPI

    if not isinstance(error, MPI.Exception):
        return
    kind, text = error.Get_error_class(), str(error)
    if kind in (MPI.ERR_OP, MPI.ERR_TRUNCATE, MPI.ERR_TYPE) and _DIFFERENT in text:
        text = text[text.index(_DIFFERENT) :]
    elif not has_ended(error):
        return
    event(kinds.MISUSE, site, text[:2000], kinds.CLASS["collective-mismatch"], 0, -1)


def _nonblocking(name, base):
    def make(method):
        def told(self, *args, **kwargs):
            site = here(name)
            handle = handle_of(self)
            number = next(numbers)
            root = _root(base, args, kwargs, handle)
            for buffer in _buffers(base, self, args, kwargs, root == core.CommRank(1)):
                accesses.told(name, *buffer)
            event(kinds.COLL, site, name, handle, number, kinds.BEGINS, root, *sources(name, self, handle))
            try:
                made = method(self, *args, **kwargs)
            except BaseException as error:
                phase = kinds.REFUSED if _is_refused(base, error, args, kwargs) else kinds.FAILED
                event(kinds.COLL, site, name, handle, number, phase, root)
                raise
            request = made[1] if isinstance(made, tuple) else made
            if request._h:
                requests.started(request, number)
            return made

        return told

    return make


def _prepared(name, base):
    def make(method):
        def told(self, *args, **kwargs):
            handle = handle_of(self)
            made = method(self, *args, **kwargs)
            root = _root(base, args, kwargs, handle)
            places = [buffer[1:] for buffer in _buffers(base, self, args, kwargs, root == core.CommRank(1))]
            requests.persistent[made._h] = requests.Prepared(handle, f"I{base.lower()}", root, places)
            return made

        return told

    return make


def _starting(method):
    def told(self):
        _begun(self, "Start")
        return method(self)

    return told


def _starting_all(method):
    def told(cls, requests):
        listed = list(requests) if hasattr(requests, "__iter__") else []
        for request in listed:
            if isinstance(request, cls):
                _begun(request, "Startall")
        return method(cls, listed or requests)

    return told


def _begun(request, call):
    """Tell the checker that a persistent request is started."""
    made = requests.persistent.get(request._h)
    if not made:
        return
    for buffer, write in made.buffers:
        accesses.told(call, None, buffer, write)
    if made.communicator is not None or made.root is not None:
        number = next(numbers)
        requests.started(request, number)
        if made.communicator is None:
            event(kinds.SYNC_SENT, 0, None, made.root, number)
        else:
            event(kinds.COLL, here(call), made.name, made.communicator, number, kinds.BEGINS, made.root)


def install(classes):
    """Replace the methods of communicators."""
    from gormapy import MPI
    from gormapy.trace.calls import CALLS, COLLECTIVE, OBJECT

    for name, category in CALLS["Comm"].items():
        if name.endswith("_init") and category == COLLECTIVE:
            make = _prepared(name, name.removesuffix("_init"))
        elif name[0] == "I" and category == COLLECTIVE:
            make = _nonblocking(name, name[1:].capitalize())
        elif category == COLLECTIVE or (category == OBJECT and name not in _NOT_BLOCKING):
            make = _blocking(name)
        else:
            continue
        for cls in classes:
            replace(cls, name, make)
    replace(MPI.Prequest, "Start", _starting)
    replace(MPI.Prequest, "Startall", _starting_all)
