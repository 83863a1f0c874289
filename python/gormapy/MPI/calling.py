"""How blocking, nonblocking and persistent collective calls use the core.

A blocking operation never matches a nonblocking one. Each class calls the core with the arguments of an operation,
preceded by the work of Python before and after it (request.Step) or None.
"""

from array import array

from gormapy._ext import core, fast

from .exception import check
from .request import Prequest, Request


class Blocking:
    """Blocking calls of the core: the operation has completed when they return."""

    @staticmethod
    def coll(step, *args):
        if step is None:
            fast.coll_blocking(*args)
            return
        step.begin()
        fast.coll_blocking(*args)
        step()

    @staticmethod
    def collv(step, *args):
        if step is None:
            fast.collv_blocking(*args)
            return
        step.begin()
        fast.collv_blocking(*args)
        step()

    neighbor = staticmethod(fast.neighbor_blocking)


class Nonblocking:
    """Nonblocking calls of the core: they return the request of the operation."""

    @staticmethod
    def coll(step, *args):
        if step is not None:
            step.begin()
        return Request._started(fast.coll(*args), step)

    @staticmethod
    def collv(step, *args):
        if step is not None:
            step.begin()
        return Request._started(fast.collv(*args), step)

    @staticmethod
    def neighbor(*args):
        return Request._started(fast.neighbor_parts(*args))


class Persistent:
    """Calls of the core that prepare a persistent operation: they return its request."""

    @staticmethod
    def coll(step, *args):
        *args, holders = args
        return Prequest._prepared(check(core.CollInit(*args)), holders, step)

    @staticmethod
    def collv(step, kind, comm, *args):
        *sides, root, holders = args
        flat, kept = [], []
        for address, counts, displs, datatype in (sides[:4], sides[4:]):
            flat.append(address)
            for integers in (counts, displs):
                kept.append(array("q", integers or ()))  # which the core copies
                flat += [len(kept[-1]), kept[-1].buffer_info()[0]]
            flat.append(datatype)
        return Prequest._prepared(check(core.CollvInit(kind, comm, *flat, root)), holders, step)

    @staticmethod
    def neighbor(*args):
        return Prequest._prepared(fast.neighbor_init(*args), args[-1])
