"""Values that stand in place of a buffer: BOTTOM, IN_PLACE and BUFFER_AUTOMATIC."""

from gormapy._ext import fast


class _Sentinel(fast.Sentinel):
    """Integer whose only meaning is its identity."""

    __slots__ = ()
    _name = ""
    _value = 0

    def __new__(cls):
        return super().__new__(cls, cls._value)

    def __hash__(self):
        return hash(self._value)

    def __repr__(self):
        return self._name

    def __reduce__(self) -> str:
        return self._name

    def _refuse(self, other, /):
        raise TypeError(f"MPI.{self._name} is no number to calculate with")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse


class BottomType(_Sentinel):
    """Type of BOTTOM."""

    __slots__ = ()
    _name = "BOTTOM"
    _value = 0


class InPlaceType(_Sentinel):
    """Type of IN_PLACE."""

    __slots__ = ()
    _name = "IN_PLACE"
    _value = -1


class BufferAutomaticType(_Sentinel):
    """Type of BUFFER_AUTOMATIC."""

    __slots__ = ()
    _name = "BUFFER_AUTOMATIC"
    _value = -2


BOTTOM = BottomType()
IN_PLACE = InPlaceType()
BUFFER_AUTOMATIC = BufferAutomaticType()


def is_sentinel(obj):
    """Return whether an argument is one of these values. It shows a buffer of nothing, which is not meant."""
    return isinstance(obj, _Sentinel)


def is_in_place(obj):
    """Return whether an argument stands for the operation in place."""
    return obj is None or obj is IN_PLACE
