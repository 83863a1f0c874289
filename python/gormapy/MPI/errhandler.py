"""Error handlers of communicators, windows, files and sessions.

Errors are exceptions, which is what ERRORS_RETURN means in Python, and calls do not check for a handler. When a
program first sets another handler, the methods of communicators, windows and requests are replaced by guarded ones,
which call the handler of the object before the exception is raised, or end the job.
"""

from __future__ import annotations

import functools
import threading
from itertools import count
from types import ClassMethodDescriptorType, FunctionType, MethodDescriptorType
from typing import TYPE_CHECKING

from gormapy._ext import fast
from gormapy._rc import rc

from . import constants
from .exception import Exception, error, error_class
from .handle import Handle, adopt, named

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

_FIRST_USER = 16
_MOST_USER = 32  # error handlers of the program for each kind of object, as many as in mpi4py
_functions = {}  # handle of an error handler of the program -> its function
_kinds = {}  # likewise -> family of the objects that it is for
_references = {}  # likewise -> how many the program has to free
_numbers = count(_FIRST_USER)
_chosen = {}  # (family, handle) -> handle of its error handler
_guarded_classes = []
_changes = threading.RLock()  # of the tables; a destructor of the program may run in the middle of a change


class Errhandler(Handle, fast.Handle):
    """Error handler: what happens when a call fails."""

    _family = "Errhandler"
    __slots__ = ("__weakref__",)

    def __new__(cls, errhandler: Errhandler | None = None) -> Self:
        return adopt(Errhandler, super().__new__(cls), errhandler)

    def Free(self) -> None:
        """Free the error handler."""
        if not self:
            raise Exception(constants.ERR_ERRHANDLER)
        with _changes:
            _check_live(self._h)
            handle, self._h = self._h, 0
            if handle in _references:
                _references[handle] -= 1
                _drop_unused(handle)

    def free(self) -> None:
        """Call Free, if the error handler is neither null nor predefined."""
        if self and self not in _PREDEFINED:
            self.Free()
        elif self and not any(self is e for e in _PREDEFINED):
            self._h = 0


def _make(handle, name):
    errhandler = Errhandler()
    errhandler._h = handle
    named("Errhandler", handle, name)
    return errhandler


ERRHANDLER_NULL = _make(0, "ERRHANDLER_NULL")
ERRORS_ARE_FATAL = _make(1, "ERRORS_ARE_FATAL")
ERRORS_RETURN = _make(2, "ERRORS_RETURN")
ERRORS_ABORT = _make(3, "ERRORS_ABORT")
_PREDEFINED = (ERRORS_ARE_FATAL, ERRORS_RETURN, ERRORS_ABORT)
_POLICIES = {
    "exception": ERRORS_RETURN,
    "default": ERRORS_ARE_FATAL,  # MPI's
    "fatal": ERRORS_ARE_FATAL,
    "abort": ERRORS_ABORT,
}
_default = ERRORS_RETURN._h


class ErrorHandling:
    """Mix-in with the error handler of an object."""

    __slots__ = ()

    @classmethod
    def Create_errhandler(cls, errhandler_fn: Callable[..., None]) -> Errhandler:
        """Create an error handler that calls a function."""
        if not callable(errhandler_fn):
            raise TypeError(f"Create_errhandler: expecting a function, got {type(errhandler_fn).__name__}")
        made = Errhandler()
        with _changes:
            if sum(family == cls._family for family in _kinds.values()) >= _MOST_USER:
                raise RuntimeError(
                    f"Create_errhandler: there are {_MOST_USER} error handlers for a {_THINGS[cls._family]}, which is "
                    "as many as mpi4py allows: free those that are not needed"
                )
            made._h = next(_numbers)
            _functions[made._h], _kinds[made._h], _references[made._h] = errhandler_fn, cls._family, 1
        return made

    def Get_errhandler(self) -> Errhandler:
        """Return the error handler of the object."""
        if not self._h:
            self._null_error()
        with _changes:
            handle = _handler(self)
            if handle in _references:
                _references[handle] += 1
        return Errhandler._from_handle(handle)

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Choose the error handler of the object."""
        if not self._h:
            self._null_error()
        self._set_errhandler(errhandler)

    def _set_errhandler(self, errhandler):
        expect_for(self._family, errhandler, "Set_errhandler")
        if errhandler != ERRORS_RETURN:
            _guard_all()
        with _changes:
            _check_live(errhandler._h)
            before = _handler(self)
            _chosen[self._family, self._h] = errhandler._h
            _drop_unused(before)

    def Call_errhandler(self, errorcode: int) -> None:
        """Call the error handler of the object."""
        if not self._h:
            self._null_error()
        _handle(self, Exception(errorcode), "Call_errhandler")

    def _forget_errhandler(self):
        if _chosen and (self._family, self._h) in _chosen:
            with _changes:
                _drop_unused(_chosen.pop((self._family, self._h), None))


def expect_for(family, errhandler, call):
    """Refuse what is not an error handler for objects of a family. Calls that make an object do it first."""
    if not isinstance(errhandler, Errhandler):
        raise TypeError(f"{call}: expecting Errhandler, got {type(errhandler).__name__}")
    if not errhandler:
        raise Exception(constants.ERR_ERRHANDLER)
    with _changes:
        _check_live(errhandler._h)
        kind = _kinds.get(errhandler._h, family)
    if kind != family:
        raise error(constants.ERR_ARG, f"{call}: the handler is one for a {_THINGS[kind]}, not for a {_THINGS[family]}")


def _check_live(handle):
    """Refuse an error handler that the program has freed, of which another object may still have the handle."""
    if handle >= _FIRST_USER and not _references.get(handle):
        raise error(constants.ERR_ERRHANDLER, "the error handler has been freed")


def _drop_unused(handle):
    """Forget the function of an error handler that has been freed, if no object uses it."""
    if _references.get(handle) == 0 and handle not in _chosen.values():
        del _functions[handle], _kinds[handle], _references[handle]


def _handler(obj):
    return _chosen.get((obj._family, obj._h), _default)


def _handle(obj, error, call):
    """Apply the error handler of an object; return if the caller has to raise the exception."""
    handler = _handler(obj)
    _apply(obj, error, call, handler, _functions.get(handler))


def _apply(obj, error, call, handler, users):
    """Apply an error handler, of which `users` is the function if it is one of the program."""
    if users is not None:
        users(obj, int(error))
    elif handler != ERRORS_RETURN._h:
        _end(obj, error, call, handler)


_THINGS = {"Comm": "communicator", "Win": "window", "File": "file", "Session": "session"}


def _end(obj, error, call, handler):
    """End the job."""
    import sys

    from gormapy._ext import core, fast

    if not obj:
        name = f"MPI_{obj._family.upper()}_NULL"
    else:
        name = obj.Get_name() if hasattr(obj, "Get_name") else ""
    said = "ERRORS_ARE_FATAL" if handler == ERRORS_ARE_FATAL._h else "ERRORS_ABORT"
    sys.stdout.flush()
    print(
        f"rank {core.CommRank(1)}: {type(obj).__name__}.{call}{f' on {name}' if name else ''}: {error}\n"
        f"The error handler of the {_THINGS[obj._family]} is {said}: the job ends",
        file=sys.stderr,
        flush=True,
    )
    fast.abort(0, error_class(int(error)))


# Guarded methods
# ---------------


def start(*classes):
    """Store the classes whose methods may be guarded, and apply the option `errors` of gormapy.rc."""
    global _default
    _guarded_classes.extend(classes)
    try:
        _default = _POLICIES[rc.errors]._h
    except KeyError:
        raise ValueError(f"gormapy.rc.errors: expecting one of {', '.join(_POLICIES)}, got {rc.errors!r}") from None
    if _default != ERRORS_RETURN._h:
        _guard_all()


def _guard_all():
    """Replace the methods of communicators, windows, files and requests by guarded ones."""
    while _guarded_classes:
        cls = _guarded_classes.pop()
        exempt = {*vars(ErrorHandling), *vars(Handle), "Abort"} - {"free"}
        if cls._family == "File":
            exempt |= {"Open", "Delete"}  # their errors belong to FILE_NULL, not to their communicator
        for base in cls.__mro__:
            for name, member in list(vars(base).items()):
                if name.startswith("_") or name in exempt:
                    continue
                # a type of the extension can't be changed: its methods are guarded in the class itself
                if isinstance(member, (FunctionType, fast.Recorded)):
                    setattr(base, name, _guarded(member))
                elif isinstance(member, MethodDescriptorType) and name not in vars(cls):
                    setattr(cls, name, _guarded(member))
                elif isinstance(member, classmethod) and not hasattr(member.__func__, "_guarded"):
                    setattr(base, name, classmethod(_guarded(member.__func__)))
                elif isinstance(member, ClassMethodDescriptorType) and name not in vars(cls):
                    setattr(cls, name, _guarded_classmethod(name, member))


def _guarded_classmethod(name, member):
    def call(cls, *args, **kwargs):
        return member.__get__(None, cls)(*args, **kwargs)

    call.__name__, call.__doc__ = name, member.__doc__
    return classmethod(_guarded(call))


def _guarded(function):
    """Make the method that calls the error handler of the object concerned when `function` fails."""
    if hasattr(function, "_guarded"):
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        # COMM_NULL is concerned, too, and false
        obj = next((o for o in map(_concerned, (*args, *kwargs.values())) if o is not None), None)
        if obj is None:
            return function(*args, **kwargs)
        # the call may free the object, and with it a handler that the program has freed before
        handler = _handler(obj)
        users = _functions.get(handler)
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            if not getattr(error, "_handled", False):  # already handled by a call within this one
                error._handled = True
                _apply(obj, error, function.__name__, handler, users)
            raise
        for made in result if isinstance(result, tuple) else (result,):
            _inherit(obj, handler, made)
        return result

    call._guarded = True
    return call


def _concerned(argument):
    """Return the communicator, window or file that an argument is or belongs to, None if there is none."""
    family = getattr(argument, "_family", None)
    if family in _THINGS:
        return argument
    if family == "Request":
        return argument._errors_of
    if isinstance(argument, (list, tuple)):
        return next((r._errors_of for r in argument if getattr(r, "_family", None) == "Request" and r._errors_of), None)
    return None


def inherit_default(made, null):
    """Give a new object the error handler of its family's null object."""
    with _changes:
        handler = _chosen.get((null._family, 0))
        if handler is not None:
            _chosen[made._family, made._h] = handler


def _inherit(obj, handler, made):
    """Give an object that a call has made the error handler of the call's object."""
    family = getattr(made, "_family", None)
    if family == "Request":
        made._errors_of = obj
    elif family == "Comm" and obj._family == "Comm" and made._h and handler != _default:
        with _changes:
            _chosen.setdefault(("Comm", made._h), handler)
