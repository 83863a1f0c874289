"""Point-to-point messages from and into buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gormapy._ext import core, fast

from .constants import ANY_SOURCE, ANY_TAG, ERR_ARG, PROC_NULL
from .exception import check, error
from .handle import expect
from .hot import hot
from .info import INFO_NULL
from .message import Message
from .msgbuffer import acquire, byte, index, message
from .request import Prequest, Request, finish

if TYPE_CHECKING:
    from gormapy.typing import BufSpec

    from .info import Info
    from .status import Status

_p2p = fast.p2p


class PointToPoint:
    """Mix-in with the upper-case messages of a communicator."""

    __slots__ = ()

    def _send(self, kind, buf, dest, tag):
        address, count, datatype, holder = message(buf, True, dest)
        finish(_p2p(kind, self._h, address, count, datatype._h, dest, tag, holder))

    def _isend(self, kind, buf, dest, tag):
        address, count, datatype, holder = message(buf, True, dest)
        return Request._started(_p2p(kind, self._h, address, count, datatype._h, dest, tag, holder))

    def _send_init(self, kind, buf, dest, tag):
        address, count, datatype, holder = message(buf, True, dest)
        return Prequest._prepared(fast.p2p_init(kind, self._h, address, count, datatype._h, dest, tag), holder)

    @hot
    def Send(self, buf: BufSpec, dest: int, tag: int = 0) -> None:
        """Send a message, and return when `buf` may be changed."""
        self._send(fast.SEND, buf, dest, tag)

    @hot
    def Recv(self, buf: BufSpec, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> None:
        """Receive a message into `buf`."""
        address, count, datatype, holder = message(buf, False, source)
        finish(_p2p(fast.RECV, self._h, address, count, datatype._h, source, tag, holder), status)

    @hot
    def Sendrecv(
        self,
        sendbuf: BufSpec,
        dest: int,
        sendtag: int = 0,
        recvbuf: BufSpec | None = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send a message and receive another one, in whatever order they go."""
        s_address, s_count, s_type, s_holder = message(sendbuf, True, dest)
        r_address, r_count, r_type, r_holder = message(recvbuf, False, source)
        send = (s_address, s_count, s_type._h, dest, sendtag)
        recv = (r_address, r_count, r_type._h, source, recvtag)
        fast.sendrecv(self._h, *send, *recv, status, (s_holder, r_holder))

    @hot
    def Sendrecv_replace(
        self,
        buf: BufSpec,
        dest: int,
        sendtag: int = 0,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send the data of a buffer and receive a message into the same buffer."""
        rank = source if dest == PROC_NULL else dest
        address, count, datatype, holder = message(buf, False, rank)
        copy = _packed(address, count, datatype)
        where, nbytes, _, _, _, copy_holder = acquire(copy, True)
        send, recv = (where, nbytes, byte()._h, dest, sendtag), (address, count, datatype._h, source, recvtag)
        fast.sendrecv(self._h, *send, *recv, status, (holder, copy_holder))

    def Isendrecv(
        self,
        sendbuf: BufSpec,
        dest: int,
        sendtag: int = 0,
        recvbuf: BufSpec | None = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
    ) -> Request:
        """Start to send a message and to receive another one."""
        s_address, s_count, s_type, s_holder = message(sendbuf, True, dest)
        r_address, r_count, r_type, r_holder = message(recvbuf, False, source)
        send = (s_address, s_count, s_type._h, dest, sendtag)
        recv = (r_address, r_count, r_type._h, source, recvtag)
        return Request._started(fast.isendrecv(self._h, *send, *recv, (s_holder, r_holder)))

    def Isendrecv_replace(
        self, buf: BufSpec, dest: int, sendtag: int = 0, source: int = ANY_SOURCE, recvtag: int = ANY_TAG
    ) -> Request:
        """Start to send the data of a buffer and to receive a message into the same buffer."""
        rank = source if dest == PROC_NULL else dest
        address, count, datatype, holder = message(buf, False, rank)
        copy = _packed(address, count, datatype)
        where, nbytes, _, _, _, copy_holder = acquire(copy, True)
        send, recv = (where, nbytes, byte()._h, dest, sendtag), (address, count, datatype._h, source, recvtag)
        return Request._started(fast.isendrecv(self._h, *send, *recv, (holder, copy_holder)))

    @hot
    def Isend(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Start to send a message."""
        return self._isend(fast.SEND, buf, dest, tag)

    @hot
    def Irecv(self, buf: BufSpec, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Start to receive a message into `buf`."""
        address, count, datatype, holder = message(buf, False, source)
        return Request._started(_p2p(fast.RECV, self._h, address, count, datatype._h, source, tag, holder))

    def Probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Literal[True]:
        """Wait for a message, and leave it to be received."""
        if source == PROC_NULL:
            if status is not None:
                status._set(PROC_NULL)
            return True
        fast.probe(self._h, source, tag, status)
        return True

    def Iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> bool:
        """Report whether a message has come, and leave it to be received."""
        if source == PROC_NULL:
            return self.Probe(source, tag, status)
        return bool(fast.iprobe(self._h, source, tag, status))

    @hot
    def Mprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Message:
        """Wait for a message, and reserve it for the returned Message."""
        return Message.Probe(self, source, tag, status)

    def Improbe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Message | None:
        """Reserve a message for the returned Message, if one has come."""
        return Message.Iprobe(self, source, tag, status)

    # Persistent communication
    # ------------------------

    def Send_init(self, buf: BufSpec, dest: int, tag: int = 0) -> Prequest:
        """Create a persistent request for a send in standard mode."""
        return self._send_init(fast.SEND, buf, dest, tag)

    def Recv_init(self, buf: BufSpec, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Prequest:
        """Create a persistent request for a receive."""
        address, count, datatype, holder = message(buf, False, source)
        request = fast.p2p_init(fast.RECV, self._h, address, count, datatype._h, source, tag)
        return Prequest._prepared(request, holder)

    def Bsend_init(self, buf: BufSpec, dest: int, tag: int = 0) -> Prequest:
        """Create a persistent request for a send in buffered mode."""
        return self._send_init(fast.BSEND, buf, dest, tag)

    def Ssend_init(self, buf: BufSpec, dest: int, tag: int = 0) -> Prequest:
        """Create a persistent request for a send in synchronous mode."""
        return self._send_init(fast.SSEND, buf, dest, tag)

    def Rsend_init(self, buf: BufSpec, dest: int, tag: int = 0) -> Prequest:
        """Create a persistent request for a send in ready mode."""
        return self._send_init(fast.RSEND, buf, dest, tag)

    # Partitioned communication
    # -------------------------

    def Psend_init(self, buf: BufSpec, partitions: int, dest: int, tag: int = 0, info: Info = INFO_NULL) -> Prequest:
        """Create a request for a send of `partitions` equal parts of `buf`, each sent when it is ready."""
        return self._partitioned("Psend_init", core.PsendInit, buf, True, partitions, dest, tag, info)

    def Precv_init(
        self, buf: BufSpec, partitions: int, source: int = ANY_SOURCE, tag: int = ANY_TAG, info: Info = INFO_NULL
    ) -> Prequest:
        """Create a request for a receive of `partitions` equal parts of `buf`."""
        return self._partitioned("Precv_init", core.PrecvInit, buf, False, partitions, source, tag, info)

    def _partitioned(self, call, init, buf, readonly, partitions, peer, tag, info):
        if info is not None:
            expect("Info", info, f"{call}: info")
        partitions = index(partitions, "partitions")
        if partitions < 0:
            raise error(ERR_ARG, f"the number of partitions is {partitions}; it must not be negative")
        address, count, datatype, holder = message(buf, readonly, peer)
        if (partitions and count % partitions) or (not partitions and count):
            raise ValueError(
                f"message: {count} items can't be divided into {partitions} partitions of the same number of items"
            )
        each = count // partitions if partitions else 0
        return Prequest._prepared(check(init(self._h, address, partitions, each, datatype._h, peer, tag)), holder)

    # Communication modes
    # -------------------

    def Bsend(self, buf: BufSpec, dest: int, tag: int = 0) -> None:
        """Send a message in buffered mode: copy it and return."""
        self._send(fast.BSEND, buf, dest, tag)

    @hot
    def Ssend(self, buf: BufSpec, dest: int, tag: int = 0) -> None:
        """Send a message in synchronous mode, and return when its receive has begun."""
        self._send(fast.SSEND, buf, dest, tag)

    def Rsend(self, buf: BufSpec, dest: int, tag: int = 0) -> None:
        """Send a message in ready mode, for a receive that has begun."""
        self._send(fast.RSEND, buf, dest, tag)

    def Ibsend(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Start to send a message in buffered mode."""
        return self._isend(fast.BSEND, buf, dest, tag)

    @hot
    def Issend(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Start to send a message in synchronous mode."""
        return self._isend(fast.SSEND, buf, dest, tag)

    def Irsend(self, buf: BufSpec, dest: int, tag: int = 0) -> Request:
        """Start to send a message in ready mode."""
        return self._isend(fast.RSEND, buf, dest, tag)


def _packed(address, count, datatype):
    """Return a copy of the data in a message."""
    copy = bytearray(count * datatype._size)
    if copy:
        where, nbytes, _, _, _, holder = acquire(copy, False)
        check(core.TypePack(datatype._h, address, count, where, nbytes, 0))
        del holder
    return copy
