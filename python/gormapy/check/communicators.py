"""Communicators, as the checker knows them."""

from gormapy._ext import core

from . import kinds
from .wrapping import event

ranks_of = {}  # handle of a communicator -> its ranks in COMM_WORLD, None of an intercommunicator
_neighbors = {}  # handle -> ranks in COMM_WORLD whose data a neighborhood call gets


def handle_of(communicator):
    """Return the handle of a communicator, of which the checker has been told; 0 if there is none, or not any more."""
    handle = communicator._h
    if handle and handle not in ranks_of:
        identity = core.Identity(handle, 0)
        if not identity:
            return 0
        number, _, *ranks = (int(word) for word in identity.split())
        event(kinds.DEF_COMM, 0, None, handle, number, *ranks)
        ranks_of[handle] = None if communicator.Is_inter() else ranks
    return handle


def sources(name, communicator, handle):
    """Return the ranks whose data a neighborhood call gets; nothing for other calls."""
    if "eighbor" not in name or not ranks_of.get(handle):
        return ()
    if handle not in _neighbors:
        ranks = ranks_of[handle]
        edges = communicator.inedges
        sources = edges[0] if edges and isinstance(edges[0], (tuple, list)) else edges
        _neighbors[handle] = tuple(ranks[rank] for rank in sources if rank >= 0) or (ranks[communicator.rank],)
    return _neighbors[handle]
