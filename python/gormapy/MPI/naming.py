"""Names and attributes that a program attaches to communicators, windows and datatypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import constants
from .exception import Exception, error

if TYPE_CHECKING:
    from collections.abc import Callable

_names = {}  # (family, handle) -> name


class Named:
    """Mix-in with the name of an object."""

    __slots__ = ()

    def Get_name(self) -> str:
        """Return the name of the object."""
        if not self._h:
            return f"MPI_{self._family.upper()}_NULL"
        name = _names.get((self._family, self._h))
        return self._default_name() if name is None else name

    def Set_name(self, name: str) -> None:
        """Give the object a name."""
        if not self._h:
            self._null_error()
        if not isinstance(name, str):
            raise TypeError(f"Set_name: expecting str, got {type(name).__name__}")
        if len(name.encode()) >= constants.MAX_OBJECT_NAME:
            raise Exception(constants.ERR_ARG)
        _names[self._family, self._h] = name

    name = property(Get_name, Set_name, doc="Name of the object.")

    def _default_name(self):
        return ""

    def _forget_name(self):
        if _names:
            _names.pop((self._family, self._h), None)

    def _null_error(self):
        family = self._family
        kinds = {"Datatype": constants.ERR_TYPE, "Comm": constants.ERR_COMM, "Win": constants.ERR_WIN}
        raise error(kinds[family], f"the {family} object is null (it was never made, or has been freed)")


# Attributes
# ----------

_FIRST_KEYVAL = 1000
_keyvals = {}  # keyval -> (family, copy function, delete function, passed by value)
_attributes = {}  # (family, handle) -> {keyval: value}
_next_keyval = _FIRST_KEYVAL


class Attributed:
    """Mix-in with attributes that a program caches on an object."""

    __slots__ = ()

    def _attribute(self, keyval):
        """Return a predefined attribute, or None."""
        return None

    def Get_attr(self, keyval: int) -> Any:
        """Return the attribute of the object that has a key."""
        values = _attributes.get((self._family, self._h))
        if values and keyval in values:
            return values[keyval]
        self._check_attr(keyval)
        if keyval < _FIRST_KEYVAL:
            return self._attribute(keyval)
        return None

    def Set_attr(self, keyval: int, attrval: Any) -> None:
        """Attach an attribute to the object."""
        values = _attributes.get((self._family, self._h))
        known = values and keyval in values
        if not known:
            self._check_user_attr(keyval)
        family, _, delete = _keyvals[keyval]
        if family != self._family:  # of another kind of object, or freed
            raise Exception(constants.ERR_KEYVAL)
        if known and delete is not None:
            _call_delete(delete, self, keyval, values[keyval])
        if values is None:
            values = _attributes.setdefault((self._family, self._h), {})
        values[keyval] = attrval

    def Delete_attr(self, keyval: int) -> None:
        """Delete an attribute of the object."""
        delete = self._check_user_attr(keyval)
        values = _attributes.get((self._family, self._h), {})
        if keyval not in values:
            raise Exception(constants.ERR_KEYVAL)
        _call_delete(delete, self, keyval, values[keyval])
        del values[keyval]

    @classmethod
    def Create_keyval(
        cls,
        copy_fn: Callable[..., Any] | bool | None = None,
        delete_fn: Callable[..., Any] | bool | None = None,
        nopython: bool = False,
    ) -> int:
        """Create a key for attributes."""
        global _next_keyval
        for function in (copy_fn, delete_fn):
            if not (function is None or isinstance(function, bool) or callable(function)):
                raise TypeError("Create_keyval: expecting functions")
        if copy_fn is True:
            copy_fn = lambda obj, keyval, value: value  # noqa: E731
        keyval = _next_keyval
        _next_keyval += 1
        _keyvals[keyval] = (cls._family, copy_fn or None, delete_fn if callable(delete_fn) else None)
        return keyval

    @classmethod
    def Free_keyval(cls, keyval: int) -> int:
        """Free a key for attributes."""
        if _keyvals.get(keyval, (None,))[0] != cls._family:
            raise Exception(constants.ERR_KEYVAL)
        # values that are still attached keep their functions: MPI frees the key with the last of them
        _keyvals[keyval] = (None, *_keyvals[keyval][1:])
        return constants.KEYVAL_INVALID

    def _check_attr(self, keyval):
        if not self._h:
            self._null_error()
        if keyval == constants.KEYVAL_INVALID or (keyval >= _FIRST_KEYVAL and keyval not in _keyvals):
            raise Exception(constants.ERR_KEYVAL)

    def _check_user_attr(self, keyval):
        self._check_attr(keyval)
        if keyval < _FIRST_KEYVAL:
            raise Exception(constants.ERR_KEYVAL)
        return _keyvals[keyval][2]

    def _copy_attributes(self, source):
        """Copy those attributes of `source` whose copy functions say so, as duplicating an object does."""
        values = _attributes.get((self._family, source._h))
        for keyval, value in list(values.items()) if values else ():
            copy = _keyvals[keyval][1]
            if copy is None:
                continue
            copied = _called(copy, source, keyval, value)
            if copied is not NotImplemented:
                _attributes.setdefault((self._family, self._h), {})[keyval] = copied

    def _delete_attributes(self):
        """Delete all attributes in reverse order, as freeing an object does."""
        values = _attributes.pop((self._family, self._h), None)
        for keyval, value in reversed(values.items()) if values else ():
            try:  # noqa: SIM105 (contextlib takes time to import)
                _call_delete(_keyvals[keyval][2], self, keyval, value)
            except Exception:  # the object is freed nevertheless
                pass


def _call_delete(function, obj, keyval, value):
    if function is not None:
        _called(function, obj, keyval, value)


def _called(function, obj, keyval, value):
    """Call a function of the program; print its exception, for which MPI has only an error code."""
    try:
        return function(obj, keyval, value)
    except BaseException:
        import traceback

        traceback.print_exc()
        raise Exception(constants.ERR_OTHER) from None
