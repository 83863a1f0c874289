"""Serialization of Python objects."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .buffer import buffer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gormapy.typing import Buffer


def load() -> None:
    """Import pickle, which is otherwise done on first use: a program that only sends arrays need not wait for it.

    It is called before Python ends, because nothing can be imported any more then.
    """
    from pickle import dumps, loads

    if pickle._dumps is _standard_dumps:
        pickle._dumps = dumps
    if pickle._loads is _standard_loads:
        pickle._loads = loads


def _standard_dumps(*args, **kwargs):
    from pickle import dumps

    load()
    return dumps(*args, **kwargs)


def _standard_loads(*args, **kwargs):
    from pickle import loads

    load()
    return loads(*args, **kwargs)


class Pickle:
    """Pickling of Python objects."""

    # Messages use _dumps and _loads: dumps and loads can't be replaced, as in mpi4py.
    __slots__ = ("_default", "_dumps", "_loads", "_protocol", "_threshold")

    def __init__(
        self,
        dumps: Callable[..., bytes] | None = None,
        loads: Callable[..., Any] | None = None,
        protocol: int | None = None,
        threshold: int | None = None,
    ) -> None:
        """Choose the functions that pickle and unpickle, and their settings."""
        self._dumps = dumps or _standard_dumps
        self._loads = loads or _standard_loads
        self.THRESHOLD = threshold
        self._default = dumps is None
        if dumps is not None:
            from pickle import dumps as standard

            self._default = dumps is standard
        self.PROTOCOL = protocol

    def dumps(self, obj: Any) -> bytes:
        """Pickle an object."""
        try:
            return self._dumps(obj) if self._protocol is None else self._dumps(obj, self._protocol)
        except Exception as error:
            self._explain_dumps(error, obj)
            raise

    def _explain_dumps(self, error, obj, call=None):
        """Add to an exception of dumps, in a call of this name, which part of the object can't be pickled."""
        from .explain import note_unpicklable

        note_unpicklable(error, obj, self._dumps, call)

    def loads(self, data: Buffer) -> Any:
        """Unpickle an object."""
        try:
            return self._loads(data)
        except Exception as error:
            self._explain_loads(error, data)
            raise

    def _explain_loads(self, error, data, call=None):
        """Add to an exception of loads, in a call of this name, that the data is no pickle, if it is none."""
        if self._default:
            from .explain import note_no_pickle

            note_no_pickle(error, data, call)

    def dumps_oob(self, obj: Any) -> tuple[bytes, list[buffer]]:
        """Pickle an object, with large blocks of memory in separate buffers."""
        buffers = []

        def keep(picklebuffer):
            block = buffer.frombuffer(picklebuffer, readonly=True)
            if block.nbytes < self._threshold:
                return True
            buffers.append(block)
            return False

        protocol = max(5, 5 if self._protocol is None else self._protocol)
        return self._dumps(obj, protocol, buffer_callback=keep), buffers

    def loads_oob(self, data: Buffer, buffers: Iterable[Buffer]) -> Any:
        """Unpickle an object of a pickle and separate buffers."""
        return self._loads(data, buffers=buffers)

    @property
    def PROTOCOL(self) -> int | None:
        """Protocol of pickles."""
        return self._protocol

    @PROTOCOL.setter
    def PROTOCOL(self, protocol: int | None) -> None:
        if protocol is None and self._default:
            protocol = int(os.environ.get("MPI4PY_PICKLE_PROTOCOL", "5"))
        self._protocol = protocol

    @property
    def THRESHOLD(self) -> int:
        """Bytes from which on a block of memory is separate."""
        return self._threshold

    @THRESHOLD.setter
    def THRESHOLD(self, threshold: int) -> None:
        if threshold is None:
            threshold = int(os.environ.get("MPI4PY_PICKLE_THRESHOLD", "262144"))
        self._threshold = threshold


pickle = Pickle()


def loaded(data):
    """Return the object of a pickle that has been received: None of an empty one."""
    return pickle.loads(data) if memoryview(data).nbytes else None
