"""Matched messages: a probe takes a message out of matching, and the message object receives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gormapy._ext import fast

from . import constants
from .constants import ANY_SOURCE, ANY_TAG
from .exception import Exception
from .handle import Handle, adopt, named
from .hot import hot
from .msgbuffer import acquire, byte, message
from .request import Request
from .status import Status, expect_status

if TYPE_CHECKING:
    from typing_extensions import Self

    from gormapy.typing import BufSpec

    from .comm import Comm

_COMM_SELF = 2
_NO_PROC = 1 << 62  # no message of the core has this handle


class Message(Handle, fast.Message):
    """Message that a probe has reserved for one receive."""

    _family = "Message"
    __slots__ = ("__weakref__",)

    def __new__(cls, message: Message | None = None) -> Self:
        self = adopt(Message, super().__new__(cls), message)
        self._nbytes = 0 if message is None else message._nbytes
        return self

    @classmethod
    def _matched(cls, handle, status):
        self = cls.__new__(cls)
        self._h = handle
        self._nbytes = status._nbytes
        return self

    @classmethod
    def Probe(cls, comm: Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Self:
        """Wait for a message, and reserve it."""
        status = Status() if status is None else status
        if source == constants.PROC_NULL:
            status._set(constants.PROC_NULL)
            return cls._matched(_NO_PROC, status)
        return cls._matched(fast.mprobe(comm._h, source, tag, status), status)

    @classmethod
    def Iprobe(
        cls, comm: Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Self | None:
        """Reserve a message, if one has come."""
        if source == constants.PROC_NULL:
            return cls.Probe(comm, source, tag, status)
        status = Status() if status is None else status
        handle = fast.improbe(comm._h, source, tag, status)
        return cls._matched(handle, status) if handle else None

    def _receive(self, address, count, datatype, holder):
        """Start to receive the message; it is still there if that is refused."""
        if not self._h:
            raise Exception(constants.ERR_REQUEST)
        started = fast.mrecv(self._h, address, count, datatype._h, holder)
        self._h = 0
        return started

    def _nothing(self):
        """Make the request of a receive from PROC_NULL."""
        self.free()
        return Request._started(fast.p2p(fast.RECV, _COMM_SELF, 0, 0, byte()._h, constants.PROC_NULL, ANY_TAG, None))

    @hot
    def Recv(self, buf: BufSpec, status: Status | None = None) -> None:
        """Receive the message into `buf`."""
        expect_status(status)
        self.Irecv(buf).Wait(status)

    def Irecv(self, buf: BufSpec) -> Request:
        """Start to receive the message into `buf`."""
        if self._h == _NO_PROC:
            return self._nothing()
        address, count, datatype, holder = message(buf, False)
        return Request._started(self._receive(address, count, datatype, holder))

    @classmethod
    def probe(cls, comm: Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Self:
        """Wait for an object, and reserve it."""
        return cls.Probe(comm, source, tag, status)

    @classmethod
    def iprobe(
        cls, comm: Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Self | None:
        """Reserve an object, if one has come."""
        return cls.Iprobe(comm, source, tag, status)

    @hot
    def recv(self, status: Status | None = None) -> Any:
        """Receive the object."""
        expect_status(status)
        return self.irecv().wait(status)

    def irecv(self) -> Request:
        """Start to receive the object."""
        if self._h == _NO_PROC:
            return self._nothing()
        memory = bytearray(self._nbytes)
        address, nbytes, _, _, _, holder = acquire(memory, False)
        request = Request._started(self._receive(address, nbytes, byte(), holder))
        request._arriving = memory
        return request

    def free(self) -> None:
        """Do nothing: the message has to be received."""
        if self._h == _NO_PROC and self is not MESSAGE_NO_PROC:
            self._h = 0


MESSAGE_NULL = Message()
named("Message", 0, "MESSAGE_NULL")
MESSAGE_NO_PROC = Message()
MESSAGE_NO_PROC._h = _NO_PROC
named("Message", _NO_PROC, "MESSAGE_NO_PROC")
