"""What the checker is told of synchronization on windows."""

import threading

from . import kinds
from .known import gone, windows
from .sites import here
from .wrapping import event, misuse, replace

_FLUSHES = kinds.FLUSH, kinds.FLUSH_LOCAL


def _sync(call, kind, words=lambda: (-1, 0), begins=False, ends=True, completes=False):
    """Make the replacement of a method that synchronizes.

    `words` returns target, assertion and group of its arguments.
    """

    def make(method):
        def told(self, *args, **kwargs):
            site = here(call)
            known = windows.get(self._h)
            try:
                said = words(self, known, *args, **kwargs) if known else None
            except Exception:
                said = None  # the method has a better error
            handle = self._h
            if said and begins:
                event(kinds.SYNC, site, None, handle, kind, kinds.BEGINS, *said)
            try:
                made = method(self, *args, **kwargs)
            except BaseException as error:
                if said and begins:
                    event(kinds.SYNC, site, None, handle, kind, kinds.FAILED, *said)
                misuse(error, call, site, handle, said[0] if said else -1)
                raise
            unknown = ()
            if said and completes:
                target = said[0] if said[0] >= 0 else None
                unknown = known.complete(target, thread=threading.get_ident() if kind in _FLUSHES else None)
            if said and ends and made is not False:
                event(kinds.SYNC, site, None, handle, kind, kinds.ENDED, *said)
            gone(unknown)
            return made

        return told

    return make


def _all(win, known, assertion=0):
    return -1, int(assertion)


def _none(win, known):
    return -1, 0


def _one(win, known, rank):
    return known.ranks[rank], 0


def _lock(win, known, rank, lock_type=None, assertion=0):
    from gormapy import MPI

    exclusive = lock_type is None or lock_type == MPI.LOCK_EXCLUSIVE
    return known.ranks[rank], int(assertion) | exclusive


def _grouped(win, known, group, assertion=0):
    from gormapy import MPI

    world = MPI.COMM_WORLD.Get_group()
    ranks = MPI.Group.Translate_ranks(group, None, world)
    world.Free()
    return -1, int(assertion), *ranks


def install():
    """Replace the methods of Win that synchronize."""
    from gormapy import MPI

    for name, make in {
        "Fence": _sync("Fence", kinds.FENCE, _all, begins=True, completes=True),
        "Lock": _sync("Lock", kinds.LOCK, _lock),
        "Unlock": _sync("Unlock", kinds.UNLOCK, _one, begins=True, ends=False, completes=True),
        "Lock_all": _sync("Lock_all", kinds.LOCK_ALL, _all),
        "Unlock_all": _sync("Unlock_all", kinds.UNLOCK_ALL, _none, begins=True, ends=False, completes=True),
        "Flush": _sync("Flush", kinds.FLUSH, _one, completes=True),
        "Flush_all": _sync("Flush_all", kinds.FLUSH, _none, completes=True),
        "Flush_local": _sync("Flush_local", kinds.FLUSH_LOCAL, _one, completes=True),
        "Flush_local_all": _sync("Flush_local_all", kinds.FLUSH_LOCAL, _none, completes=True),
        "Post": _sync("Post", kinds.POST, _grouped, begins=True, ends=False),
        "Start": _sync("Start", kinds.START, _grouped, begins=True),
        "Complete": _sync("Complete", kinds.COMPLETE, _none, begins=True, completes=True),
        "Wait": _sync("Wait", kinds.WAIT, _none, begins=True),
        "Test": _sync("Test", kinds.WAIT, _none),
        "Sync": _sync("Sync", kinds.WIN_SYNC, _none),
    }.items():
        replace(MPI.Win, name, make)
