"""Messages and collective operations on Python objects, which are sent as pickles."""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import TYPE_CHECKING, Any, Literal

from gormapy._ext import fast
from gormapy._rc import rc

from .commlock import _comm_lock
from .constants import ANY_SOURCE, ANY_TAG, PROC_NULL, ROOT
from .exception import Exception
from .message import Message
from .msgbuffer import acquire, byte
from .op import SUM, Op
from .request import Request, finish
from .serialize import pickle
from .status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from gormapy.typing import Buffer

_NO_OPERATION = 0  # in place of the operation of a reduction
_OCTET = byte()._h
fast.set_byte(_OCTET)


def _memory(nbytes):
    """Return memory for objects that arrive, with its address and holder."""
    memory = bytearray(nbytes)
    address, _, _, _, _, holder = acquire(memory, False)
    return memory, address, holder


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

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send in standard mode."""
        fast.send_object(fast.SEND, self._h, _pickled(obj, dest), dest, tag)

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send in buffered mode."""
        fast.send_object(fast.BSEND, self._h, _pickled(obj, dest), dest, tag)

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send in synchronous mode."""
        fast.send_object(fast.SSEND, self._h, _pickled(obj, dest), dest, tag)

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Nonblocking send."""
        return Request._started(self._send_object(fast.SEND, obj, dest, tag))

    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Nonblocking send in buffered mode."""
        return Request._started(self._send_object(fast.BSEND, obj, dest, tag))

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Nonblocking send in synchronous mode."""
        return Request._started(self._send_object(fast.SSEND, obj, dest, tag))

    def recv(
        self, buf: Buffer | None = None, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Any:
        """Receive."""
        if source == PROC_NULL or buf is not None:
            return self.irecv(buf, source, tag).wait(status)
        data = fast.recv_object(self._h, source, tag, status)
        return pickle.loads(data) if data else None

    def irecv(self, buf: Buffer | None = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Nonblocking receive."""
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
        """Send and receive."""
        sending = self._send_object(fast.SEND, sendobj, dest, sendtag)
        received = self.recv(recvbuf, source, recvtag, status)
        finish(sending)
        return received

    def probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Literal[True]:
        """Blocking test for a message."""
        return self.Probe(source, tag, status)

    def iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> bool:
        """Nonblocking test for a message."""
        return self.Iprobe(source, tag, status)

    def mprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Message:
        """Blocking test for a matched message."""
        return Message.probe(self, source, tag, status)

    def improbe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Message | None:
        """Nonblocking test for a matched message."""
        return Message.iprobe(self, source, tag, status)


# Room for an object of unknown size. Pages are touched only when data arrives in them, so that
# a receive for 100 bytes costs one page.
_LAZY_ROOM = 16 << 20


def _lazy_memory(nbytes):
    if nbytes is None:
        nbytes = max(rc.irecv_bufsz, _LAZY_ROOM)
    if nbytes < 1 << 16:
        return bytearray(max(nbytes, 1))
    return mmap(-1, nbytes, MAP_PRIVATE | MAP_ANONYMOUS)


def _displs(counts):
    displs, end = [], 0
    for count in counts:
        displs.append(end)
        end += count
    return displs, end


# Collectives of objects take two steps. The first one tells the sizes of the pickles, and brings the short ones. The
# second one moves those that are long: it is only taken by ranks that send or receive one, or by all if all know the
# sizes; the core numbers it at the others (gocore/coll/objects.go). In intercommunicators every rank takes it: the
# other members of the root's group do not learn the sizes.
#
# A rank whose first step fails takes the second step with what it has: the others may be in it, and the next call has
# to have the same number at all ranks. An argument that is wrong by itself, as a root that does not exist, fails in
# both steps alike and takes no number.

_SECOND = {
    fast.GATHER: ("gather", fast.GATHER_OBJECTS, fast.GATHERV),
    fast.SCATTER: ("scatter", fast.SCATTER_OBJECTS, fast.SCATTERV),
    fast.ALLGATHER: ("allgather", fast.ALLGATHERV, fast.ALLGATHERV),
    fast.ALLTOALL: ("alltoall", fast.ALLTOALL_OBJECTS, fast.ALLTOALLV),
}


def _collect(comm, kind, sending, parts, root=0):
    """Take the steps of a collective; return the pickles that this rank receives, in a list of parts.

    sending: the pickle that this rank sends, a list of one for each rank, or None.
    """
    name, inside, across = _SECOND[kind]
    with _comm_lock(comm, name):
        failed = None
        try:
            received, more = fast.exchange(kind, comm._h, sending, parts, root, comm._two_groups)
        except Exception as failure:
            if kind == fast.ALLGATHER and not comm._two_groups:
                raise  # the others know nothing of long objects, either
            received, more, failed = [b""] * parts, True, failure
        if more:
            short = fast.short_object(kind, comm._h)
            _move(comm, across if comm._two_groups else inside, short, sending, received, root, failed)
    return received


def _move(comm, kind, short, sending, received, root, failed=None):
    """Take the second step, for pickles that are longer than short; put them in the place of their sizes."""
    sends_each = isinstance(sending, list)
    pickles = sending if sends_each else [] if sending is None else [sending]
    sizes = [len(data) if len(data) > short else 0 for data in pickles]
    long = [data for data, size in zip(pickles, sizes) if size]
    data = long[0] if len(long) == 1 else b"".join(long)
    address, _, _, _, _, holder = acquire(data, True)
    counts = [part if isinstance(part, int) else 0 for part in received]
    displs, total = _displs(counts)
    memory, where, hold_memory = _memory(total)
    send = (address, sizes or None, _displs(sizes)[0] if sends_each else None, _OCTET)
    recv = (where, counts or None, displs if len(counts) > 1 else None, _OCTET)
    try:
        finish(fast.collv_blocking(kind, comm._h, *send, *recv, root, (holder, hold_memory)))
    except Exception as failure:
        raise failed or failure from None
    if failed:
        raise failed
    view = memoryview(memory)
    received[:] = [
        view[displ : displ + count] if count else part for part, count, displ in zip(received, counts, displs)
    ]


def _loads(pickles):
    return [pickle.loads(data) for data in pickles]


class ObjectCollectives:
    """Mix-in with the lower-case collective operations of a communicator."""

    __slots__ = ()

    def barrier(self) -> None:
        """Barrier synchronization."""
        self.Barrier()

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Broadcast."""
        data = pickle.dumps(obj) if self._is_root(root) else None
        with _comm_lock(self, "bcast"):
            data = _broadcast(self, data, root)
        if self._two_groups and root in (ROOT, PROC_NULL):
            return None
        return pickle.loads(data)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Gather."""
        if self._two_groups and root in (ROOT, PROC_NULL):
            sendobj = None
        receiving = self._is_root(root)
        received = _collect(self, fast.GATHER, pickle.dumps(sendobj), self._peers if receiving else 0, root)
        return _loads(received) if receiving else None

    def scatter(self, sendobj: Any, root: int = 0) -> Any:
        """Scatter."""
        sending = _dumps_each(sendobj, self._peers) if self._is_root(root) else None
        (data,) = _collect(self, fast.SCATTER, sending, 1, root)
        if self._two_groups and root in (ROOT, PROC_NULL):
            return None
        return pickle.loads(data)

    def allgather(self, sendobj: Any) -> list[Any]:
        """Gather to all."""
        return _loads(_collect(self, fast.ALLGATHER, pickle.dumps(sendobj), self._peers))

    def alltoall(self, sendobj: Any) -> list[Any]:
        """All to all scatter/gather."""
        return _loads(_collect(self, fast.ALLTOALL, _dumps_each(sendobj, self._peers), self._peers))

    def reduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        """Reduce to one process."""
        objects = self.gather(sendobj, root)
        return None if objects is None else _folded(objects, op)

    def allreduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Reduce to all processes."""
        if self._two_groups:
            return _folded(self.allgather(sendobj), op)
        data = pickle.dumps(sendobj)
        with _comm_lock(self, "allreduce"):
            received, more = fast.exchange(fast.ALLGATHER, self._h, data, self.size, 0, False)
            if not more:
                objects = _loads(received)
                if _same_everywhere(objects, op):
                    return _folded(objects, op)
            else:
                if self.rank != 0:
                    received = []
                short = fast.short_object(fast.ALLGATHER, self._h)
                _move(self, fast.GATHER_OBJECTS, short, data, received, 0)
                objects = _loads(received)
            # one process folds, so that all get the same object whatever the operation does
            result = pickle.dumps(_folded(objects, op)) if self.rank == 0 else None
            return pickle.loads(_broadcast(self, result, 0))


def _broadcast(comm, data, root):
    """Take the steps of a broadcast, data is the root's pickle; return the pickle."""
    failed = None
    try:
        (received,), more = fast.exchange(fast.BCAST, comm._h, data, 1, root, comm._two_groups)
    except Exception as failure:
        if not comm._two_groups:
            raise
        received, more, failed = 0, True, failure
    if not more:
        return received
    size = received if isinstance(received, int) else 0
    if data is None:
        memory, address, holder = _memory(size)
    else:
        memory = data
        address, _, _, _, _, holder = acquire(data, True)
    try:
        fast.coll_blocking(fast.BCAST, comm._h, 0, 0, _OCTET, address, size, _OCTET, _NO_OPERATION, root, holder)
    except Exception as failure:
        raise failed or failure from None
    if failed:
        raise failed
    return memory if size else received


# Values that every rank computes alike from the same objects
_PLAIN = {bool, int, float, complex, str, bytes, type(None)}


def _same_everywhere(objects, op):
    """Report whether every rank gets the same result if each folds the objects."""
    return (op is None or (isinstance(op, Op) and op.is_predefined)) and _PLAIN.issuperset(map(type, objects))


class ObjectScans:
    """Mix-in with the lower-case scans of an intracommunicator."""

    __slots__ = ()

    def scan(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Inclusive scan."""
        return _folded(self.allgather(sendobj)[: self.rank + 1], op)

    def exscan(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Exclusive scan."""
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
