"""What the checker is told of collective calls."""

from gormapy._ext import core

from . import accesses, kinds, requests
from .communicators import handle_of, ranks_of, sources
from .messages import argument, buffer_of
from .sites import here
from .wrapping import event, numbers, replace

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


def _root(name, args, kwargs, handle):
    ranks = ranks_of.get(handle)
    place = _ROOTS.get(name, _ROOTS_OF_OBJECTS.get(name))
    if place is None or ranks is None:
        return -1
    root = kwargs.get("root", args[place] if len(args) > place else 0)
    return ranks[root] if type(root) is int and 0 <= root < len(ranks) else -1


def _collective_buffers(name, args, kwargs, rooted, site):
    """Tell the checker which buffers a collective call loads and stores."""
    if name == "Bcast":
        places = [((0, "buf"), not rooted)]
    else:
        places = [((0, "sendbuf"), False), ((1, "recvbuf"), True)]
        if name in ("Gather", "Gatherv", "Reduce") and not rooted:
            places.pop()
        if name in ("Scatter", "Scatterv") and not rooted:
            places.pop(0)
    for place, write in places:
        given = argument(place, args, kwargs)
        found = None if given is None else buffer_of(given, not write)
        if found:
            accesses.told(site, *found, write)


def _blocking(name):
    def make(method):
        def told(self, *args, **kwargs):
            site = here(name)
            handle = handle_of(self)
            root = _root(name, args, kwargs, handle)
            if name[0].isupper():
                _collective_buffers(name, args, kwargs, root == core.CommRank(1), site)
            event(kinds.COLL, site, name, handle, 0, kinds.BEGINS, root, *sources(name, self, handle))
            try:
                made = method(self, *args, **kwargs)
            except BaseException:
                event(kinds.COLL, site, name, handle, 0, kinds.FAILED, root)
                raise
            event(kinds.COLL, site, name, handle, 0, kinds.ENDED, root)
            return made

        return told

    return make


def _nonblocking(name, base):
    def make(method):
        def told(self, *args, **kwargs):
            site = here(name)
            handle = handle_of(self)
            number = next(numbers)
            root = _root(base, args, kwargs, handle)
            _collective_buffers(base, args, kwargs, root == core.CommRank(1), site)
            event(kinds.COLL, site, name, handle, number, kinds.BEGINS, root, *sources(name, self, handle))
            made = method(self, *args, **kwargs)
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
            requests.persistent[made._h] = handle, f"I{base.lower()}", _root(base, args, kwargs, handle)
            return made

        return told

    return make


def _starting(method):
    def told(self):
        made = requests.persistent.get(self._h)
        if made:
            handle, name, root = made
            number = next(numbers)
            requests.started(self, number)
            event(kinds.COLL, here("Start"), name, handle, number, kinds.BEGINS, root)
        return method(self)

    return told


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
