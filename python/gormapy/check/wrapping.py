"""Replacing methods of gormapy.MPI by ones that tell the checker what is called."""

import functools
import threading

from gormapy._ext import fast

from . import kinds

event = fast.check_event
numbers = iter(fast.check_number, 0)  # of operations and requests


class Layer(threading.local):
    """What stands before methods, at most once before each; depth: whether this thread is in one of them."""

    depth = 0


# The checker. What a method that is told of calls is its own affair.
inside = Layer()


def replace(cls, name, make, layer=inside):
    """Replace a method by what `make` returns for it."""
    member = vars(cls).get(name)
    if isinstance(member, classmethod):
        function = member.__func__
        if getattr(function, "layer", None) is not layer:
            setattr(cls, name, classmethod(wrapped(function, make(function), layer)))
        return
    method = getattr(cls, name, None)
    before = getattr(method, "layer", None)
    if method is None or before is layer:
        return
    if member is None and getattr(method, "__self__", None) is cls:  # a class method of the extension
        function = lambda klass, *args, **kwargs: method(*args, **kwargs)  # noqa: E731
        function.__name__ = name
        setattr(cls, name, classmethod(wrapped(function, make(function), layer)))
        return
    call = wrapped(method, make(method), layer)
    # the extension's way past these methods would go past another layer, too
    direct = cls.__name__ == "Win" and layer is inside and before is None
    setattr(cls, name, fast.check_method(name, call) if direct else call)


def wrapped(method, told, layer=inside):
    """Return what stands in a method's place: `told`, or `method` for what other methods call."""

    @functools.wraps(method)
    def call(*args, **kwargs):
        if layer.depth:
            return method(*args, **kwargs)
        layer.depth = 1
        try:
            return told(*args, **kwargs)
        finally:
            layer.depth = 0
            fast.watch_rearm()

    call.layer = layer
    return call


# Errors of arguments, which a call raises before it does anything
REFUSING = TypeError, ValueError, KeyError, OverflowError, BufferError

# Which class of finding an MPI error is, by what is called
_CLOSING = {"Unlock", "Unlock_all", "Complete", "Wait", "Test"}
_OPENING = {"Lock", "Lock_all", "Start", "Post", "Fence"}
_COLLECTIVE = {"Fence", "Free", "Create", "Allocate", "Allocate_shared", "Create_dynamic"}


def has_ended(error):
    """Return whether an error is that a rank has ended, as if it had nothing to do any more, before a call needs it."""
    from gormapy import MPI

    return error.Get_error_class() == MPI.ERR_PROC_FAILED and "has ended with exit status 0" in str(error)


def misuse(error, call, site, window=0, target=-1):
    """Tell the checker of an error that a call has raised, if it is about wrong use of one-sided communication."""
    name = _class_of(error, call)
    if name:
        text = str(error)
        event(kinds.MISUSE, site, text[:2000], kinds.CLASS[name], window, target)


def _class_of(error, call):
    from gormapy import MPI

    if not isinstance(error, MPI.Exception):
        return "bad-argument" if isinstance(error, REFUSING) else ""
    kind = error.Get_error_class()
    if kind == MPI.ERR_RMA_SYNC:
        if call == "Free":
            return "epoch-open"
        if call in _CLOSING:
            return "epoch-unopened"
        return "epoch-nested" if call in _OPENING else "epoch-missing"
    if call in _COLLECTIVE and has_ended(error):
        return "collective-mismatch"
    if "different kinds of windows" in str(error):
        return ""  # the checker has compared the calls
    if kind == MPI.ERR_RMA_ATTACH and call == "Detach":
        return "memory-gone"
    if kind in (
        MPI.ERR_WIN,
        MPI.ERR_RMA_RANGE,
        MPI.ERR_RANK,
        MPI.ERR_DISP,
        MPI.ERR_TYPE,
        MPI.ERR_OP,
        MPI.ERR_COUNT,
        MPI.ERR_ARG,
        MPI.ERR_BUFFER,
        MPI.ERR_ASSERT,
        MPI.ERR_LOCKTYPE,
        MPI.ERR_SIZE,
        MPI.ERR_BASE,
        MPI.ERR_RMA_CONFLICT,
        MPI.ERR_RMA_FLAVOR,
        MPI.ERR_RMA_ATTACH,
    ):
        return "bad-argument"
    return ""
