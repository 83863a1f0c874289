"""The messages that an object of `pkl5` is made of."""

from __future__ import annotations

import contextlib
from array import array
from typing import Any

from gormapy import MPI


def packed(pickle: MPI.Pickle, obj: Any) -> list[Any]:
    """Return what to send of an object: the head and the buffers."""
    data, buffers = pickle.dumps_oob(obj)
    sizes = array("q", [len(buffers), *(b.nbytes for b in buffers)])
    return [b"".join((sizes, data)), *buffers]


class Parts:
    """The requests of one object, and what is to be done when they are complete.

    Parameters
    ----------
    requests : list of MPI.Request
        The requests.
    arrival : Arrival, optional
        What is received by them; None for a send.
    load : callable, optional
        Makes the object that was received.
    """

    def __init__(self, requests: list[MPI.Request], arrival: Arrival | None = None, load: Any = None) -> None:
        self.requests = requests
        self.statuses = [MPI.Status() for _ in requests]
        self._arrival, self._load = arrival, load
        self.open = arrival is not None or any(requests)

    def finish(self, status: MPI.Status | None) -> Any:
        """Return the object, when all requests are complete; None for a send, and when it was returned before."""
        if status is not None:
            self._tell(status)
        load, self._load = self._load, None
        self.open = False
        return None if load is None else load()

    def get_status(self, status: MPI.Status | None) -> bool:
        """Test the requests without freeing them."""
        if not all(r.Get_status(s) for r, s in zip(self.requests, self.statuses)):
            return False
        if status is not None:
            self._tell(status)
        return True

    def _tell(self, status):
        if self._arrival is not None:
            status.__setstate__(self._arrival.status.__getstate__())
            with contextlib.suppress(MPI.Exception):  # of PROC_NULL
                status.Set_elements(MPI.BYTE, self._arrival.nbytes)
        elif self.statuses:
            status.__setstate__(self.statuses[-1].__getstate__())

    def free(self) -> None:
        """Free the requests."""
        if not self.open:
            raise MPI.Exception(MPI.ERR_REQUEST)
        for request in self.requests:
            request.free()
        self.open, self._load = False, None


class Arrival:
    """An object whose head has been received, and whose other messages are matched."""

    def __init__(self, status: MPI.Status, nobody: bool = False) -> None:
        self.status = MPI.Status(status)
        self.nobody = nobody  # it is from PROC_NULL
        self.nbytes = 0
        self._data: Any = None
        self._messages: list[tuple[MPI.Message, int]] = []

    @classmethod
    def from_nobody(cls) -> Arrival:
        """Make what a receive from PROC_NULL gets."""
        status = MPI.Status()
        status.Set_source(MPI.PROC_NULL)
        return cls(status, True)

    @classmethod
    def of(cls, comm: MPI.Comm, message: MPI.Message, status: MPI.Status) -> Arrival:
        """Receive a head, and match the messages that belong to it."""
        self = cls(status, message == MPI.MESSAGE_NO_PROC)
        if self.nobody:
            return self
        head = bytearray(status.Get_count(MPI.BYTE))
        message.Recv((head, MPI.BYTE))
        view = memoryview(head)
        end = 8 * (1 + int.from_bytes(view[:8], "little"))
        sizes = view[8:end].cast("q").tolist()
        self._data = view[end:]
        self.nbytes = len(head) + sum(sizes)
        self._messages = [(MPI.Message.Probe(comm, status.source, status.tag), size) for size in sizes]
        return self

    def receive(self, pickle: MPI.Pickle) -> Parts:
        """Start to receive the buffers."""
        if self.nobody:
            return Parts([], self)
        buffers = [bytearray(size) for _, size in self._messages]
        requests = [m.Irecv((b, MPI.BYTE)) for (m, _), b in zip(self._messages, buffers)]
        data = self._data
        return Parts(requests, self, lambda: pickle.loads_oob(data, buffers))


def broadcast(comm: MPI.Comm, buffers: list[Any], root: int) -> None:
    """Broadcast buffers, whose sizes all ranks know."""
    for buffer in buffers:
        comm.Bcast((buffer, MPI.BYTE), root)


def exchange(pickle: MPI.Pickle, comm: Any, sending: dict[int, list[Any]], heads: Any) -> Any:
    """Send buffers to ranks, and receive those that were announced.

    Parameters
    ----------
    sending : dict
        The buffers for each rank.
    heads : list or dict or None
        By ranks: the pickle that has come from each, and the sizes of its buffers. None: nothing comes.

    Returns
    -------
    The objects that were received, None if nothing comes.
    """
    coming = heads if isinstance(heads, dict) else dict(enumerate(heads or ()))
    private, tag = (MPI._commctx_inter if comm.Is_inter() else MPI._commctx_intra)(comm)[:2]
    tag &= 0x7FFF
    arriving = {rank: [bytearray(size) for size in sizes] for rank, (_, sizes) in coming.items()}
    requests = [private.Irecv((b, MPI.BYTE), rank, tag) for rank, buffers in arriving.items() for b in buffers]
    requests += [private.Isend((b, MPI.BYTE), rank, tag) for rank, buffers in sending.items() for b in buffers]
    MPI.Request.Waitall(requests)
    if heads is None:
        return None
    return [pickle.loads_oob(data, arriving[rank]) for rank, (data, _) in coming.items()]
