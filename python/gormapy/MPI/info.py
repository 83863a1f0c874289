"""Hints: pairs of strings."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from gormapy._ext import fast

from . import constants
from .exception import Exception
from .handle import Handle, adopt, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from typing_extensions import Self

_items = {}  # handle -> dict
_next_handle = 2
_ENV = 1
_MAX_VAL = constants.MAX_INFO_VAL


class Info(Handle, fast.Handle):
    """Hints for other calls."""

    _family = "Info"
    __slots__ = ("__weakref__",)

    def __new__(cls, info: Info | None = None) -> Self:
        return adopt(Info, super().__new__(cls), info)

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._h <= _ENV:
            return super().__reduce__()
        return type(self).Create, (self.items(),)

    def _dict(self):
        try:
            return _items[self._h]
        except KeyError:
            raise Exception(constants.ERR_INFO) from None

    @classmethod
    def Create(cls, items: Info | Mapping[str, str] | Iterable[tuple[str, str]] | None = None) -> Self:
        """Create an Info."""
        global _next_handle
        self = cls.__new__(cls)
        self._h = _next_handle
        _next_handle += 1
        _items[self._h] = {}
        if items is not None:
            try:
                self.update(items)
            except BaseException:
                self.Free()
                raise
        return self

    @classmethod
    def Create_env(cls, args: Sequence[str] | None = None) -> Self:
        """Create an Info that says how the program was started."""
        return cls.Create(environment(sys.argv if args is None else args))

    def Free(self) -> None:
        """Free the Info."""
        if self._h <= _ENV or self._h not in _items:
            raise Exception(constants.ERR_INFO)
        del _items[self._h]
        self._h = 0

    def Dup(self) -> Self:
        """Duplicate the Info."""
        return type(self).Create(list(self._dict().items()))

    def Get(self, key: str) -> str | None:
        """Return the value of a key."""
        items = _items.get(self._h)
        if items and type(key) is str and key in items:
            return items[key]
        return self._dict().get(_key(key))

    def Set(self, key: str, value: str) -> None:
        """Set the value of a key."""
        items = _items.get(self._h)
        if items is None or self._h == _ENV:
            raise Exception(constants.ERR_INFO)
        if type(value) is not str or not value.isascii() or len(value) > _MAX_VAL:
            _check_value(value)
        if type(key) is not str or key not in items:
            key = _key(key)
        items[key] = value

    def Delete(self, key: str) -> None:
        """Remove a key."""
        items = self._dict()
        if self._h == _ENV or items.pop(_key(key), None) is None:
            raise Exception(constants.ERR_INFO_NOKEY)

    def Get_nkeys(self) -> int:
        """Return the number of keys."""
        return len(self._dict())

    def Get_nthkey(self, n: int) -> str:
        """Return the n-th key."""
        keys = list(self._dict())
        if not 0 <= n < len(keys):
            raise Exception(constants.ERR_ARG)
        return keys[n]

    # Interface of a dictionary
    # -------------------------

    def __len__(self) -> int:
        return len(_items[self._h]) if self else 0

    def __contains__(self, value: str, /) -> bool:
        return bool(self) and _key(value) in _items[self._h]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, item: str, /) -> str:
        if item not in self:
            raise KeyError(item)
        return _items[self._h][item]

    def __setitem__(self, item: str, value: str, /) -> None:
        if not self:
            raise KeyError(item)
        self.Set(item, value)

    def __delitem__(self, item: str, /) -> None:
        if item not in self:
            raise KeyError(item)
        self.Delete(item)

    def get(self, key: str, default: Any = None) -> str | None:
        """Return the value of a key."""
        return _items[self._h].get(_key(key), default) if self else default

    def keys(self) -> list[str]:
        """Return the keys."""
        return list(_items[self._h]) if self else []

    def values(self) -> list[str]:
        """Return the values."""
        return list(_items[self._h].values()) if self else []

    def items(self) -> list[tuple[str, str]]:
        """Return pairs of key and value."""
        return list(_items[self._h].items()) if self else []

    def update(self, items: Info | Mapping[str, str] | Iterable[tuple[str, str]] = (), **kwds: str) -> None:
        """Set the values of several keys."""
        if not self:
            raise KeyError("info is null")
        if isinstance(items, Info):
            items = items.items()
        pairs = [(key, items[key]) for key in items] if hasattr(items, "keys") else items
        for key, value in [*pairs, *kwds.items()]:
            self.Set(key, value)

    def pop(self, key: str, *default: Any) -> str:
        """Remove a key, and return its value."""
        if key in self:
            value = self[key]
            self.Delete(key)
            return value
        if default:
            (value,) = default
            return value
        raise KeyError(key)

    def popitem(self) -> tuple[str, str]:
        """Remove a key, and return it with its value."""
        if not self:
            raise KeyError("info is null")
        if not len(self):
            raise KeyError("info is empty")
        key, value = self.items()[-1]
        self.Delete(key)
        return key, value

    def copy(self) -> Self:
        """Duplicate the Info."""
        return self.Dup() if self else type(self)()

    def clear(self) -> None:
        """Remove all keys."""
        for key in self.keys():
            self.Delete(key)


def _check_value(value):
    if not isinstance(value, str):
        raise TypeError(f"Info: expecting str as value, got {type(value).__name__}")
    if len(value.encode()) > _MAX_VAL:
        raise Exception(constants.ERR_INFO_VALUE)


def _key(key):
    if not isinstance(key, str):
        raise TypeError(f"Info: expecting str as key, got {type(key).__name__}")
    if not key or len(key.encode()) > constants.MAX_INFO_KEY:
        raise Exception(constants.ERR_INFO_KEY)
    return key


def environment(args):
    """Return the keys of MPI_INFO_ENV: how the program was started."""
    items = {"command": args[0] if args else "", "argv": " ".join(args[1:]), "wdir": os.getcwd()}
    size = os.environ.get("GORMAPY_JOB_SIZE")
    if size:
        items["maxprocs"] = items["soft"] = size
    limit = constants.MAX_INFO_VAL
    return {key: value[:limit] for key, value in items.items() if value}


def _make(handle, name):
    info = Info()
    info._h = handle
    named("Info", handle, name)
    return info


INFO_NULL = _make(0, "INFO_NULL")
INFO_ENV = _make(_ENV, "INFO_ENV")
try:
    _items[_ENV] = environment(getattr(sys, "orig_argv", None) or [])
except OSError:  # the working directory is gone
    _items[_ENV] = {}
