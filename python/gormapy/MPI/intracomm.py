"""Communicators of one group, with or without a topology, and of two groups."""

from .coll import Scans
from .comm import Comm, _subclasses
from .handle import named
from .missing import (
    CartcommCalls,
    DistgraphcommCalls,
    GraphcommCalls,
    IntercommCalls,
    IntracommCalls,
    TopocommCalls,
)
from .objcomm import ObjectScans


class Intracomm(Scans, ObjectScans, IntracommCalls, Comm):
    """Communicator of one group of processes."""


class Topocomm(TopocommCalls, Intracomm):
    """Communicator with a topology."""


class Cartcomm(CartcommCalls, Topocomm):
    """Communicator with a Cartesian grid."""


class Graphcomm(GraphcommCalls, Topocomm):
    """Communicator with a graph."""


class Distgraphcomm(DistgraphcommCalls, Topocomm):
    """Communicator with a distributed graph."""


class Intercomm(IntercommCalls, Comm):
    """Communicator of two groups of processes."""


_subclasses.update(Intracomm=Intracomm, Intercomm=Intercomm)


def _predefined(handle, name):
    comm = Intracomm()
    comm._h = handle
    named("Comm", handle, name)
    return comm


COMM_WORLD = _predefined(1, "COMM_WORLD")
COMM_SELF = _predefined(2, "COMM_SELF")
