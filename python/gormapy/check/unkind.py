"""Operations that take effect as late as the standard allows: ``mpiexec --unkind``.

Shared memory is kind: a Put is over when its call returns. A program that relies on that is wrong, and works. Here

- operations are done by the call that completes them (Flush, Unlock, Fence, Complete, Wait of their request), often
  after a pause in which the other ranks go on, from what their buffers have then, in any order that the standard
  allows: accumulates to one target stay in order, others do not;
- after Flush_local the buffers of puts and accumulates are free, and their effect still comes later;
- Lock and Start return before the lock is there, and before the target has called Post;
- a standard send waits until its receive has begun.

The order follows from a seed, so that a run that fails can be had again. Arguments are checked when an operation is
called, but what only the target knows, such as whether a place is in its part, when it is done.

With ``--check`` the checker is told of the calls as the program makes them. Then Lock, Start and standard sends are as
they are: the checker learns from the ends of these calls which of two locks came first, and when a message was sent.
"""

import ctypes
import functools
import random
import threading
import time

from .wrapping import Layer, replace

_LOCAL = ("Flush_local", "Flush_local_all")
_COMPLETING = {"Flush": 1, "Flush_all": 0, "Unlock": 1, "Unlock_all": 0, "Fence": 0, "Complete": 0, "Free": 0}
_COMPLETING |= {"Flush_local": 1, "Flush_local_all": 0}
_OPERATIONS = ("Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap")
_RANK = {"Get_accumulate": 2, "Fetch_and_op": 2, "Compare_and_swap": 3, "Rget_accumulate": 2}  # its place; else 1
_SENDS = {"Send": "Ssend", "Isend": "Issend", "send": "ssend", "isend": "issend", "Send_init": "Ssend_init"}

_SHARED = 4  # MPI.WIN_FLAVOR_SHARED
_ALL_OF, _SHARE, _LONGEST = 100, 0.02, 0.01  # pauses: of all first ones, then a share; seconds

_order = random.Random()
_pauses = 0
_windows = {}  # handle -> _Late
_requests = {}  # id of a request -> (the request, its window, its operation)
_changing = threading.RLock()
_replace = functools.partial(replace, layer=Layer())  # the checker may stand before it


class _Late:
    """What is still to be done on a window."""

    def __init__(self):
        self.operations = []
        self.locks = {}  # target -> a Lock that is not there yet
        self.start = None  # a Start that has not been made

    def free(self):
        """Report whether nothing has been put off."""
        return not self.operations and not self.locks and self.start is None


class _Operation:
    """One operation: what does it, and whether its effect has a place among those of other accumulates."""

    def __init__(self, name, method, win, args, kwargs):
        self.name, self.method, self.win = name, method, win
        self.args, self.kwargs = list(args), kwargs
        place = _RANK.get(name, 1)
        self.rank = args[place] if len(args) > place else kwargs.get("target_rank")
        self.ordered = "ccumulate" in name or name in ("Fetch_and_op", "Compare_and_swap")

    def do(self):
        self.method(self.win, *self.args, **self.kwargs)

    def reads_only(self):
        """Report whether it fills no buffer of this rank."""
        return self.name in ("Put", "Accumulate")

    def take_origin(self):
        """Go on with a copy of the origin: the program may change its own."""
        from gormapy.MPI.msgbuffer import message

        origin = self.args[0] if self.args else self.kwargs["origin"]
        address, count, datatype, _ = message(origin, True, self.rank, 0)
        extent = datatype._true_extent + abs(count - 1) * datatype._extent if count else 0
        if not extent or datatype._true_lb < 0:
            return
        copy = bytearray(datatype._true_lb + extent)
        copy[:] = ctypes.string_at(address, len(copy))
        taken = [copy, count, datatype]
        if self.args:
            self.args[0] = taken
        else:
            self.kwargs["origin"] = taken


def _late(win):
    with _changing:
        return _windows.setdefault(win._h, _Late())


def _begin(win, late, rank=None):
    """Make the Lock and the Start that were put off; of a lock, that of one target or of all."""
    for target in list(late.locks) if rank is None else [rank] if rank in late.locks else []:
        late.locks.pop(target)()
    if late.start is not None:
        start, late.start = late.start, None
        start()


def _pause():
    """Let the other ranks go on: at first each time, later now and then."""
    global _pauses
    _pauses += 1
    if _pauses <= _ALL_OF or _order.random() < _SHARE:
        time.sleep((1 + _order.random()) / 2 * _LONGEST)


def _do(win, late, rank=None):
    """Do the operations on one target, or on all."""
    _pause()
    with _changing:
        chosen = [o for o in late.operations if rank is None or o.rank == rank]
        late.operations = [o for o in late.operations if rank is not None and o.rank != rank]
    _begin(win, late, rank)
    keys = sorted(_order.random() for o in chosen if o.ordered)
    order = [(keys.pop(0) if o.ordered else _order.random(), number) for number, o in enumerate(chosen)]
    for _, number in sorted(order):
        chosen[number].do()


def _operation(name):
    def make(method):
        def told(self, *args, **kwargs):
            operation = _Operation(name, method, self, args, kwargs)
            late = _late(self)
            size = self._description[5] if self._description else 0
            if type(operation.rank) is not int or not 0 <= operation.rank < size or not _fits(operation):
                return method(self, *args, **kwargs)  # it does nothing, or has an error
            if operation.rank not in late.locks and late.start is None:
                _originals["Put"](self, bytearray(), operation.rank)  # is there an epoch?
            with _changing:
                late.operations.append(operation)
            return None

        return told

    return make


def _fits(operation):
    """Report whether the arguments of an operation can be parsed."""
    from .operations import _parsers

    access, fetching, fetch, swap = _parsers()
    parse = {
        "Put": access(True),
        "Get": access(False),
        "Accumulate": access(True),
        "Get_accumulate": fetching,
        "Fetch_and_op": fetch,
        "Compare_and_swap": swap,
    }[operation.name]
    try:
        parse(*operation.args, **operation.kwargs)
    except Exception:
        return False
    return True


_originals = {}


def _requested(name):
    """Put off an operation with a request until that is waited for: it has the request of one that does nothing."""

    def make(method):
        def told(self, *args, **kwargs):
            base = name[1:].capitalize()
            operation = _Operation(base, _originals[base], self, args, kwargs)
            late = _late(self)
            size = self._description[5] if self._description else 0
            if type(operation.rank) is not int or not 0 <= operation.rank < size or not _fits(operation):
                return method(self, *args, **kwargs)
            _begin(self, late, operation.rank)
            request = _originals["Rput"](self, bytearray(), operation.rank)
            with _changing:
                late.operations.append(operation)
                _requests[id(request)] = request, late, operation
            return request

        return told

    return make


def _completing(name, has_rank):
    def make(method):
        def told(self, *args, **kwargs):
            late = _windows.get(self._h)
            if late is None or late.free():
                return method(self, *args, **kwargs)
            rank = (args[0] if args else kwargs.get("rank")) if has_rank else None
            if name in _LOCAL:
                _do_locally(self, late, rank)
            else:
                _do(self, late, rank)
            return method(self, *args, **kwargs)

        return told

    return make


def _do_locally(win, late, rank):
    """Fill the buffers of this rank, and take over those that are read."""
    with _changing:
        chosen = [o for o in late.operations if rank is None or o.rank == rank]
    if any(not o.reads_only() for o in chosen):
        _do(win, late, rank)
        return
    _begin(win, late, rank)
    for operation in chosen:
        operation.take_origin()


def _locking(method):
    from . import copies

    def told(self, rank, *args, **kwargs):
        late = _late(self)
        base = self._description
        # a part that this rank can load and store without MPI: its own, and those of a shared window
        direct = base and (rank == base[4] or base[3] == _SHARED)
        if direct or not late.free() or type(rank) is not int:
            return method(self, rank, *args, **kwargs)
        late.locks[rank] = lambda: method(self, rank, *args, **kwargs)
        copies.look(self)
        return None

    return told


def _starting(method):
    def told(self, group, *args, **kwargs):
        late = _late(self)
        if not late.free():
            return method(self, group, *args, **kwargs)
        group = group.Dup() if hasattr(group, "Dup") else group  # the program may free its own
        late.start = lambda: method(self, group, *args, **kwargs)
        return None

    return told


def _complete(listed):
    for request in listed:
        entry = _requests.pop(id(request), None)
        if entry is None:
            continue
        _, late, operation = entry
        with _changing:
            if operation not in late.operations:
                continue
            late.operations.remove(operation)
        operation.do()
        if not operation.reads_only():
            _originals["Flush"](operation.win, operation.rank)


def _waiting_one(method):
    def told(self, *args, **kwargs):
        _complete([self])
        return method(self, *args, **kwargs)

    return told


def _waiting(method):
    def told(cls, requests, *args, **kwargs):
        requests = list(requests)  # it may be a generator
        _complete(requests)
        return method(cls, requests, *args, **kwargs)

    return told


def _instead(other):
    return lambda method: other


def install(setting, rank, checked):
    """Replace the methods of Win, Request and Comm; `setting` is SEED, or SEED,separate; checked: with ``--check``."""
    from gormapy import MPI

    from . import copies

    seed, _, model = setting.partition(",")
    if model not in ("", "separate"):
        raise ValueError(f"GORMAPY_UNKIND: expecting a seed, or SEED,separate; got {setting!r}")
    if model and checked:
        raise ValueError(f"GORMAPY_UNKIND={setting}: windows with two copies can't be checked; the seed alone can")
    if model:
        copies.install()
    _order.seed(f"{seed} {rank}")
    for name in (*_OPERATIONS, "Rput", "Flush"):
        _originals[name] = getattr(MPI.Win, name)
    for name in _OPERATIONS:
        _replace(MPI.Win, name, _operation(name))
    for name in ("Rput", "Rget", "Raccumulate", "Rget_accumulate"):
        _replace(MPI.Win, name, _requested(name))
    for name, has_rank in _COMPLETING.items():
        _replace(MPI.Win, name, _completing(name, has_rank))
    for name in ("Wait", "Test", "wait", "test"):
        _replace(MPI.Request, name, _waiting_one)
    for name in ("Waitany", "Testany", "Waitall", "Testall", "Waitsome", "Testsome"):
        _replace(MPI.Request, name, _waiting)
        _replace(MPI.Request, name.lower(), _waiting)
    if checked:
        return
    _replace(MPI.Win, "Lock", _locking)
    _replace(MPI.Win, "Start", _starting)
    for name, synchronous in _SENDS.items():
        _replace(MPI.Comm, name, _instead(getattr(MPI.Comm, synchronous)))
