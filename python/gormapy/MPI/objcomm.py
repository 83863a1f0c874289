"""Messages and collective operations on Python objects, which are sent as pickles."""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import TYPE_CHECKING, Any, Literal

from gormapy._ext import fast
from gormapy._rc import rc

from . import commlock, objinter
from .constants import ANY_SOURCE, ANY_TAG, PROC_NULL
from .hot import hot
from .message import Message
from .msgbuffer import acquire, byte
from .op import SUM
from .request import Request, finish
from .serialize import loaded, pickle
from .status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from gormapy.typing import Buffer

    from .op import Op

_OCTET = byte()._h
fast.set_objects(pickle, commlock._tables, commlock._comm_lock, _OCTET, rc)


def _pickled(obj, dest):
    """Return what is sent of an object: nothing to PROC_NULL."""
    return b"" if dest == PROC_NULL else pickle.dumps(obj)


class ObjectMessages:
    """Mix-in with the lower-case messages of a communicator."""

    __slots__ = ()

    def _send_object(self, kind, obj, dest, tag):
        """Start to send an object."""
        if dest == PROC_NULL:
            address = nbytes = 0
            holder = None
        else:
            address, nbytes, _, _, _, holder = acquire(pickle.dumps(obj), True)
        return fast.p2p(kind, self._h, address, nbytes, _OCTET, dest, tag, holder)

    @hot
    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object."""
        fast.send_object(fast.SEND, self._h, _pickled(obj, dest), dest, tag)

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object in buffered mode: copy it and return."""
        fast.send_object(fast.BSEND, self._h, _pickled(obj, dest), dest, tag)

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object in synchronous mode, and return when its receive has begun."""
        fast.send_object(fast.SSEND, self._h, _pickled(obj, dest), dest, tag)

    @hot
    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Start to send an object."""
        return Request._started(self._send_object(fast.SEND, obj, dest, tag))

    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Start to send an object in buffered mode."""
        return Request._started(self._send_object(fast.BSEND, obj, dest, tag))

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Start to send an object in synchronous mode."""
        return Request._started(self._send_object(fast.SSEND, obj, dest, tag))

    @hot
    def recv(
        self, buf: Buffer | None = None, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Any:
        """Receive an object."""
        if source == PROC_NULL or buf is not None:
            return self.irecv(buf, source, tag).wait(status)
        data = fast.recv_object(self._h, source, tag, status)
        return loaded(data)

    @hot
    def irecv(self, buf: Buffer | None = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Start to receive an object."""
        if buf is not None:
            import warnings

            rank = f"; a rank is given as source={buf}" if isinstance(buf, int) else ""
            warnings.warn(f"the 'buf' argument is deprecated{rank}", UserWarning, stacklevel=3)
        if source == PROC_NULL:
            memory = bytearray()
        elif buf is None or isinstance(buf, int):
            memory = _lazy_memory(buf)
        else:
            memory = buf
        address, nbytes, _, _, _, holder = acquire(memory, False)
        request = Request._started(fast.p2p(fast.RECV, self._h, address, nbytes, _OCTET, source, tag, holder))
        request._arriving = memory
        return request

    @hot
    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Buffer | None = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Send an object and receive another one, in whatever order they go."""
        sending = self._send_object(fast.SEND, sendobj, dest, sendtag)
        received = self.recv(recvbuf, source, recvtag, status)
        finish(sending)
        return received

    def probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Literal[True]:
        """Wait for a message, and leave it to be received."""
        return self.Probe(source, tag, status)

    def iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> bool:
        """Report whether a message has come, and leave it to be received."""
        return self.Iprobe(source, tag, status)

    @hot
    def mprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Message:
        """Wait for an object, and reserve it for the returned Message."""
        return Message.probe(self, source, tag, status)

    def improbe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Message | None:
        """Reserve an object for the returned Message, if one has come."""
        return Message.iprobe(self, source, tag, status)


def _lazy_memory(nbytes):
    """Return memory for an object: its pages are touched only when data arrives in them."""
    if nbytes is None:
        return fast.room(rc.irecv_bufsz)  # or 16 MiB, if that is more
    if nbytes < 1 << 16:
        return bytearray(max(nbytes, 1))
    return mmap(-1, nbytes, MAP_PRIVATE | MAP_ANONYMOUS)


class ObjectCollectives:
    """Mix-in with the lower-case collective operations of a communicator."""

    __slots__ = ()

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.Barrier()

    @hot
    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Copy an object of one rank to all others."""
        if self._two_groups:
            return objinter.bcast(self, obj, root)
        (data,) = fast.collect(self, fast.BCAST, pickle.dumps(obj) if self.rank == root else None, root)
        return loaded(data)

    @hot
    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Gather an object of each rank at one rank."""
        if self._two_groups:
            return objinter.gather(self, sendobj, root)
        pickles = fast.collect(self, fast.GATHER, pickle.dumps(sendobj), root)
        return _loads(pickles) if self.rank == root else None

    @hot
    def scatter(self, sendobj: Any, root: int = 0) -> Any:
        """Scatter objects of one rank to all ranks."""
        pickles = _dumps_each(sendobj, self._peers) if self._is_root(root) else None
        if self._two_groups:
            return objinter.scatter(self, pickles, root)
        (data,) = fast.collect(self, fast.SCATTER, pickles, root)
        return loaded(data)

    @hot
    def allgather(self, sendobj: Any) -> list[Any]:
        """Gather an object of each rank at all ranks."""
        if self._two_groups:
            return objinter.allgather(self, sendobj)
        return _loads(fast.collect(self, fast.ALLGATHER, pickle.dumps(sendobj), 0))

    @hot
    def alltoall(self, sendobj: Any) -> list[Any]:
        """Exchange objects among all ranks."""
        pickles = _dumps_each(sendobj, self._peers)
        if self._two_groups:
            return objinter.alltoall(self, pickles)
        return _loads(fast.collect(self, fast.ALLTOALL, pickles, 0))

    def reduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        """Combine the objects of all ranks at one rank."""
        objects = self.gather(sendobj, root)
        return None if objects is None else _folded(objects, op)

    @hot
    def allreduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Combine the objects of all ranks at all ranks."""
        if self._two_groups:
            return _folded(self.allgather(sendobj), op)
        return fast.allreduce_object(self, sendobj, op)


def _loads(pickles):
    return [loaded(data) for data in pickles]


class ObjectScans:
    """Mix-in with the lower-case scans of an intracommunicator."""

    __slots__ = ()

    def scan(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Combine the objects of the ranks up to this one."""
        return _folded(self.allgather(sendobj)[: self.rank + 1], op)

    def exscan(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Combine the objects of the ranks before this one."""
        before = self.allgather(sendobj)[: self.rank]
        return _folded(before, op) if before else None


def _dumps_each(objects, size):
    """Return a list with the pickle of an object for each rank."""
    try:
        items = [None] * size if objects is None else list(objects)
    except TypeError:
        got = type(objects).__name__
        raise TypeError(f"expecting a sequence of {size} items, one for each rank, got {got}") from None
    if len(items) != size:
        raise ValueError(f"expecting {size} items, one for each rank, got {len(items)}")
    return [pickle.dumps(item) for item in items]


def _folded(objects, op):
    """Combine objects in rank order."""
    if op is None:
        op = SUM
    result, *rest = objects
    for obj in rest:
        result = op(result, obj)
    return result
