"""Collective operations among the neighbors of a topology.

A rank sends a part along each of its outgoing edges and receives one along each incoming edge. Two ranks may share
several edges: the part sent along the k-th arrives along the k-th, in the order of the receiver's topology.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gormapy._ext import fast

from .alltoallw import flat, parts
from .calling import Blocking, Nonblocking, Persistent
from .constants import PROC_NULL
from .info import INFO_NULL
from .msgbuffer import message, vector

if TYPE_CHECKING:
    from gormapy.typing import BufSpec, BufSpecB, BufSpecV, BufSpecW

    from .info import Info
    from .request import Prequest, Request

# So many ranks have most of each other for neighbors: an object is pickled once for all of them.
_FEW = 4
_neighbor, _neighborv = fast.neighbor, fast.neighborv  # the usual calls


def _blocks(msg, readonly, edges):
    """Parse a message of equal blocks, one for each edge."""
    address, count, datatype, holder = message(msg, readonly, 0, edges)
    step, handle = count * datatype._extent, datatype._h
    return [x for i in range(edges) for x in (address + i * step, count, handle)], holder


def _vector(msg, readonly, edges):
    """Parse a message of different blocks, one for each edge."""
    address, counts, displs, datatype, holder = vector(msg, readonly, 0, edges)
    extent, handle = datatype._extent, datatype._h
    return [x for n, d in zip(counts, displs) for x in (address + d * extent, n, handle)], holder


def _typed(msg, readonly, edges):
    """Parse a message of blocks of different datatypes, one for each edge."""
    found, holder = parts(msg, readonly, edges)
    return flat(found), holder


def _same(msg, edges):
    """Parse a message that goes along each edge."""
    address, count, datatype, holder = message(msg, True, 0, 0)
    return [address, count, datatype._h] * edges, holder


def _allgather(how, comm, sendbuf, recvbuf, parse):
    indegree, outdegree = comm._known_degrees()
    recv, hold_recv = parse(recvbuf, False, indegree)
    send, hold_send = _same(sendbuf, outdegree)
    return how.neighbor(comm._h, fast.NEIGHBOR_ALLGATHER, send, recv, (hold_send, hold_recv))


def _alltoall(how, comm, sendbuf, recvbuf, parse):
    indegree, outdegree = comm._known_degrees()
    recv, hold_recv = parse(recvbuf, False, indegree)
    send, hold_send = parse(sendbuf, True, outdegree)
    return how.neighbor(comm._h, fast.NEIGHBOR_ALLTOALL, send, recv, (hold_send, hold_recv))


class NeighborCollectives:
    """Mix-in with the neighborhood collective operations of a communicator with a topology."""

    def _arrival_order(self):
        """Return the incoming edges in the order in which their senders name them."""
        return range(self.indegree)

    def _known_degrees(self):
        """Return the degrees, after the core has been told the edges."""
        sources, destinations = self._edges()
        if self._placed != self._h:
            fast.set_neighbors(self, sources, destinations, self._arrival_order())
        return len(sources), len(destinations)

    def Neighbor_allgather(self, sendbuf: BufSpec, recvbuf: BufSpecB) -> None:
        """Send one message to all neighbors, and receive one of each."""
        if _neighbor(self, fast.NEIGHBOR_ALLGATHER, False, sendbuf, recvbuf) is NotImplemented:
            _allgather(Blocking, self, sendbuf, recvbuf, _blocks)

    def Neighbor_allgatherv(self, sendbuf: BufSpec, recvbuf: BufSpecV) -> None:
        """Send one message to all neighbors, and receive different amounts of data."""
        if _neighborv(self, fast.NEIGHBOR_ALLGATHER, False, sendbuf, recvbuf) is NotImplemented:
            _allgather(Blocking, self, sendbuf, recvbuf, _vector)

    def Neighbor_alltoall(self, sendbuf: BufSpecB, recvbuf: BufSpecB) -> None:
        """Exchange blocks with all neighbors."""
        if _neighbor(self, fast.NEIGHBOR_ALLTOALL, False, sendbuf, recvbuf) is NotImplemented:
            _alltoall(Blocking, self, sendbuf, recvbuf, _blocks)

    def Neighbor_alltoallv(self, sendbuf: BufSpecV, recvbuf: BufSpecV) -> None:
        """Exchange different amounts of data with all neighbors."""
        if _neighborv(self, fast.NEIGHBOR_ALLTOALL, False, sendbuf, recvbuf) is NotImplemented:
            _alltoall(Blocking, self, sendbuf, recvbuf, _vector)

    def Neighbor_alltoallw(self, sendbuf: BufSpecW, recvbuf: BufSpecW) -> None:
        """Exchange data of different amounts and datatypes with all neighbors."""
        _alltoall(Blocking, self, sendbuf, recvbuf, _typed)

    # Nonblocking
    # -----------

    def Ineighbor_allgather(self, sendbuf: BufSpec, recvbuf: BufSpecB) -> Request:
        """Start to send one message to all neighbors, and to receive one of each."""
        request = _neighbor(self, fast.NEIGHBOR_ALLGATHER, True, sendbuf, recvbuf)
        if request is NotImplemented:
            request = _allgather(Nonblocking, self, sendbuf, recvbuf, _blocks)
        return request

    def Ineighbor_allgatherv(self, sendbuf: BufSpec, recvbuf: BufSpecV) -> Request:
        """Start to send one message to all neighbors, and to receive different amounts of data."""
        request = _neighborv(self, fast.NEIGHBOR_ALLGATHER, True, sendbuf, recvbuf)
        if request is NotImplemented:
            request = _allgather(Nonblocking, self, sendbuf, recvbuf, _vector)
        return request

    def Ineighbor_alltoall(self, sendbuf: BufSpecB, recvbuf: BufSpecB) -> Request:
        """Start to exchange blocks with all neighbors."""
        request = _neighbor(self, fast.NEIGHBOR_ALLTOALL, True, sendbuf, recvbuf)
        if request is NotImplemented:
            request = _alltoall(Nonblocking, self, sendbuf, recvbuf, _blocks)
        return request

    def Ineighbor_alltoallv(self, sendbuf: BufSpecV, recvbuf: BufSpecV) -> Request:
        """Start to exchange different amounts of data with all neighbors."""
        request = _neighborv(self, fast.NEIGHBOR_ALLTOALL, True, sendbuf, recvbuf)
        if request is NotImplemented:
            request = _alltoall(Nonblocking, self, sendbuf, recvbuf, _vector)
        return request

    def Ineighbor_alltoallw(self, sendbuf: BufSpecW, recvbuf: BufSpecW) -> Request:
        """Start to exchange data of different amounts and datatypes with all neighbors."""
        return _alltoall(Nonblocking, self, sendbuf, recvbuf, _typed)

    # Persistent
    # ----------

    def Neighbor_allgather_init(self, sendbuf: BufSpec, recvbuf: BufSpecB, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to send one message to all neighbors, and to receive one of each."""
        return _allgather(Persistent, self, sendbuf, recvbuf, _blocks)

    def Neighbor_allgatherv_init(self, sendbuf: BufSpec, recvbuf: BufSpecV, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to send a message to all neighbors, and receive different amounts of data."""
        return _allgather(Persistent, self, sendbuf, recvbuf, _vector)

    def Neighbor_alltoall_init(self, sendbuf: BufSpecB, recvbuf: BufSpecB, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to exchange blocks with all neighbors."""
        return _alltoall(Persistent, self, sendbuf, recvbuf, _blocks)

    def Neighbor_alltoallv_init(self, sendbuf: BufSpecV, recvbuf: BufSpecV, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to exchange different amounts of data with all neighbors."""
        return _alltoall(Persistent, self, sendbuf, recvbuf, _vector)

    def Neighbor_alltoallw_init(self, sendbuf: BufSpecW, recvbuf: BufSpecW, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to exchange data of different amounts and datatypes with all neighbors."""
        return _alltoall(Persistent, self, sendbuf, recvbuf, _typed)

    # Objects
    # -------

    def neighbor_allgather(self, sendobj: Any) -> list[Any]:
        """Send an object to all neighbors, and receive one of each."""
        if self.Get_size() > _FEW:
            return self._exchange_objects([sendobj] * self.outdegree)
        everyone = self.allgather(sendobj)
        return [None if rank == PROC_NULL else everyone[rank] for rank in self._edges()[0]]

    def neighbor_alltoall(self, sendobj: Any) -> list[Any]:
        """Exchange objects with all neighbors."""
        objects = [None] * self.outdegree if sendobj is None else list(sendobj)
        if len(objects) != self.outdegree:
            raise ValueError(f"neighbor_alltoall: expecting {self.outdegree} objects, got {len(objects)}")
        return self._exchange_objects(objects)

    def _exchange_objects(self, objects):
        sources, destinations = self.inoutedges
        lists = [[] for _ in range(self.size)]
        for rank, obj in zip(destinations, objects):
            if rank != PROC_NULL:
                lists[rank].append(obj)
        arriving = [iter(came) for came in self.alltoall(lists)]
        received = [None] * len(sources)
        for i in self._arrival_order():
            if sources[i] != PROC_NULL:
                received[i] = next(arriving[sources[i]])
        return received
