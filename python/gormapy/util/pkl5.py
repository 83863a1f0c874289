"""Communication of Python objects whose large buffers are not copied into a pickle.

`Intracomm` and `Intercomm` wrap communicators. Their lower-case methods pickle with protocol 5, and send large
buffers, as those of arrays, from where they are to where the new object has them.

An object is sent as one message, the head, with the sizes of its buffers and the pickle, and one message for each
buffer, all with the tag that the program gives. A receiver that matches the head receives it and matches the other
messages at once, so that no later probe finds them. In a collective operation, buffers follow the head by broadcasts,
or by messages on a communicator of this module's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gormapy import MPI
from gormapy.MPI import ANY_SOURCE, ANY_TAG, PROC_NULL, ROOT, Pickle, Status

from .pkl5parts import Arrival, Parts, broadcast, exchange, packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from gormapy.typing import Buffer

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "PROC_NULL",
    "ROOT",
    "Comm",
    "Intercomm",
    "Intracomm",
    "Message",
    "Pickle",
    "Request",
    "Status",
    "pickle",
]

pickle = Pickle()


class _BigMPI:
    """Stands for mpi4py's way to send more than 2 GiB, which calls of gormapy.MPI do by themselves."""

    blocksize = 1 << 30


_bigmpi = _BigMPI()


class Request:
    """Custom request class for nonblocking communications."""

    __slots__ = ("_parts",)

    def __new__(cls, request: Request | MPI.Request | None = None) -> Self:
        """Create and return a new object."""
        self = super().__new__(cls)
        if isinstance(request, Request):
            self._parts = request._parts
        else:
            self._parts = Parts([] if request is None else [request])
        return self

    @classmethod
    def _of(cls, parts):
        self = cls()
        self._parts = parts
        return self

    def __eq__(self, other: object) -> bool:
        """Return self==other."""
        if isinstance(other, Request):
            return self._parts is other._parts or not (self or other)
        if isinstance(other, MPI.Request):
            return not self and not other
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        """Return self!=other."""
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = None

    def __bool__(self) -> bool:
        """Return whether the operation has still to be completed."""
        return self._parts.open

    def Free(self) -> None:
        """Free a communication request."""
        self._parts.free()

    def free(self) -> None:
        """Call Free if not null."""
        if self:
            self.Free()

    def cancel(self) -> None:
        """Cancel a communication request."""
        for request in self._parts.requests:
            if request:
                request.Cancel()

    def get_status(self, status: Status | None = None) -> bool:
        """Non-destructive test for the completion of a request."""
        return self._parts.get_status(status)

    def test(self, status: Status | None = None) -> tuple[bool, Any | None]:
        """Test for the completion of a request."""
        if not MPI.Request.Testall(self._parts.requests, self._parts.statuses):
            return False, None
        return True, self._parts.finish(status)

    def wait(self, status: Status | None = None) -> Any:
        """Wait for a request to complete."""
        MPI.Request.Waitall(self._parts.requests, self._parts.statuses)
        return self._parts.finish(status)

    @classmethod
    def get_status_all(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Non-destructive test for the completion of all requests."""
        filled = [Status() for _ in requests]
        if not all(r.get_status(s) for r, s in zip(requests, filled)):
            return False
        _hand_over(filled, statuses)
        return True

    @classmethod
    def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """Test for the completion of all requests."""
        if not cls.get_status_all(requests):
            return False, None
        return True, cls.waitall(requests, statuses)

    @classmethod
    def waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[Any]:
        """Wait for all requests to complete."""
        filled = [Status() for _ in requests]
        found = [r.wait(s) for r, s in zip(requests, filled)]
        _hand_over(filled, statuses)
        return found


def _hand_over(filled, statuses):
    """Give a program its statuses: a list gets as many as there are requests, another sequence those it has."""
    if statuses is None:
        return
    if isinstance(statuses, list):
        statuses += [Status() for _ in filled[len(statuses) :]]
    for given, status in zip(statuses, filled):
        given.__setstate__(status.__getstate__())


class Message:
    """Custom message class for matching probes."""

    __slots__ = ("_arrival",)
    _arrival: Arrival | None

    def __new__(cls, message: Message | MPI.Message | None = None) -> Self:
        """Create and return a new object."""
        self = super().__new__(cls)
        if isinstance(message, Message):
            self._arrival = message._arrival
        elif message is None or not message:
            self._arrival = None
        elif message == MPI.MESSAGE_NO_PROC:
            self._arrival = Arrival.from_nobody()
        else:
            raise TypeError("expecting a message that a method of gormapy.util.pkl5 has matched")
        return self

    @classmethod
    def _of(cls, arrival):
        self = cls()
        self._arrival = arrival
        return self

    def __eq__(self, other: object) -> bool:
        """Return self==other."""
        if isinstance(other, Message):
            other = other._arrival
        elif isinstance(other, MPI.Message):
            if other == MPI.MESSAGE_NO_PROC:
                return self._arrival is not None and self._arrival.nobody
            other = other if other else None
        else:
            return NotImplemented
        mine = self._arrival
        return mine is other or (isinstance(other, Arrival) and mine is not None and mine.nobody and other.nobody)

    def __ne__(self, other: object) -> bool:
        """Return self!=other."""
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = None

    def __bool__(self) -> bool:
        """Return whether the message has still to be received."""
        return self._arrival is not None

    def free(self) -> None:
        """Do nothing: a matched message has to be received."""

    def recv(self, status: Status | None = None) -> Any:
        """Blocking receive of matched message."""
        return self.irecv().wait(status)

    def irecv(self) -> Request:
        """Nonblocking receive of matched message."""
        arrival, self._arrival = self._arrival, None
        if arrival is None:
            raise MPI.Exception(MPI.ERR_REQUEST)
        return Request._of(arrival.receive(pickle))

    @classmethod
    def probe(cls, comm: MPI.Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Self:
        """Blocking test for a matched message."""
        status = Status() if status is None else status
        return cls._of(Arrival.of(comm, MPI.Message.Probe(comm, source, tag, status), status))

    @classmethod
    def iprobe(
        cls, comm: MPI.Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Self | None:
        """Nonblocking test for a matched message."""
        status = Status() if status is None else status
        message = MPI.Message.Iprobe(comm, source, tag, status)
        return None if message is None else cls._of(Arrival.of(comm, message, status))


class Comm(MPI.Comm):
    """Base communicator wrapper class."""

    def __new__(cls, comm: MPI.Comm | None = None) -> Self:
        """Create and return a new object."""
        return super().__new__(cls, comm)

    def _start(self, isend, obj, dest, tag):
        """Start to send an object with a nonblocking send."""
        return Request._of(Parts([isend(self, (part, MPI.BYTE), dest, tag) for part in packed(pickle, obj)]))

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Blocking send in standard mode."""
        self.isend(obj, dest, tag).wait()

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Blocking send in buffered mode."""
        self.ibsend(obj, dest, tag).wait()

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Blocking send in synchronous mode."""
        self.issend(obj, dest, tag).wait()

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Nonblocking send in standard mode."""
        return self._start(MPI.Comm.Isend, obj, dest, tag)

    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Nonblocking send in buffered mode."""
        return self._start(MPI.Comm.Ibsend, obj, dest, tag)

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Nonblocking send in synchronous mode."""
        return self._start(MPI.Comm.Issend, obj, dest, tag)

    def recv(
        self, buf: Buffer | None = None, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Any:
        """Blocking receive. `buf` is not used."""
        return Message.probe(self, source, tag, status).recv(status)

    def irecv(self, buf: Buffer | None = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:  # type: ignore[override]
        """Raise RuntimeError: how many messages an object takes is known after the first has arrived."""
        raise RuntimeError("pkl5: irecv is not supported; use mprobe or improbe, and irecv of the message")

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
        """Send and receive. `recvbuf` is not used."""
        sending = self.isend(sendobj, dest, sendtag)
        found = self.recv(recvbuf, source, recvtag, status)
        sending.wait()
        return found

    def mprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Message:  # type: ignore[override]
        """Blocking test for a matched message."""
        return Message.probe(self, source, tag, status)

    def improbe(  # type: ignore[override]
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Nonblocking test for a matched message."""
        return Message.iprobe(self, source, tag, status)

    # Collective operations
    # ---------------------

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Broadcast."""
        inter = self.Is_inter()
        mine = root == (ROOT if inter else self.Get_rank())
        data, buffers = pickle.dumps_oob(obj) if mine else (b"", [])
        with MPI._comm_lock(self, "pkl5.bcast"):
            head = super().bcast((data, [b.nbytes for b in buffers]), root)
            if inter:
                sending = dict.fromkeys(range(self.Get_remote_size()), buffers) if mine else {}
                found = exchange(pickle, self, sending, None if head is None else {root: head})
                return None if found is None else found[0]
            if not mine:
                data, sizes = head
                buffers = [bytearray(size) for size in sizes]
            broadcast(self, buffers, root)
        return pickle.loads_oob(data, [bytearray(b) for b in buffers] if mine else buffers)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Gather."""
        data, buffers = pickle.dumps_oob(sendobj)
        with MPI._comm_lock(self, "pkl5.gather"):
            heads = super().gather((data, [b.nbytes for b in buffers]), root)
            if self.Is_inter() and root in (ROOT, PROC_NULL):
                sending = {}
            else:
                sending = {root: buffers}
            return exchange(pickle, self, sending, heads)

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """Scatter."""
        inter = self.Is_inter()
        heads, sending = None, {}
        if root == (ROOT if inter else self.Get_rank()):
            heads, sending = _each(self, sendobj)
        with MPI._comm_lock(self, "pkl5.scatter"):
            head = super().scatter(heads, root)
            found = exchange(pickle, self, sending, None if head is None else {root: head})
        return None if found is None else found[0]

    def allgather(self, sendobj: Any) -> list[Any]:
        """Gather to all."""
        data, buffers = pickle.dumps_oob(sendobj)
        with MPI._comm_lock(self, "pkl5.allgather"):
            heads = super().allgather((data, [b.nbytes for b in buffers]))
            return exchange(pickle, self, dict.fromkeys(range(len(heads)), buffers), heads)

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """All to all scatter/gather."""
        heads, sending = _each(self, sendobj)
        with MPI._comm_lock(self, "pkl5.alltoall"):
            return exchange(pickle, self, sending, super().alltoall(heads))


def _each(comm, objects):
    """Pickle an object for each rank; return what the ranks are told first, and the buffers for each."""
    size = comm.Get_remote_size() if comm.Is_inter() else comm.Get_size()
    objects = [None] * size if objects is None else list(objects)
    if len(objects) != size:
        raise ValueError(f"expecting {size} items, one for each rank, got {len(objects)}")
    pickled = [pickle.dumps_oob(obj) for obj in objects]
    heads = [(data, [b.nbytes for b in buffers]) for data, buffers in pickled]
    return heads, {rank: buffers for rank, (_, buffers) in enumerate(pickled)}


class Intracomm(Comm, MPI.Intracomm):
    """Intracommunicator wrapper class."""


class Intercomm(Comm, MPI.Intercomm):
    """Intercommunicator wrapper class."""
