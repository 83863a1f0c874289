"""The side of a worker: it serves one link until the manager says that this is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import failure, protocol
from .setup import Setup
from .workers import serving

if TYPE_CHECKING:
    from .protocol import Link


def serve(link: Link, imported: bool = True) -> bool:
    """Execute what the manager sends, in this thread. Return False if that has ended because of an error.

    Parameters
    ----------
    link : Link
        The link, in which this rank is a worker.
    imported : bool
        Whether this process runs the main script itself, as the ranks of MPICommExecutor do.
    """
    worker = Worker(link, imported)
    with serving(link.local):
        while worker.answer():
            pass
    return worker.well


class Worker:
    """What a worker knows of its manager."""

    def __init__(self, link: Link, imported: bool) -> None:
        self._link = link
        self._imported = imported
        self.well = True

    def answer(self) -> bool:
        """Wait for a message and answer it. Return False after the last one."""
        tag, data, buffers = self._link.receive()
        kind = protocol.kind_of(tag)
        if kind == protocol.LEAVE:
            self.well = not data
            return False
        if kind == protocol.SETUP:
            answer = self._set_up(data)
        else:
            answer = _execute(data, buffers, bool(tag & protocol.OUT_OF_BAND))
        del data, buffers
        self._link.send(self._link.manager, *answer)
        return True

    def _set_up(self, data):
        setup = None
        try:
            setup, given = Setup.unpacked(data)
            setup.apply(self._imported, given)
            self._imported = self._imported or setup.main
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            said = Setup.failed(setup, error) if setup is not None else f"{type(error).__name__}: {error}"
            return protocol.BROKEN, protocol.dumps((said, failure.pack(error, 2)), False)[0]
        return protocol.READY, b""


def _execute(data: Any, buffers: Any, out_of_band: bool) -> Any:
    """Do a task; return the answer: its kind, its data and its buffers."""
    try:
        fn, args, kwargs = protocol.loads(data, buffers)
        result = fn(*args, **kwargs)
        del fn, args, kwargs
        return protocol.RESULT, *protocol.dumps(result, out_of_band)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return protocol.FAILURE, failure.pack(error, 1)
