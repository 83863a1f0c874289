"""Operations that take effect as late as the standard allows: ``mpiexec --unkind``.

Shared memory is kind: a Put is over when its call returns. A program that relies on that is wrong, and works. Here

- operations are done by the call that completes them (Flush, Unlock, Fence, Complete, Wait of their request), often
  after a pause in which the other ranks go on, from what their buffers have then, in any order that the standard
  allows: accumulates to one target stay in order, others do not, and ranks see some of them before the others;
- after Flush_local the buffers of puts and accumulates are free, and their effect still comes later;
- Lock and Start return before the lock is there, and before the target has called Post;
- a standard send waits until its receive has begun.

The order follows from a seed, so that a run that fails can be had again. Arguments are checked when an operation is
called, but for a place in a dynamic window, which only the target knows, when it is done.

A window whose handle the program has read is left as it is from then on: compiled code may use it, past these methods.

With ``--check`` the checker is told of the calls as the program makes them. Then Lock, Start and standard sends are as
they are: the checker learns from the ends of these calls which of two locks came first, and when a message was sent.
"""

import contextlib
import functools
import operator
import threading

from gormapy import MPI, notify
from gormapy._ext import core, fast

from . import copies, late_window
from .late_operation import NAMES, LateOperation
from .late_window import START, LateWindow, changing
from .wrapping import Layer, replace, wrapped

_LOCAL = ("Flush_local", "Flush_local_all")
_COMPLETING = {"Flush": 1, "Flush_all": 0, "Unlock": 1, "Unlock_all": 0, "Fence": 0, "Complete": 0, "Free": 0}
_COMPLETING |= {"Flush_local": 1, "Flush_local_all": 0}
_SENDS = {"Send": "Ssend", "Isend": "Issend", "send": "ssend", "isend": "issend", "Send_init": "Ssend_init"}

_NOTHING = 0, 0, MPI.BYTE  # of one side of an operation that does nothing, and yet has a request of its own
_windows = {}  # handle -> LateWindow
_requests = {}  # handle of a request -> (LateWindow, LateOperation)
_layer = Layer()  # the checker may stand before it
_replace = functools.partial(replace, layer=_layer)
_originals = {}
_last = threading.local()  # late: the window on which this thread has put off a Lock or Start last


def _late(win):
    with changing:
        return _windows.setdefault(win._h, LateWindow())


# Operations
# ----------


def _operation(name):
    """Put off an operation, if there is an epoch."""

    def make(method):
        def told(self, *args, **kwargs):
            operation = LateOperation(name, method, self, args, kwargs)
            late = _late(self)
            if late.shown or not operation.can_be_late():
                return _at_once(method, late, operation)
            if not late.opens(operation.rank):
                _originals["Put"](self, bytearray(), operation.rank)  # is there an epoch?
            late.put_off(operation)
            return None

        return told

    return make


def _requested(name):
    """Put off an operation with a request until that is waited for: it has the request of one that does nothing."""

    def make(method):
        def told(self, *args, **kwargs):
            base = name[1:].capitalize()
            operation = LateOperation(base, _originals[base], self, args, kwargs)
            late = _late(self)
            if late.shown or not operation.can_be_late():
                return _at_once(method, late, operation)
            late.begin(operation.rank)
            request = self._request(fast.PUT, operation.rank, _NOTHING, None, _NOTHING, None)
            late.put_off(operation)
            _requests[request._h] = late, operation
            return request

        return told

    return make


def _at_once(method, late, operation):
    """Do an operation that can't be put off: it does nothing, or has an error other than a Lock put off."""
    late.begin(operation.rank)
    return method(operation.win, *operation.args, **operation.kwargs)


def _notifying(function):
    """Make the Lock that was put off: the extension does this operation at once."""

    def told(win, origin, target_rank, target=None, slot=0):
        late = _windows.get(getattr(win, "_h", 0))
        if late is not None:
            late.begin()
        return function(win, origin, target_rank, target, slot)

    return told


def _handing_out(win):
    """Return the handle of a window on which nothing is put off any more."""
    late = _late(win)
    late.shown = True
    late.do()
    return win._h


def _freeing_type(method):
    def told(self):
        if not self.is_predefined:
            with changing:
                for late in _windows.values():
                    for operation in late.operations:
                        operation.keep_type(self)
        method(self)

    return told


# What opens an epoch
# -------------------


def _keep_order():
    """Make what this thread has put off before it locks more: programs avoid deadlocks by the order of their locks."""
    late = vars(_last).pop("late", None)
    if late is not None:
        late.begin()


def _locking(method):
    def told(self, rank, lock_type=MPI.LOCK_EXCLUSIVE, assertion=0):
        _keep_order()
        late = _late(self)
        base = self._description
        # a part that this rank can load and store without MPI: its own, and those of a shared window
        direct = base and (rank == base[4] or base[3] == MPI.WIN_FLAVOR_SHARED)
        with contextlib.suppress(TypeError):
            rank = operator.index(rank)
        known = lock_type in (MPI.LOCK_EXCLUSIVE, MPI.LOCK_SHARED) and assertion in (0, MPI.MODE_NOCHECK)
        if direct or not known or not _is_rank(self, rank) or not _is_closed(self, late):
            late.begin(rank)  # a second lock of the same rank has an error
            return method(self, rank, lock_type, assertion)
        late.opening[rank] = lambda: _originals["Lock"](self, rank, lock_type, assertion)  # has looked already
        _last.late = late
        copies.look(self)
        return None

    return told


def _is_rank(win, rank):
    """Report whether this is a rank of a window that is not freed."""
    return bool(win._h) and core.WinCheck(win._h) == 0 and type(rank) is int and 0 <= rank < win._description[5]


def _is_closed(win, late):
    """Report whether there is no epoch on a window, and what begins one may be put off."""
    if late.shown or not late.is_free():
        return False
    try:
        fast.win_check_free(win._h)
    except MPI.Exception:
        return False
    return True


def _starting(method):
    def told(self, group, assertion=0):
        _keep_order()
        late = _late(self)
        if not isinstance(group, MPI.Group) or not group or not _is_rank(self, 0) or not _is_closed(self, late):
            late.begin()  # what is open already is an error
            return method(self, group, assertion)
        whole = self.group
        members = MPI.Group.Translate_ranks(group, None, whole)
        whole.Free()
        late.members = members
        if MPI.UNDEFINED in members or assertion not in (0, MPI.MODE_NOCHECK):
            return method(self, group, assertion)
        group = group.Dup()  # the program may free its own

        def start():
            method(self, group, assertion)
            group.Free()

        late.opening[START] = start
        _last.late = late
        return None

    return told


def _opening(method):
    """Make what was put off before another epoch is opened, which is an error on the same window."""

    def told(self, *args, **kwargs):
        _keep_order()
        _late(self).begin()
        return method(self, *args, **kwargs)

    return told


# What completes operations
# -------------------------


def _completing(name, has_rank):
    def make(method):
        def told(self, *args, **kwargs):
            late = _windows.get(self._h)
            if late is None or late.is_free():
                return method(self, *args, **kwargs)
            rank = (args[0] if args else kwargs.get("rank")) if has_rank else None
            if has_rank:
                try:
                    rank = operator.index(rank)
                except TypeError:
                    return method(self, *args, **kwargs)  # which has an error
            try:
                if name in _LOCAL:
                    late.do_locally(rank)
                else:
                    late.do(rank)
            except Exception:
                with contextlib.suppress(Exception):  # the first error is the better one
                    method(self, *args, **kwargs)
                raise
            return method(self, *args, **kwargs)

        return _freed(told) if name == "Free" else told

    return make


def _freed(call):
    """Make a Free that forgets the window as well."""

    def told(self, *args, **kwargs):
        handle = self._h
        call(self, *args, **kwargs)
        with changing:
            _windows.pop(handle, None)

    return told


def _complete(requests):
    """Do the operations of requests. One that fails keeps none from being done; the first error is raised at last."""
    failed = None
    for request in requests:
        late, operation = _requests.get(getattr(request, "_h", 0), (None, None))
        if late is None:
            continue
        try:
            if late.do_one(operation) and operation.fills:
                _flush(operation)
        except Exception as error:
            failed = failed or error
        _requests.pop(request._h, None)
    if failed is not None:
        raise failed


def _flush(operation):
    """Have the result of an operation be there."""
    try:
        _originals["Flush"](operation.win, operation.rank)
    except MPI.Exception as error:
        if error.Get_error_class() != MPI.ERR_RMA_SYNC:  # else another thread has ended the epoch: it is there
            raise


def _waiting_one(method):
    def told(self, *args, **kwargs):
        try:
            _complete([self])
        except Exception:
            with contextlib.suppress(Exception):
                method(self, *args, **kwargs)
            raise
        return method(self, *args, **kwargs)

    return told


def _waiting(method):
    def told(cls, requests, *args, **kwargs):
        if hasattr(requests, "__iter__"):
            requests = list(requests)  # it may be a generator
            _complete(requests)
        return method(cls, requests, *args, **kwargs)

    return told


def was_reset():
    """Forget what was put off before `gormapy.reset`: nothing of before is in flight."""
    with changing:
        for late in _windows.values():
            late.forget()
        _requests.clear()
        changing.notify_all()


def _instead(other):
    return lambda method: other


def install(setting, rank, checked):
    """Replace the methods of Win, Request and Comm; `setting` is SEED, or SEED,separate; checked: with ``--check``."""
    seed, _, model = setting.partition(",")
    if setting == "separate":
        seed, model = "", setting
    if setting not in (seed, model, f"{seed},separate") or seed.strip("0123456789"):
        raise ValueError(f"GORMAPY_UNKIND: expecting a number, separate, or NUMBER,separate; got {setting!r}")
    if model and checked:
        raise ValueError(f"GORMAPY_UNKIND={setting}: windows with two copies can't be checked; the seed alone can")
    _originals["Lock"] = MPI.Win.Lock  # which does not look at copies
    if model:
        copies.install()
    late_window.begin(f"{seed} {rank}")
    for name in (*NAMES, "Flush"):
        _originals[name] = getattr(MPI.Win, name)
    for name in NAMES:
        _replace(MPI.Win, name, _operation(name))
    for name in ("Rput", "Rget", "Raccumulate", "Rget_accumulate"):
        _replace(MPI.Win, name, _requested(name))
    for name, has_rank in _COMPLETING.items():
        _replace(MPI.Win, name, _completing(name, has_rank))
    MPI.Win.handle = property(_handing_out, doc=MPI.Win.handle.__doc__)
    _replace(MPI.Datatype, "Free", _freeing_type)
    for name in ("Wait", "Test", "Get_status", "wait", "test"):
        _replace(MPI.Request, name, _waiting_one)
    for name in ("Waitany", "Testany", "Waitall", "Testall", "Waitsome", "Testsome"):
        _replace(MPI.Request, name, _waiting)
        _replace(MPI.Request, name.lower(), _waiting)
    if checked:
        return
    _replace(MPI.Win, "Lock", _locking)
    _replace(MPI.Win, "Start", _starting)
    _replace(MPI.Win, "Lock_all", _opening)
    notify.put_notify = wrapped(notify.put_notify, _notifying(notify.put_notify), _layer)
    for name, synchronous in _SENDS.items():
        _replace(MPI.Comm, name, _instead(getattr(MPI.Comm, synchronous)))
