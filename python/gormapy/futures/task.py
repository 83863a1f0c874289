"""One call, from its submission until it is sent or run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future


class Task:
    """A call and the future of its result."""

    __slots__ = ("buffers", "call", "data", "error", "future")

    def __init__(self, future: Future[Any], fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.future = future
        self.call = (fn, args, kwargs)
        self.data: bytes | None = None
        self.buffers: Sequence[Any] = ()
        self.error: BaseException | None = None

    def pack(self, out_of_band: bool) -> None:
        """Serialize the call, if that has not been done; keep the error if that fails."""
        if self.data is not None or self.error is not None:
            return
        try:
            self.data, self.buffers = protocol.dumps(self.call, out_of_band)
        except BaseException as error:
            self.error = error
        self.call = None

    def begin(self) -> bool:
        """Make the future running. Return False if it was cancelled, or the program has finished it itself."""
        if self.future.done() and not self.future.cancelled():
            return False
        return self.future.set_running_or_notify_cancel()
