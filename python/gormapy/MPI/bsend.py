"""Buffers that a program attaches for sends in buffered mode.

The core copies a buffered message into memory of its own until the receiver takes it. An attached buffer
is therefore kept for the program and never used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import constants
from .buffer import buffer
from .exception import Exception
from .msgbuffer import acquire
from .sentinel import BUFFER_AUTOMATIC

if TYPE_CHECKING:
    from gormapy.typing import Buffer

    from .request import Request

_attached = {}  # communicator's handle, a key of a session, 0 for the process -> the attached buffer


def attach(owner, buf):
    """Attach a buffer for a communicator, a session or the process."""
    if owner in _attached:
        raise Exception(constants.ERR_BUFFER)
    if not (buf is None or buf is BUFFER_AUTOMATIC or isinstance(buf, type(BUFFER_AUTOMATIC))):
        acquire(buf, False)  # refuses an object that is no buffer, or is read-only
        if not isinstance(buf, buffer):
            buf = buffer.frombuffer(buf)
    elif buf is None:
        buf = BUFFER_AUTOMATIC
    _attached[owner] = buf


def detach(owner):
    """Remove and return the attached buffer."""
    return _attached.pop(owner, None)


def forget(owner):
    """Remove the buffer of what is freed."""
    _attached.pop(owner, None)


def Attach_buffer(buf: Buffer | None) -> None:
    """Attach a buffer for messages in buffered mode."""
    attach(0, buf)


def Detach_buffer() -> Buffer | None:
    """Detach the buffer for messages in buffered mode."""
    return detach(0)


def Flush_buffer() -> None:
    """Wait until all buffered messages have been sent."""
    # no message is ever in the buffer


def Iflush_buffer() -> Request:
    """Start to wait until all buffered messages have been sent."""
    from .request import Request  # imported here to avoid a cycle of imports

    return Request()
