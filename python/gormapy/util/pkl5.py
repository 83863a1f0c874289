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
    """Request of a message of an object, which consists of several messages.

    It is true until the operation is complete. Like `MPI.Request`, it is completed by `wait` or `test`.
    """

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
        """Free the request; its operation goes on."""
        self._parts.free()

    def free(self) -> None:
        """Call Free, if the request is not null."""
        if self:
            self.Free()

    def cancel(self) -> None:
        """Ask for the operation to be cancelled; `wait` or `test` has to follow."""
        for request in self._parts.requests:
            if request:
                request.Cancel()

    def get_status(self, status: Status | None = None) -> bool:
        """Report whether the operation is complete, and keep the request."""
        return self._parts.get_status(status)

    def test(self, status: Status | None = None) -> tuple[bool, Any | None]:
        """Report whether the operation is complete; return its object if so, as (flag, object).

        It never waits.

        Errors: those of the operation.
        """
        if not MPI.Request.Testall(self._parts.requests, self._parts.statuses):
            return False, None
        return True, self._parts.finish(status)

    def wait(self, status: Status | None = None) -> Any:
        """Wait for the operation to complete, and return its object, None of a send.

        When it returns, the arrays of an object that was sent may be changed.

        Errors: those of the operation.
        """
        MPI.Request.Waitall(self._parts.requests, self._parts.statuses)
        return self._parts.finish(status)

    @classmethod
    def get_status_all(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Report whether all of several operations are complete, and keep the requests."""
        filled = [Status() for _ in requests]
        if not all(r.get_status(s) for r, s in zip(requests, filled)):
            return False
        _hand_over(filled, statuses)
        return True

    @classmethod
    def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """Report whether all of several operations are complete; return (flag, list of objects).

        It never waits.
        """
        if not cls.get_status_all(requests):
            return False, None
        return True, cls.waitall(requests, statuses)

    @classmethod
    def waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[Any]:
        """Wait for all of several operations to complete, and return the list of their objects.

        `statuses` is a list that gets the statuses; it grows if it is too short.
        """
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
    """Message of an object that a probe has reserved for one receive."""

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
        """Receive the object.

        Blocking. Errors: ERR_REQUEST for a message that is null or has been received.
        """
        return self.irecv().wait(status)

    def irecv(self) -> Request:
        """Start to receive the object, which `wait` of the returned request returns.

        Nonblocking. Errors: ERR_REQUEST for a message that is null or has been received.
        """
        arrival, self._arrival = self._arrival, None
        if arrival is None:
            raise MPI.Exception(MPI.ERR_REQUEST)
        return Request._of(arrival.receive(pickle))

    @classmethod
    def probe(cls, comm: MPI.Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Self:
        """Wait for an object in a communicator, and reserve it."""
        status = Status() if status is None else status
        return cls._of(Arrival.of(comm, MPI.Message.Probe(comm, source, tag, status), status))

    @classmethod
    def iprobe(
        cls, comm: MPI.Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Self | None:
        """Reserve an object in a communicator, if one has come; return None otherwise."""
        status = Status() if status is None else status
        message = MPI.Message.Iprobe(comm, source, tag, status)
        return None if message is None else cls._of(Arrival.of(comm, message, status))


class Comm(MPI.Comm):
    """Communicator whose lower-case calls send large blocks of memory, such as arrays in objects, without copying them.

    `Intracomm(comm)` stands for the same communicator as `comm`. Both sides of a message have to use this module.
    """

    def __new__(cls, comm: MPI.Comm | None = None) -> Self:
        """Create and return a new object."""
        return super().__new__(cls, comm)

    def _start(self, isend, obj, dest, tag):
        """Start to send an object with a nonblocking send."""
        return Request._of(Parts([isend(self, (part, MPI.BYTE), dest, tag) for part in packed(pickle, obj)]))

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object, and return when it may be changed."""
        self.isend(obj, dest, tag).wait()

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object in buffered mode: copy it and return."""
        self.ibsend(obj, dest, tag).wait()

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object in synchronous mode, and return when its receive has begun."""
        self.issend(obj, dest, tag).wait()

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Start to send an object.

        Nonblocking. Unlike those of `MPI.Comm.isend`, arrays in the object are not copied: they must not be changed
        until the returned request is complete.
        """
        return self._start(MPI.Comm.Isend, obj, dest, tag)

    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Start to send an object in buffered mode.

        Nonblocking. Keep the returned request, and complete it by `wait`, which waits for no receive.
        """
        return self._start(MPI.Comm.Ibsend, obj, dest, tag)

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Start to send an object in synchronous mode.

        Nonblocking. Arrays in the object must not be changed until the returned request is complete; a receive has
        begun then.
        """
        return self._start(MPI.Comm.Issend, obj, dest, tag)

    def recv(
        self, buf: Buffer | None = None, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Any:
        """Receive an object.

        Blocking. `buf` is not used. Unpickling runs code that the sender chooses.
        """
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
        """Send an object and receive another one, in whatever order they go.

        Blocking. `recvbuf` is not used.
        """
        sending = self.isend(sendobj, dest, sendtag)
        found = self.recv(recvbuf, source, recvtag, status)
        sending.wait()
        return found

    def mprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Message:  # type: ignore[override]
        """Wait for an object, and reserve it for the returned Message."""
        return Message.probe(self, source, tag, status)

    def improbe(  # type: ignore[override]
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Reserve an object for the returned Message, if one has come; return None otherwise."""
        return Message.iprobe(self, source, tag, status)

    # Collective operations
    # ---------------------

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Copy an object of one rank to all others.

        Collective. Every rank gets a copy, `root` as well.
        """
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
        """Gather an object of each rank at one rank.

        Collective. `root` gets the list of the objects, in the order of ranks; the others None.
        """
        data, buffers = pickle.dumps_oob(sendobj)
        with MPI._comm_lock(self, "pkl5.gather"):
            heads = super().gather((data, [b.nbytes for b in buffers]), root)
            if self.Is_inter() and root in (ROOT, PROC_NULL):
                sending = {}
            else:
                sending = {root: buffers}
            return exchange(pickle, self, sending, heads)

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """Scatter objects of one rank to all ranks.

        Collective. `root` passes a sequence with an object for each rank, the others None.

        Errors: ValueError for a sequence of another length than there are ranks.
        """
        inter = self.Is_inter()
        heads, sending = None, {}
        if root == (ROOT if inter else self.Get_rank()):
            heads, sending = _each(self, sendobj)
        with MPI._comm_lock(self, "pkl5.scatter"):
            head = super().scatter(heads, root)
            found = exchange(pickle, self, sending, None if head is None else {root: head})
        return None if found is None else found[0]

    def allgather(self, sendobj: Any) -> list[Any]:
        """Gather an object of each rank at all ranks.

        Collective. The result is the list of the objects, in the order of ranks.
        """
        data, buffers = pickle.dumps_oob(sendobj)
        with MPI._comm_lock(self, "pkl5.allgather"):
            heads = super().allgather((data, [b.nbytes for b in buffers]))
            return exchange(pickle, self, dict.fromkeys(range(len(heads)), buffers), heads)

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """Exchange objects among all ranks.

        Collective. `sendobj` is a sequence with an object for each rank; the result is the list of those for this rank.

        Errors: ValueError for a sequence of another length than there are ranks.
        """
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
    """Communicator of one group of ranks; see `Comm`."""


class Intercomm(Comm, MPI.Intercomm):
    """Communicator of two groups of ranks; see `Comm`."""
