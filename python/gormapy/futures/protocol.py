"""Messages between the manager of a pool and its workers.

Roles
-----

A *link* joins one rank, the manager, with the others, the workers, by a communicator that nothing else uses. At the
manager, executors keep their tasks in *pools*, and one thread (`manager.Manager`) makes all MPI calls of the link but
one: a thread that submits a task, or ends an executor, sends the manager's own rank WAKE. A worker (`worker.serve`)
answers in the thread that called it, one message at a time.

Messages
--------

The tag of a message is its kind. The manager sends:

=====  ====================================================================  ============================
SETUP  what an executor asks of its workers, before its first task            answered by READY or BROKEN
TASK   a function with its arguments                                          answered by RESULT or FAILURE
LEAVE  serving is over; a body: because of an error                           not answered
=====  ====================================================================  ============================

The manager sends a worker nothing before it has the answer to the message before, so that an answer needs no number,
and a blocking send to a worker finds it in a receive. A worker sends nothing but answers, one each. WAKE is
the only message that the manager's rank sends itself.

A short message is one MPI message. A long one, and one with buffers that pickle has left out of its stream, has the
flag LONG in its tag and the sizes of its parts as its body. The parts follow with the tag PART, and the receiver takes
them from the same source at once. Messages from one rank do not overtake each other, so these are the right ones. With
the flag OUT_OF_BAND a task asks for its result with such buffers.

States
------

For the manager, a worker is idle, or busy with a setup or a task of one pool, or has left. A worker that answers gets
its next message before the answer is looked at. Only the answer to SETUP is looked at first, because a pool whose
setup has failed gives out no more tasks. A worker executes a task of a pool only if it has answered the pool's SETUP
with READY, or the pool has none.

For a future, what counts is its task: waiting in its pool (pending, can be cancelled), sent to a worker (running),
answered (finished). The task at the head of the queue is serialized while the manager would wait, and can be cancelled
still.

When a side ends
----------------

- The program of the manager ends: it waits for the tasks of all pools, sends LEAVE to every worker, which is idle
  then, and ends its thread. Python runs this at exit, before it joins threads and before MPI is finalized.
- The program of the manager fails: its thread ends without LEAVE, all futures that are not finished get
  `BrokenExecutor`, and the launcher ends the workers with the job.
- A worker fails (an interrupt, a lost process): the launcher ends the job and names the rank. A process that ends with
  status 0 in a task does not end the job; the manager's receive from it raises. Where a call of the manager raises,
  every pool of the link is broken: futures get `BrokenExecutor`, and so do later submissions. Workers that are left
  get LEAVE with a body, which says that the communicators can't be freed together.
- The manager's process is lost: the receive of a worker raises, or the launcher ends the worker.

Neither side waits with a time-out or polls: both wait in a blocking receive.
"""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gormapy import MPI

if TYPE_CHECKING:
    from collections.abc import Sequence

# Kinds of messages: their tags.
WAKE, SETUP, TASK, LEAVE, READY, BROKEN, RESULT, FAILURE, PART = range(1, 10)
LONG, OUT_OF_BAND = 16, 32
_KIND = 15

# Bytes that the first message of a longer one has room for.
ROOM = 1 << 15


class Link:
    """A manager and its workers, as one of them sees it.

    Parameters
    ----------
    comm : Intracomm
        The manager and its workers; nothing else communicates there.
    manager : int
        The rank of the manager.
    local : Intracomm
        The workers alone, at a worker; COMM_NULL at the manager.
    """

    def __init__(self, comm: MPI.Intracomm, manager: int, local: MPI.Intracomm) -> None:
        self.comm, self.manager, self.local = comm, manager, local
        self.rank = comm.Get_rank()
        self.workers = [rank for rank in range(comm.Get_size()) if rank != manager]
        self._room = bytearray(ROOM)
        self._status = MPI.Status()

    @classmethod
    def made(cls, comm: MPI.Intracomm, manager: int) -> Link:
        """Join a rank of a communicator, the manager, with the others. Collective."""
        mine = comm.Dup()
        local = comm.Split(MPI.UNDEFINED if comm.Get_rank() == manager else 0)
        return cls(mine, manager, local)

    def free(self) -> None:
        """Free the communicators. Collective."""
        if self.local:
            self.local.Free()
        self.comm.Free()

    def wake(self) -> None:
        """Let the receive of this rank's own thread return."""
        self.comm.Send((b"", 0, MPI.BYTE), self.rank, WAKE)

    def send(self, dest: int, tag: int, data: bytes = b"", buffers: Sequence[Any] = ()) -> None:
        """Send a message and the buffers that belong to it."""
        if not buffers and len(data) <= ROOM:
            self.comm.Send((data, MPI.BYTE), dest, tag)
            return
        parts = [memoryview(data), *(memoryview(b).cast("B") for b in buffers)]
        self.comm.Send((array("q", [part.nbytes for part in parts]), MPI.BYTE), dest, tag | LONG)
        for part in parts:
            self.comm.Send((part, MPI.BYTE), dest, PART)

    def receive(self) -> tuple[int, Any, list[Any]]:
        """Wait for a message of the manager; return its tag without LONG, its data and its buffers."""
        status = self._status
        self.comm.Recv((self._room, ROOM, MPI.BYTE), self.manager, MPI.ANY_TAG, status)
        return self._rest(self.manager, status.tag, bytes(memoryview(self._room)[: status.count]))

    def _rest(self, source, tag, data):
        """Receive the parts of a message whose first part is there."""
        if not tag & LONG:
            return tag, data, []
        parts = []
        for size in array("q", data):
            part = bytearray(size)
            self.comm.Recv((part, MPI.BYTE), source, PART)
            parts.append(part)
        return tag & ~LONG, parts[0], parts[1:]


class Answers:
    """The receives of a manager: one for each rank that a message is expected from.

    A receive from any rank would wait for ever if one of several ranks was lost; these raise an exception.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._sources = [link.rank, *link.workers]
        self._rooms = {rank: bytearray(ROOM) for rank in self._sources}
        self._requests = [
            link.comm.Recv_init((self._rooms[rank], ROOM, MPI.BYTE), rank, MPI.ANY_TAG) for rank in self._sources
        ]
        self._of = dict(zip(self._sources, self._requests))
        self._status = MPI.Status()
        self.expect(link.rank)

    def expect(self, rank: int) -> None:
        """Begin to receive a message of a rank."""
        self._of[rank].Start()

    def receive(self) -> tuple[int, int, Any, list[Any]]:
        """Wait for an expected message; return its source, its tag without LONG, its data and its buffers."""
        status = self._status
        source = self._sources[MPI.Request.Waitany(self._requests, status)]
        return source, *self._link._rest(source, status.tag, bytes(memoryview(self._rooms[source])[: status.count]))

    def close(self) -> None:
        """End the receives."""
        for request in self._requests:
            with suppress(MPI.Exception):  # it is one from a rank that is lost
                if not request.Get_status():
                    request.Cancel()
                    request.Wait()
            request.Free()


def kind_of(tag: int) -> int:
    """Return the kind that a tag has."""
    return tag & _KIND


def dumps(thing: Any, out_of_band: bool) -> tuple[bytes, Sequence[Any]]:
    """Serialize an object as the program's pickle does; return the stream and the buffers left out of it."""
    if out_of_band:
        return MPI.pickle.dumps_oob(thing)
    return MPI.pickle.dumps(thing), ()


def loads(data: Any, buffers: Sequence[Any]) -> Any:
    """Make the object of a stream and its buffers."""
    if buffers:
        return MPI.pickle.loads_oob(data, buffers)
    return MPI.pickle.loads(data)
