"""Protection domains and the memory registered in them."""

import ctypes
from contextlib import suppress
from dataclasses import dataclass

from .._ext import core, fast
from .buffer import locate
from .constants import Access
from .device import Context
from .errors import Error, check, integer, invalid, mismatch, refusal
from .handle import Handle

__all__ = ["MemoryRegion", "ProtectionDomain", "RemoteMemory"]


class ProtectionDomain(Handle):
    """A protection domain: memory regions and queue pairs of the same one can be used together."""

    def __init__(self, context):
        if not isinstance(context, Context):
            raise mismatch("alloc_pd", "context", "a Context", context)
        self._handle = check(core.RdmaAllocPD(context._handle))
        self.context = context
        self._kept = []  # memory of closed regions that peers may be writing to

    def close(self):
        """Close the protection domain, and first all regions and queue pairs in it."""
        super().close()
        self._kept.clear()

    def register(self, buffer, access=Access.ALL):
        """Return a new `MemoryRegion` of a buffer, which has its arguments and errors."""
        return MemoryRegion(self, buffer, access)

    reg_mr = register

    def create_qp(self, send_cq, recv_cq=None, **options):
        """Return a new `QueuePair`, which has its arguments and errors."""
        from .pair import QueuePair

        return QueuePair(self, send_cq, recv_cq, **options)

    def __repr__(self):
        return f"<ProtectionDomain of {self.context.name}{' closed' if self.closed else ''}>"


@dataclass(frozen=True, slots=True)
class RemoteMemory:
    """Memory of a peer, as operations name it. It can be pickled, and sent over any channel.

    `addr` is the address there (with some providers of libfabric it counts from 0), `rkey` the key of the region,
    `length` its size in bytes.
    """

    addr: int
    rkey: int
    length: int

    def __post_init__(self):
        integer("RemoteMemory", "addr", self.addr, 0, 2**64 - 1)
        integer("RemoteMemory", "rkey", self.rkey, 0, 2**64 - 1)
        integer("RemoteMemory", "length", self.length)


class MemoryRegion(Handle):
    """Registered memory: that of any object with the buffer protocol, or with DLPack on the processor.

    `buffer` is contiguous; the region holds the object until it is closed. A number makes a new zeroed buffer of that
    many bytes. `access` is a sum of `Access` flags. Read-only memory can only be registered without LOCAL_WRITE.

    Errors: `Error` for an empty or a read-only buffer; `TypeMismatch` for an object without memory.
    """

    def __init__(self, pd, buffer, access=Access.ALL):
        if not isinstance(pd, ProtectionDomain):
            raise mismatch("register", "pd", "a ProtectionDomain", pd)
        access = integer("register", "access", access, 0, 2**31)
        if isinstance(buffer, int) and not isinstance(buffer, bool):
            buffer = bytearray(integer("register", "buffer, a number of bytes,", buffer, 1, 2**48))
        writable = access & (Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC)
        address, nbytes, self._holder = locate(buffer, bool(writable), "register")
        if nbytes == 0:
            raise invalid("register", "the buffer is empty", length=0)
        self._handle = check(core.RdmaRegister(pd._handle, address, nbytes, access))
        addr, length, self.lkey, self.rkey, granted = map(int, core.RdmaRegionInfo(self._handle).split())
        self.pd = pd
        self.buffer = buffer
        self.addr = addr
        self.length = length
        self.access = Access(granted)
        self._address = address
        self.remote = RemoteMemory(addr, self.rkey, length)

    _holder = None  # while it is being made

    def close(self):
        """Deregister the memory; nothing accesses it any more afterwards.

        An exception is libfabric: a peer's write that has begun may continue until the protection domain is closed,
        which holds the memory for that long (``context.device.limits["lingers"]``).

        Errors: `Error` with status EBUSY if a peer that does not answer may still write to it: the memory is never
        freed then.
        """
        try:
            super().close()
        except Error as error:
            if error.status == "EBUSY":
                fast.retain(self._holder)
            raise
        finally:
            if self._holder is not None and self._lingers():
                self.pd._kept.append(self._holder)
            self._holder = self.buffer = None

    def _lingers(self):
        """Whether a peer may continue to write until the queue pairs of the protection domain are closed."""
        remote = self.access & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC)
        return bool(remote) and self.pd.context.device.limits["lingers"] and not self.pd.closed

    def read(self, length=None, offset=0):
        """Return a copy of `length` bytes of the region from `offset` on, in bytes; by default of all up to its end.

        Errors: `Error` for bytes outside of the region, or a region that is closed.
        """
        length, offset = self._range("read", length, offset)
        return ctypes.string_at(self._address + offset, length)

    def write(self, data, length=None, offset=0):
        """Copy `length` bytes of `data` into the region from `offset` on, in bytes; by default all of it.

        Errors: `Error` for bytes outside of the region, one that is closed or that does not allow LOCAL_WRITE;
        `TypeMismatch` for an object without memory.
        """
        with suppress(TypeError), memoryview(data) as view:
            data = bytes(view)
        if not isinstance(data, bytes):
            raise mismatch("write", "data", "an object with memory", data)
        length, offset = self._range("write", len(data) if length is None else length, offset)
        if length > len(data):
            raise invalid("write", f"{length} bytes of data that has {len(data)}", length=length, data=len(data))
        if not self.access & Access.LOCAL_WRITE:
            raise refusal("EACCES", "write", "the region does not allow LOCAL_WRITE", {"length": length})
        ctypes.memmove(self._address + offset, data, length)

    def _range(self, operation, length, offset):
        if self._holder is None:
            raise refusal("EBADF", operation, "this MemoryRegion is closed")
        offset = integer(operation, "offset", offset)
        length = max(0, self.length - offset) if length is None else integer(operation, "length", length)
        if offset + length > self.length:
            text = f"{length} bytes at offset {offset} are outside of the region of {self.length} bytes"
            raise invalid(operation, text, length=length, offset=offset, region=self.length)
        return length, offset

    def __len__(self):
        return self.length

    def __repr__(self):
        state = " closed" if self.closed else ""
        return f"<MemoryRegion {self.length} bytes at {self.addr:#x}, rkey {self.rkey:#x}, {self.access!r}{state}>"
