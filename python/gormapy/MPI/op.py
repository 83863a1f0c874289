"""Reduction operations, on buffers by the core and on Python objects here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gormapy._ext import core, fast

from . import constants, msgbuffer
from .exception import Exception, check
from .handle import Handle, adopt, named

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from gormapy.typing import BufSpec


def _larger(x, y):
    return y if y > x else x


def _smaller(x, y):
    return y if y < x else x


def _first_of(better):
    """Make the operation that keeps the better (value, index) pair, the lower index of equals."""

    def choose(x, y):
        (u, i), (v, j) = x, y
        if better(u, v):
            return u, i
        if better(v, u) or j < i:
            return v, j
        return u, i

    return choose


# The order is that of the handles in the core.
_PREDEFINED = (
    ("MAX", _larger),
    ("MIN", _smaller),
    ("SUM", lambda x, y: x + y),
    ("PROD", lambda x, y: x * y),
    ("LAND", lambda x, y: bool(x) & bool(y)),
    ("BAND", lambda x, y: x & y),
    ("LOR", lambda x, y: bool(x) | bool(y)),
    ("BOR", lambda x, y: x | y),
    ("LXOR", lambda x, y: bool(x) ^ bool(y)),
    ("BXOR", lambda x, y: x ^ y),
    ("MAXLOC", _first_of(lambda u, v: u > v)),
    ("MINLOC", _first_of(lambda u, v: u < v)),
    ("REPLACE", lambda x, y: y),
    ("NO_OP", lambda x, y: x),
)
_FIRST_USER = 1 << 16
_functions = {h: function for h, (_, function) in enumerate(_PREDEFINED, 1)}
_commutes = {}  # handle of a user-defined operation -> whether it commutes
_next_user = _FIRST_USER
_MOST_USER = 32  # operations of the program, as many as in mpi4py


class Op(Handle, fast.Handle):
    """Operation that combines two elements."""

    _family = "Op"
    __slots__ = ("__weakref__", "_created")

    def __new__(cls, op: Op | None = None) -> Self:
        self = adopt(Op, super().__new__(cls), op)
        self._created = op is not None and op._created
        return self

    def __call__(self, x: Any, y: Any, /) -> Any:
        """Combine two objects."""
        function = _functions.get(self._h)
        if function is None:
            raise ValueError("cannot call the null operation")
        if self._h >= _FIRST_USER:
            return function(x, y, None)
        return function(x, y)

    def __reduce__(self) -> str | tuple[Any, ...]:
        if not (self._created and self._h):  # predefined, or made of a handle: only a number
            return super().__reduce__()
        return type(self).Create, (_functions[self._h], _commutes[self._h])

    @classmethod
    def Create(cls, function: Callable[..., Any], commute: bool = False) -> Self:
        """Create an operation of a function."""
        global _next_user
        if not callable(function):
            raise TypeError(f"Op.Create: expecting a function, got {type(function).__name__}")
        if len(_commutes) >= _MOST_USER:
            raise RuntimeError(
                f"Op.Create: there are {_MOST_USER} operations of the program, which is as many as mpi4py allows: "
                "free those that are not needed"
            )
        self = cls.__new__(cls)
        self._h = _next_user
        _next_user += 1
        self._created = True
        _functions[self._h] = function
        _commutes[self._h] = bool(commute)
        return self

    def Free(self) -> None:
        """Free the operation."""
        if self._h not in _commutes:
            raise Exception(constants.ERR_OP)
        del _functions[self._h], _commutes[self._h]
        self._h = 0

    def Is_commutative(self) -> bool:
        """Report whether the operation is commutative."""
        if self._h not in _functions:
            raise Exception(constants.ERR_OP)
        return _commutes.get(self._h, self._h not in (REPLACE._h, NO_OP._h))

    is_commutative = property(Is_commutative, doc="Whether the operation is commutative.")

    @property
    def is_predefined(self) -> bool:
        """Whether the operation is predefined."""
        return self._h < _FIRST_USER

    def Reduce_local(self, inbuf: BufSpec, inoutbuf: BufSpec) -> None:
        """Combine the elements of two buffers of this process."""
        inout = msgbuffer.message(inoutbuf, False, 0, 0)
        operand = msgbuffer.message(inbuf, True, 0, 0)
        msgbuffer.reduction(operand, inout)
        self._apply(operand[0], inout[0], inout[1], inout[2])

    def _apply(self, source, inout, count, datatype):
        """Compute inout = source op inout for elements at two addresses."""
        self._applier(datatype)(source, inout, count, datatype)

    def _applier(self, datatype):
        """Return a function that applies the operation, also after the program has freed it."""
        handle = self._h
        if handle < _FIRST_USER:
            check(core.OpApply(handle, datatype._h, 0, 0, 0))  # refuses what does not fit

            def apply(source, inout, count, datatype):
                check(core.OpApply(handle, datatype._h, source, inout, count))

            return apply
        function = _functions.get(handle)
        if function is None:
            raise Exception(constants.ERR_OP)

        def call(source, inout, count, datatype):
            from .buffer import view

            nbytes = count * datatype._extent
            function(view(source, nbytes, False, None), view(inout, nbytes, False, None), datatype)

        return call


def _predefined(handle, name):
    op = Op()
    op._h = handle
    named("Op", handle, name)
    return op


OP_NULL = _predefined(0, "OP_NULL")
(MAX, MIN, SUM, PROD, LAND, BAND, LOR, BOR, LXOR, BXOR, MAXLOC, MINLOC, REPLACE, NO_OP) = (
    _predefined(h, name) for h, (name, _) in enumerate(_PREDEFINED, 1)
)


def is_user_defined(op):
    """Return whether an operation is a function of the program, which the core cannot call."""
    return handle_of(op) >= _FIRST_USER


def handle_of(op):
    """Return the handle of an operation."""
    if isinstance(op, Op):
        return op._h
    from .explain import no_operation

    raise no_operation(op)
