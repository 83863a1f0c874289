"""The base class of objects that stand for a handle of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

_constants = {}  # (family, handle) -> name of the module constant


def named(family, handle, name):
    """Record that a handle has a constant in the module, for copying and pickling."""
    _constants.setdefault((family, handle), name)


class Handle:
    """Mix-in for objects that stand for a handle.

    A concrete family (Comm, Win, ...) sets `_family` to its name and provides the attribute `_h`;
    0 is the null handle of every family.

    Objects are made in these ways: `Class(other)` stands for the handle of another object (adopt). `_from_handle` takes
    any handle, as fromhandle does for programs. What calls of the core return is taken by `Group._made` (a handle, or
    the code of an error), by `Comm._wrap` (a new communicator, or null on a rank that is not in it), and by
    `Request._started` (an operation that has begun, with its memory).
    """

    __slots__ = ()

    def __eq__(self, other: object, /) -> bool:
        if getattr(other, "_family", None) != self._family:
            return NotImplemented
        return self._h == other._h

    def __ne__(self, other: object, /) -> bool:
        if getattr(other, "_family", None) != self._family:
            return NotImplemented
        return self._h != other._h

    # A handle becomes null when it is freed: it cannot be a key.
    __hash__ = None

    def __bool__(self) -> bool:
        return self._h != 0

    def __reduce__(self) -> str | tuple[Any, ...]:
        name = _constants.get((self._family, self._h))
        if name is None:
            cls = type(self)
            raise ValueError(f"cannot serialize '{cls.__module__}.{cls.__name__}' instance")
        constant = _constant(name)
        if self is constant:
            return name
        return type(self), (constant,)

    @property
    def handle(self) -> int:
        """Handle as an integer."""
        return self._h

    @classmethod
    def fromhandle(cls, handle: int) -> Self:
        """Return the object of a handle."""
        return cls._from_handle(handle)

    @classmethod
    def _from_handle(cls, handle):
        obj = cls.__new__(cls)
        obj._h = handle
        return obj

    def toint(self) -> int:
        """Return the handle as an integer."""
        return self.handle

    @classmethod
    def fromint(cls, arg: int, /) -> Self:
        """Return the object of an integer handle."""
        return cls._from_handle(arg)

    def py2f(self) -> int:
        """Return the handle as Fortran has it."""
        return self.handle

    @classmethod
    def f2py(cls, arg: int) -> Self:
        """Return the object of a Fortran handle."""
        return cls._from_handle(arg)

    def free(self) -> None:
        """Call Free, if the object is neither null nor predefined."""
        name = _constants.get((self._family, self._h))
        if name is None:
            self.Free()
        elif self is not _constant(name):
            self._h = 0


def _constant(name):
    from gormapy import MPI  # at call time: the module is being made of this one

    return getattr(MPI, name)


_EXPECTED = {"Comm": "a communicator", "Group": "a group", "Info": "an Info"}


def expect(family, value, argument):
    """Return the handle of an argument, which has to be an object of a family."""
    if getattr(value, "_family", None) != family or isinstance(value, type):
        raise TypeError(f"{argument}: expecting {_EXPECTED[family]}, got {type(value).__name__}")
    return value._h


def adopt(family, obj, other):
    """Make `obj` stand for the same handle as `other`, which may be None (null)."""
    if other is None:
        obj._h = 0
    elif isinstance(other, family):
        obj._h = other._h
    else:
        raise TypeError(f"expecting {family.__name__}, got {type(other).__name__}")
    return obj
