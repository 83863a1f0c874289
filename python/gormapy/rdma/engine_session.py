"""Transfers between the same two pieces of memory, again and again."""

import numpy as np

from .._ext import core
from .engine_status import TransferStatus, refused, unsuccessful
from .errors import described, integer, mismatch
from .handle import Handle

__all__ = ["Session"]

_MOST = 2**63 - 1
_INVALID = 11


def transfer(engine, session, read, local_offset, remote_offset, size, uid):
    """Begin a transfer of a session of the core and return its status."""
    number = -1 if uid is None else uid_number(uid)
    try:
        handle = core.RdmaEngineTransfer(session, read, local_offset, remote_offset, size, number)
    except (TypeError, ValueError, OverflowError):
        numbers = {"local_offset": local_offset, "remote_offset": remote_offset, "size": size}
        for name, value in numbers.items():
            integer("transfer", name, value, -(2**200), 2**200)
        return unsuccessful(_INVALID, f"numbers of more than 64 bits: {numbers}", uid)
    if handle < 0:
        return refused(described(handle), uid)
    return TransferStatus(handle, engine, uid)


def transfer_batch(engine, session, read, local_offsets, remote_offsets, sizes, uid):
    """Begin a transfer of many parts and return its status."""
    number = -1 if uid is None else uid_number(uid)
    columns = []
    for name, values in (("local_offsets", local_offsets), ("remote_offsets", remote_offsets), ("sizes", sizes)):
        try:
            column = np.asarray(values)
        except ValueError:
            raise mismatch("batch", name, "a flat sequence of integers", values) from None
        if column.ndim != 1 or (column.size and column.dtype.kind not in "iu"):
            if column.dtype == object and all(hasattr(value, "__index__") for value in column.flat):
                return unsuccessful(_INVALID, f"{name} has numbers of more than 64 bits", uid)
            raise mismatch("batch", name, "a flat sequence of integers", values)
        if column.size and column.dtype == np.uint64 and column.max() > _MOST:
            return unsuccessful(_INVALID, f"{name} has numbers of more than 63 bits", uid)
        columns.append(column)
    lengths = [len(column) for column in columns]
    if len(set(lengths)) != 1:
        text = f"{lengths[0]} local offsets, {lengths[1]} remote offsets and {lengths[2]} sizes: they must be as many"
        return unsuccessful(_INVALID, text, uid)
    if lengths[0] == 0:
        return unsuccessful(_INVALID, "a batch without entries", uid)
    entries = np.empty((lengths[0], 3), np.int64)
    for i, column in enumerate(columns):
        entries[:, i] = column
    handle = core.RdmaEngineBatch(session, read, entries.ctypes.data, lengths[0], number)
    if handle < 0:
        return refused(described(handle), uid)
    return TransferStatus(handle, engine, uid)


def uid_number(uid):
    """Return a uid, checked."""
    return integer("transfer", "uid", uid, 0, _MOST)


class Session(Handle):
    """A local and a remote piece of memory between which there are many transfers.

    `local` and `remote` are their `MemoryDesc`. With a session nothing has to be looked up for each transfer. All
    methods return at once, with a `TransferStatus` of the whole; offsets and sizes are in bytes. With a `uid` (see
    `Engine.allocate_transfer_uid`) the target is notified when all data has arrived. Errors are in the status: an
    exception is raised only for arguments of the wrong type.
    """

    def __init__(self, engine, local, remote, handle):
        self.engine, self.local, self.remote, self._handle = engine, local, remote, handle

    def read(self, local_offset, remote_offset, size, uid=None):
        """Read `size` bytes of the remote memory into the local."""
        return transfer(self.engine, self._handle, 1, local_offset, remote_offset, size, uid)

    def write(self, local_offset, remote_offset, size, uid=None):
        """Write `size` bytes of the local memory to the remote."""
        return transfer(self.engine, self._handle, 0, local_offset, remote_offset, size, uid)

    def batch_read(self, local_offsets, remote_offsets, sizes, uid=None):
        """Read many parts, given by sequences of the same length, as one transfer."""
        return transfer_batch(self.engine, self._handle, 1, local_offsets, remote_offsets, sizes, uid)

    def batch_write(self, local_offsets, remote_offsets, sizes, uid=None):
        """Write many parts, given by sequences of the same length, as one transfer."""
        return transfer_batch(self.engine, self._handle, 0, local_offsets, remote_offsets, sizes, uid)

    @property
    def alive(self):
        """Whether both pieces of memory and their engines are still registered; the peer may have ended, though."""
        return bool(self._handle) and core.RdmaEngineSessionAlive(self._handle) == 1

    def __repr__(self):
        return (
            f"<Session {self.local.engine!r} {self.local.size} bytes, {self.remote.engine!r} {self.remote.size} bytes>"
        )
