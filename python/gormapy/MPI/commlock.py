"""What calls in Python keep for a communicator: locks, and communicators of their own.

Collectives of objects may take two operations of the core. Threads that call the same one on a communicator at the same
time must not mix them, so each kind has a lock there. The names are mpi4py's, whose
`mpi4py.util.pkl5` uses them too.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gormapy._ext import core

from .exception import check
from .handle import expect

if TYPE_CHECKING:
    from collections.abc import Hashable
    from threading import Lock

    from .comm import Comm
    from .intercomm import Intercomm
    from .intracomm import Intracomm

_tables = {}  # handle of a communicator -> its locks by key
_contexts = {}  # handle of a communicator -> [duplicate, next tag], of two groups also what _commctx_inter returns more
_changes = threading.Lock()


def _comm_lock(comm: Comm, key: Hashable | None = None) -> Lock:
    """Return the lock of a communicator that has a key."""
    table = _comm_lock_table(comm)
    try:
        return table[key]
    except KeyError:
        return table.setdefault(key, threading.Lock())


def _comm_lock_table(comm: Comm) -> dict[Hashable, Lock]:
    """Return the locks of a communicator by their keys."""
    expect("Comm", comm, "the locks of a communicator")
    comm._checked()
    try:
        return _tables[comm._h]
    except KeyError:
        check(core.CommSize(comm._h))  # another object may have freed it, and nobody would forget the table
        return _tables.setdefault(comm._h, {})


def _commctx_intra(comm: Intracomm) -> tuple[Intracomm, int]:
    """Return a duplicate of an intracommunicator, always the same one, and a tag."""
    _groups("_commctx_intra", comm, 1)
    with _comm_lock(comm, "@commctx_intra"):
        if comm._h not in _contexts:
            _contexts[comm._h] = [comm.Dup(), 0]
        context = _contexts[comm._h]
        return context[0], _next_tag(context)


def _commctx_inter(comm: Intercomm) -> tuple[Intercomm, int, Intracomm, bool]:
    """Return a duplicate of an intercommunicator, a tag, the local group's communicator, and whether it is first."""
    _groups("_commctx_inter", comm, 2)
    with _comm_lock(comm, "@commctx_inter"):
        if comm._h not in _contexts:
            both = comm.Merge(False)
            first = both.rank == comm.rank  # the other group has larger ranks there than in its own group
            local = both.Split(0 if first else 1, comm.rank)
            both.Free()
            _contexts[comm._h] = [comm.Dup(), 0, local, first]
        context = _contexts[comm._h]
        return context[0], _next_tag(context), context[2], context[3]


def _groups(call, comm, wanted):
    expect("Comm", comm, call)
    if comm and wanted != 1 + comm._two_groups:
        raise TypeError(f"{call}: expecting an {('intra', 'inter')[wanted - 1]}communicator")


def _next_tag(context):
    tag = context[1]
    context[1] = (tag + 1) & 0x7FFFFFFF
    return tag


def forget(comm):
    """Free what is kept for a communicator, which is about to be freed. Collective if its duplicate was asked for."""
    _tables.pop(comm._h, None)
    made = _contexts.pop(comm._h, None)
    if made:
        made[0].Free()
        if len(made) > 2:
            made[2].Free()
