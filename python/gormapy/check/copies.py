"""Windows of the separate memory model: ``mpiexec --unkind=separate``.

In the separate model (MPI 4.1, section 12.4) a window has two copies. Operations of all ranks, also those on the own
part, access the public copy, and the program's loads and stores the private one. Here, the private copy of `Win.Create`
is the memory that the program has given, that of `Win.Allocate` what `tomemory` returns; the public copy is memory of
which the program has no address.

What has been stored goes into the public copy with Post, Fence, Unlock, Unlock_all and Sync of the owner, before these
calls do anything else; what operations have written goes into the private copy with Wait, Test, Fence, Lock, Lock_all
and Sync, at their end, and with Free: as late as section 12.7 allows. A third copy says what has changed in which of
the two: the bytes as they were when both were last the same.

Shared windows have one copy, and dynamic ones too, whose displacements are the addresses of the program's memory.
"""

import functools
import threading

import numpy as np

from gormapy import MPI
from gormapy.MPI.buffer import view

_copies = {}  # handle of a window -> _Copies
_BEFORE = "Post", "Fence", "Unlock", "Unlock_all", "Sync"
_PIECE = 1 << 18  # bytes that are compared at once
_AFTER = "Wait", "Test", "Fence", "Lock", "Lock_all", "Sync"


class _Copies:
    """The private and the public copy of this rank's part."""

    def __init__(self, address, nbytes, holder, public):
        self.address, self.holder = address, holder
        self._private = np.frombuffer(view(address, nbytes, False, holder), "B")
        self._public = public
        self._same = self._private.copy()
        self._changing = threading.Lock()

    def publish(self):
        """Take what the program has stored into the public copy."""
        self._take(self._private, self._public)

    def look(self):
        """Take what operations have written into the private copy."""
        self._take(self._public, self._private)

    def _take(self, source, destination):
        with self._changing:
            for start in range(0, len(source), _PIECE):
                piece = slice(start, start + _PIECE)
                same = self._same[piece]
                now = source[piece].copy()  # others may write meanwhile
                if np.array_equal(now, same):
                    continue
                changed = np.flatnonzero(now != same)
                if len(changed) == len(same):
                    destination[piece] = same[:] = now
                else:
                    destination[piece][changed] = same[changed] = now[changed]


def publish(win):
    """Take what the program has stored into a window's public copy."""
    if win._h in _copies:
        _copies[win._h].publish()


def look(win):
    """Take what operations have written into a window's private copy."""
    if win._h in _copies:
        _copies[win._h].look()


def _synchronizing(method, before, after):
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if before:
            publish(self)
        result = method(self, *args, **kwargs)
        if after and result is not False:  # Test
            look(self)
        return result

    return call


def _creating(create):
    def call(cls, flavor, address, nbytes, disp_unit, info, comm, memory):
        public = None
        if flavor == MPI.WIN_FLAVOR_CREATE and nbytes:
            private, holder = address, memory
            public = np.frombuffer(view(address, nbytes, False, memory), "B").copy()
            address, memory = public.ctypes.data, public
        win = create.__func__(cls, flavor, address, nbytes, disp_unit, info, comm, memory)
        if flavor == MPI.WIN_FLAVOR_ALLOCATE and nbytes:
            public = np.frombuffer(win.tomemory(), "B")
            holder = MPI.Alloc_mem(nbytes, info)
            np.frombuffer(holder, "B")[:] = public
            private = holder.address
        if public is not None:
            _copies[win._h] = _Copies(private, nbytes, holder, public)
            win._describe()
        return win

    return classmethod(call)


def _describing(describe):
    def call(self):
        describe(self)
        if self._h in _copies:
            self._take_over((_copies[self._h].address, *self._description[1:]))

    return call


def _freeing(free):
    @functools.wraps(free)
    def call(self):
        handle = self._h
        free(self)
        if handle in _copies:
            _copies.pop(handle).look()

    return call


def _showing(tomemory):
    @functools.wraps(tomemory)
    def call(self):
        base, size = self._checked()[:2]
        return view(base, size, False, _copies[self._h].holder) if self._h in _copies else tomemory(self)

    return call


def _querying(query):
    @functools.wraps(query)
    def call(self, rank):
        if self._h not in _copies:
            return query(self, rank)
        base, size, unit, _, own, _ = self._checked()
        if rank == own:
            return view(base, size, False, _copies[self._h].holder), unit
        return view(0, 0, False, self), query(self, rank)[1]

    return call


def _model(win):
    win._checked()
    return MPI.WIN_SEPARATE if win._h in _copies else MPI.WIN_UNIFIED


def _attributing(attribute):
    def call(self, keyval):
        value = attribute(self, keyval)
        return _model(self) if keyval == MPI.WIN_MODEL else value

    return call


def install():
    """Have windows keep two copies."""
    Win = MPI.Win
    Win._create = _creating(Win._create)
    for name, make in (
        ("_describe", _describing),
        ("Free", _freeing),
        ("tomemory", _showing),
        ("Shared_query", _querying),
        ("_attribute", _attributing),
    ):
        setattr(Win, name, make(getattr(Win, name)))
    Win.model = property(_model, doc=Win.model.__doc__)
    for name in {*_BEFORE, *_AFTER}:
        setattr(Win, name, _synchronizing(getattr(Win, name), name in _BEFORE, name in _AFTER))
