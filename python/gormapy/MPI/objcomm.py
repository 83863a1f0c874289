"""Messages and collective operations on Python objects, which are sent as pickles."""

from __future__ import annotations

from array import array
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import TYPE_CHECKING, Any, Literal

from gormapy._ext import fast
from gormapy._rc import rc

from .commlock import _comm_lock
from .constants import ANY_SOURCE, ANY_TAG, PROC_NULL, ROOT
from .exception import Exception
from .message import Message, receive_object
from .msgbuffer import acquire, byte
from .op import SUM
from .request import Request, finish
from .serialize import pickle
from .status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from gormapy.typing import Buffer

    from .op import Op

_NO_OPERATION = 0  # in place of the operation of a reduction


def _memory(nbytes):
    """Return memory for objects that arrive, with its address and holder."""
    memory = bytearray(nbytes)
    address, _, _, _, _, holder = acquire(memory, False)
    return memory, address, holder


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
        return fast.p2p(kind, self._h, address, nbytes, byte()._h, dest, tag, holder)

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send in standard mode."""
        finish(self._send_object(fast.SEND, obj, dest, tag))

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send in buffered mode."""
        finish(self._send_object(fast.BSEND, obj, dest, tag))

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send in synchronous mode."""
        finish(self._send_object(fast.SSEND, obj, dest, tag))

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
        status = Status() if status is None else status
        handle = fast.mprobe(self._h, source, tag, status)
        return receive_object(handle, status._nbytes)

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
        request = Request._started(fast.p2p(fast.RECV, self._h, address, nbytes, byte()._h, source, tag, holder))
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
        sending = self.isend(sendobj, dest, sendtag)
        received = self.recv(recvbuf, source, recvtag, status)
        sending.Wait()
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


def _coll(kind, comm, send, recv, root, *memory):
    """Run a collective operation on bytes; send and recv are (address, count, type handle)."""
    fast.coll_blocking(kind, comm._h, *send, *recv, _NO_OPERATION, root, memory)


def _collv(kind, comm, send, recv, root, *memory):
    """Run a collective operation with counts on bytes; send and recv are (address, counts, displs, type handle)."""
    finish(fast.collv_blocking(kind, comm._h, *send, *recv, root, memory))


# An operation of two steps takes two numbers of the communicator's collectives at every rank. One whose first step
# fails takes the second step, too, with what it has: the others may be in it, and the next call has to have the same
# number at all ranks. An argument that is wrong by itself, as a root that does not exist, fails in both steps alike and
# takes no number.


def _tried(step, *args):
    """Take a step; return the error that it ended with, or None."""
    try:
        step(*args)
    except Exception as failure:
        return failure
    return None


def _settle(*failures):
    """Raise the first error of the steps of an operation, if there is one."""
    for failure in failures:
        if failure is not None:
            raise failure


def _known(sizes, failed):
    """Return the sizes that the first step has told; zeros if it failed, since nobody can tell what it left there."""
    return [0] * len(sizes) if failed else sizes.tolist()


# The first message of an operation says how long the object is, and has room for a short one: then it
# is the only message.
_HEAD = 512


def _fill_head(head, data):
    head[:8] = len(data).to_bytes(8, "little")
    if len(data) <= _HEAD - 8:
        head[8 : 8 + len(data)] = data


def _displs(counts):
    displs, end = [], 0
    for count in counts:
        displs.append(end)
        end += count
    return displs, end


def _loads(memory, counts, displs):
    view = memoryview(memory)
    return [pickle.loads(view[d : d + n]) for n, d in zip(counts, displs)]


class ObjectCollectives:
    """Mix-in with the lower-case collective operations of a communicator."""

    __slots__ = ()

    def barrier(self) -> None:
        """Barrier synchronization."""
        self.Barrier()

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Broadcast."""
        if self._two_groups:
            return _bcast_across(self, obj, root)
        octet = byte()._h
        head, where, hold_head = _memory(_HEAD)
        data = None
        if self.rank == root:
            data = pickle.dumps(obj)
            _fill_head(head, data)
        nothing = (0, 0, octet)
        with _comm_lock(self, "bcast"):
            _coll(fast.BCAST, self, nothing, (where, _HEAD, octet), root, hold_head)
            size = int.from_bytes(head[:8], "little")
            short = size <= _HEAD - 8
            if not short:
                if data is None:
                    data, address, holder = _memory(size)
                else:
                    address, _, _, _, _, holder = acquire(data, True)
                _coll(fast.BCAST, self, nothing, (address, size, octet), root, holder)
        return pickle.loads(memoryview(head)[8 : 8 + size] if short else data)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Gather."""
        if self._two_groups and root in (ROOT, PROC_NULL):
            sendobj = None
        octet = byte()._h
        address, nbytes, _, _, _, holder = acquire(pickle.dumps(sendobj), True)
        mine, sizes = array("q", [nbytes]), array("q")
        receiving = self._is_root(root)
        if receiving:
            sizes = array("q", bytes(8 * self._peers))
        send, recv = (mine.buffer_info()[0], 8, octet), (sizes.buffer_info()[0], 8, octet)
        with _comm_lock(self, "gather"):
            failed = _tried(_coll, fast.GATHER, self, send, recv, root, mine, sizes)
            send = (address, [nbytes], None, octet)
            if not receiving:
                _settle(failed, _tried(_collv, fast.GATHERV, self, send, (0, None, None, octet), root, holder))
                return None
            counts = _known(sizes, failed)
            displs, total = _displs(counts)
            memory, where, hold_memory = _memory(total)
            recv = (where, counts, displs, octet)
            _settle(failed, _tried(_collv, fast.GATHERV, self, send, recv, root, holder, hold_memory))
        return _loads(memory, counts, displs)

    def scatter(self, sendobj: Any, root: int = 0) -> Any:
        """Scatter."""
        octet = byte()._h
        mine, sizes, holder = array("q", [0]), array("q"), None
        parts = (0, None, None, octet)
        if self._is_root(root):
            data, sizes, displs = _dumps_each(sendobj, self._peers)
            address, _, _, _, _, holder = acquire(data, True)
            parts = (address, sizes.tolist(), displs, octet)
        send, recv = (sizes.buffer_info()[0], 8, octet), (mine.buffer_info()[0], 8, octet)
        with _comm_lock(self, "scatter"):
            failed = _tried(_coll, fast.SCATTER, self, send, recv, root, mine, sizes)
            (size,) = _known(mine, failed)
            memory, where, hold_memory = _memory(size)
            recv = (where, [size], None, octet)
            _settle(failed, _tried(_collv, fast.SCATTERV, self, parts, recv, root, holder, hold_memory))
        if self._two_groups and root in (ROOT, PROC_NULL):
            return None
        return pickle.loads(memory)

    def allgather(self, sendobj: Any) -> list[Any]:
        """Gather to all."""
        if self._two_groups:
            return _allgather_across(self, sendobj)
        octet = byte()._h
        data = pickle.dumps(sendobj)
        mine, mine_at, hold_mine = _memory(_HEAD)
        _fill_head(mine, data)
        heads, heads_at, hold_heads = _memory(_HEAD * self.size)
        with _comm_lock(self, "allgather"):
            _coll(fast.ALLGATHER, self, (mine_at, _HEAD, octet), (heads_at, _HEAD, octet), 0, hold_mine, hold_heads)
            starts = range(0, len(heads), _HEAD)
            counts = [int.from_bytes(heads[at : at + 8], "little") for at in starts]
            if max(counts) <= _HEAD - 8:
                memory, displs = heads, [at + 8 for at in starts]
            else:
                displs, total = _displs(counts)
                address, nbytes, _, _, _, holder = acquire(data, True)
                memory, where, hold_memory = _memory(total)
                send, recv = (address, [nbytes], None, octet), (where, counts, displs, octet)
                _collv(fast.ALLGATHERV, self, send, recv, 0, holder, hold_memory)
        return _loads(memory, counts, displs)

    def alltoall(self, sendobj: Any) -> list[Any]:
        """All to all scatter/gather."""
        octet = byte()._h
        data, sizes, displs = _dumps_each(sendobj, self._peers)
        address, _, _, _, _, holder = acquire(data, True)
        arriving = array("q", bytes(8 * self._peers))
        send, recv = (sizes.buffer_info()[0], 8, octet), (arriving.buffer_info()[0], 8, octet)
        with _comm_lock(self, "alltoall"):
            failed = _tried(_coll, fast.ALLTOALL, self, send, recv, 0, sizes, arriving)
            counts = _known(arriving, failed)
            r_displs, total = _displs(counts)
            memory, where, hold_memory = _memory(total)
            send, recv = (address, sizes.tolist(), displs, octet), (where, counts, r_displs, octet)
            _settle(failed, _tried(_collv, fast.ALLTOALLV, self, send, recv, 0, holder, hold_memory))
        return _loads(memory, counts, r_displs)

    def reduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        """Reduce to one process."""
        objects = self.gather(sendobj, root)
        return None if objects is None else _folded(objects, op)

    def allreduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Reduce to all processes."""
        if self._two_groups:
            return _folded(self.allgather(sendobj), op)
        # one process folds, so that all get the same object whatever the operation does
        with _comm_lock(self, "allreduce"):  # the locks of the two calls leave room for another thread between them
            return self.bcast(self.reduce(sendobj, op, 0), 0)


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


# Collectives of intercommunicators are two operations of the core, whatever the sizes: the other members of the root's
# group, and the other group, which do not learn the sizes, take part in as many.


def _bcast_across(comm, obj, root):
    """Broadcast from a root to the other group."""
    octet, nothing = byte()._h, (0, 0, byte()._h)
    head, where, hold_head = _memory(_HEAD)
    data = b""
    if root == ROOT:
        data = pickle.dumps(obj)
        _fill_head(head, data)
    with _comm_lock(comm, "bcast"):
        failed = _tried(_coll, fast.BCAST, comm, nothing, (where, _HEAD, octet), root, hold_head)
        size = 0 if failed and root != ROOT else int.from_bytes(head[:8], "little")
        if size <= _HEAD - 8:
            size, data, short = 0, b"", memoryview(head)[8 : 8 + size]
        else:
            short = None
        if root == ROOT:
            address, _, _, _, _, holder = acquire(data, True)
        else:
            data, address, holder = _memory(size)
        _settle(failed, _tried(_coll, fast.BCAST, comm, nothing, (address, size, octet), root, holder))
    if root in (ROOT, PROC_NULL):
        return None
    return pickle.loads(data if short is None else short)


def _allgather_across(comm, sendobj):
    """Gather the objects of the other group."""
    octet = byte()._h
    data = pickle.dumps(sendobj)
    address, nbytes, _, _, _, holder = acquire(data, True)
    mine, sizes = array("q", [nbytes]), array("q", bytes(8 * comm._peers))
    send, recv = (mine.buffer_info()[0], 8, octet), (sizes.buffer_info()[0], 8, octet)
    with _comm_lock(comm, "allgather"):
        failed = _tried(_coll, fast.ALLGATHER, comm, send, recv, 0, mine, sizes)
        counts = _known(sizes, failed)
        displs, total = _displs(counts)
        memory, where, hold_memory = _memory(total)
        send, recv = (address, [nbytes], None, octet), (where, counts, displs, octet)
        _settle(failed, _tried(_collv, fast.ALLGATHERV, comm, send, recv, 0, holder, hold_memory))
    return _loads(memory, counts, displs)


def _dumps_each(objects, size):
    """Pickle an object for each rank; return bytes, sizes and displacements."""
    try:
        items = [None] * size if objects is None else list(objects)
    except TypeError:
        got = type(objects).__name__
        raise TypeError(f"expecting a sequence of {size} items, one for each rank, got {got}") from None
    if len(items) != size:
        raise ValueError(f"expecting {size} items, one for each rank, got {len(items)}")
    pickles = [pickle.dumps(item) for item in items]
    sizes = array("q", map(len, pickles))
    return b"".join(pickles), sizes, _displs(sizes)[0]


def _folded(objects, op):
    """Combine objects in rank order."""
    if op is None:
        op = SUM
    result, *rest = objects
    for obj in rest:
        result = op(result, obj)
    return result
