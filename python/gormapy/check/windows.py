"""What the checker is told of windows: how they are made and freed, and memory that is attached to them."""

import json

from gormapy._ext import core

from . import accesses, communicators, kinds
from .known import Known, windows
from .sites import here
from .wrapping import REFUSING, event, misuse, replace, wrapped

_MOST_RETIRED = 64 << 20  # bytes

_near = {}  # rank of COMM_WORLD -> whether it is reached by what can use watched memory: see Known.near
_retired = []  # memory of windows that are freed: what the program still does to it is an error
_retired_bytes = 0


def _creating(call):
    def make(method):
        def told(cls, *args, **kwargs):
            from gormapy import MPI

            site = here(call)
            comm = kwargs.get("comm", next((a for a in args if isinstance(a, MPI.Comm)), MPI.COMM_SELF))
            if not isinstance(comm, MPI.Comm):
                return method(cls, *args, **kwargs)  # which has a better error
            handle = communicators.handle_of(comm)
            if any(rank >= MPI.COMM_WORLD.size for rank in communicators.ranks_of.get(handle) or ()):
                return method(cls, *args, **kwargs)  # a process that was spawned is not checked
            event(kinds.COLL, site, f"Win.{call}", handle, 0, kinds.BEGINS, -1)
            try:
                made = method(cls, *args, **kwargs)
            except BaseException as error:
                refused = isinstance(error, REFUSING)
                if isinstance(error, MPI.Exception):  # the size and unit of this rank, or all ranks have the error
                    refused = error.Get_error_class() in (MPI.ERR_SIZE, MPI.ERR_DISP)
                phase = kinds.REFUSED if refused else kinds.FAILED
                event(kinds.COLL, site, f"Win.{call}", handle, 0, phase, -1)
                misuse(error, call, site)
                raise
            _define(made, site)
            comm.Barrier()  # all ranks have told the checker of their parts before one of them is accessed
            event(kinds.COLL, site, f"Win.{call}", handle, 0, kinds.ENDED, -1)
            return made

        return told

    return make


def _is_near(rank):
    if rank not in _near:
        _near[rank] = json.loads(core.PeerInfo(rank)).get("transport") in ("self", "shm", "tcp")
    return _near[rank]


def _define(win, site):
    """Tell the checker of a window."""
    from gormapy import MPI
    from gormapy.MPI.exception import fields

    number, _, *ranks = (int(word) for word in core.Identity(win._h, 1).split())
    base, nbytes, unit, flavor, _, _ = win._description
    members = -win._h
    event(kinds.DEF_COMM, 0, None, members, -number - 1, *ranks)
    event(kinds.DEF_WIN, site, None, win._h, number, flavor, base, nbytes, unit, members)
    known = windows[win._h] = Known(win._h, ranks, all(_is_near(rank) for rank in ranks))
    if not known.near:
        return
    if flavor == MPI.WIN_FLAVOR_SHARED:
        for rank, number in enumerate(ranks):
            address, part, _ = fields(core.WinShared(win._h, rank))
            if part and rank != win._description[4]:
                event(kinds.DEF_SHARED, 0, None, win._h, number, address, part)
                if accesses.watch(address, part):
                    known.watched.append((address, part))
    own = flavor in (MPI.WIN_FLAVOR_ALLOCATE, MPI.WIN_FLAVOR_SHARED)
    if nbytes and (accesses.watch(base, nbytes) if own else accesses.watch_own(base, nbytes)):
        known.watched.append((base, nbytes))
    elif not own:
        accesses.look(site, (base, nbytes))


def _retire(win, known):
    """Go on to watch a freed window's memory, if it is its own and small; return whether it stays."""
    global _retired_bytes
    own = win.flavor in (2, 4)  # Win.Allocate and Win.Allocate_shared
    stays = False
    for place in known.watched:
        if own and _retired_bytes + place[1] <= _MOST_RETIRED:
            if not _retired or _retired[-1][0] is not known:
                _retired.append((known, win.tomemory()))
            stays = True
            _retired_bytes += place[1]
        else:
            accesses.unwatch(*place)
    known.watched.clear()
    return stays


def _freeing(method):
    def told(self):
        site = here("Free")
        handle = self._h
        known = windows.get(handle)
        stays = False
        if known:
            event(kinds.SYNC, site, None, handle, kinds.FREE, kinds.BEGINS, -1, 0)
            event(kinds.COLL, site, "Win.Free", -handle, 0, kinds.BEGINS, -1)
            stays = _retire(self, known)
        try:
            method(self)
        except BaseException as error:
            if known:
                event(kinds.COLL, site, "Win.Free", -handle, 0, kinds.FAILED, -1)
            misuse(error, "Free", site, handle)
            raise
        if known:
            event(kinds.COLL, site, "Win.Free", -handle, 0, kinds.ENDED, -1)
            event(kinds.SYNC, site, None, handle, kinds.FREE, kinds.ENDED, -1, int(stays))
            known.close()
            windows.pop(handle, None)

    return told


def _attaching(call, attached):
    def make(method):
        def told(self, memory):
            from gormapy.MPI.win import _memory_of

            site = here(call)
            try:
                address, nbytes, _ = _memory_of(memory)
            except Exception:
                address = nbytes = 0
            if address and not attached:
                event(kinds.ATTACH, site, None, self._h, address, nbytes, 0)
                known = windows[self._h]
                if (address, nbytes) in known.watched:
                    known.watched.remove((address, nbytes))
                    accesses.unwatch(address, nbytes)
            try:
                method(self, memory)
            except BaseException as error:
                misuse(error, call, site, self._h)
                raise
            if address and attached:
                event(kinds.ATTACH, site, None, self._h, address, nbytes, 1)
                known = windows[self._h]
                if known.near and accesses.watch_own(address, nbytes):
                    known.watched.append((address, nbytes))
                accesses.look(site, (address, nbytes))

        return told

    return make


def _freeing_memory(method):
    def told(mem):
        site = here("Free_mem")
        try:
            address, nbytes = mem.address, mem.nbytes
        except AttributeError:
            address = nbytes = 0
        if nbytes:
            event(kinds.GONE, site, None, address, nbytes)
        return method(mem)

    return told


def install():
    """Replace the methods that make and free windows, and memory of windows."""
    from gormapy import MPI

    for name in ("Create", "Allocate", "Allocate_shared", "Create_dynamic"):
        replace(MPI.Win, name, _creating(name))
    replace(MPI.Win, "Free", _freeing)
    replace(MPI.Win, "Attach", _attaching("Attach", True))
    replace(MPI.Win, "Detach", _attaching("Detach", False))
    MPI.Free_mem = wrapped(MPI.Free_mem, _freeing_memory(MPI.Free_mem))
