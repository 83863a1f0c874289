"""Collective operations among the neighbors of a topology.

A rank sends something along each of its outgoing edges and receives something along each incoming one. Two ranks may
share several edges: what is sent along the k-th arrives along the k-th, as the receiver's topology orders them.
"""

from .alltoallw import Part, exchange, parts
from .calling import Blocking, Nonblocking, Persistent
from .constants import PROC_NULL
from .info import INFO_NULL
from .msgbuffer import message, vector


def _exchange(how, comm, outgoing, incoming, holders):
    """Send a part along each outgoing edge, receive one along each incoming edge."""
    sources, destinations = comm.inoutedges
    send, recv = [[] for _ in range(comm.size)], [[] for _ in range(comm.size)]
    for rank, part in zip(destinations, outgoing):
        if rank != PROC_NULL:
            send[rank].append(part)
    for i in comm._arrival_order():
        if sources[i] != PROC_NULL:
            recv[sources[i]].append(incoming[i])
    return exchange(how, comm, send, recv, holders)


def _blocks(msg, readonly, edges):
    """Parse a message of equal blocks, one for each edge."""
    address, count, datatype, holder = message(msg, readonly, 0, edges)
    step = count * datatype._extent
    return [Part(address + i * step, count, datatype) for i in range(edges)], holder


def _vector(msg, readonly, edges):
    """Parse a message of different blocks, one for each edge."""
    address, counts, displs, datatype, holder = vector(msg, readonly, 0, edges)
    extent = datatype._extent
    return [Part(address + d * extent, n, datatype) for n, d in zip(counts, displs)], holder


def _same(msg, edges):
    """Parse a message that goes along each edge."""
    address, count, datatype, holder = message(msg, True, 0, 0)
    return [Part(address, count, datatype)] * edges, holder


def _allgather(how, comm, sendbuf, recvbuf, parse):
    indegree, outdegree = comm.degrees
    recv, hold_recv = parse(recvbuf, False, indegree)
    send, hold_send = _same(sendbuf, outdegree)
    return _exchange(how, comm, send, recv, (hold_send, hold_recv))


def _alltoall(how, comm, sendbuf, recvbuf, parse):
    indegree, outdegree = comm.degrees
    recv, hold_recv = parse(recvbuf, False, indegree)
    send, hold_send = parse(sendbuf, True, outdegree)
    return _exchange(how, comm, send, recv, (hold_send, hold_recv))


class NeighborCollectives:
    """Mix-in with the neighborhood collective operations of a communicator with a topology."""

    def _arrival_order(self):
        """Return the incoming edges in the order in which their senders name them."""
        return range(self.indegree)

    def Neighbor_allgather(self, sendbuf, recvbuf):
        """Neighbor gather to all."""
        _allgather(Blocking, self, sendbuf, recvbuf, _blocks)

    def Neighbor_allgatherv(self, sendbuf, recvbuf):
        """Neighbor gather to all of different amounts."""
        _allgather(Blocking, self, sendbuf, recvbuf, _vector)

    def Neighbor_alltoall(self, sendbuf, recvbuf):
        """Neighbor all to all."""
        _alltoall(Blocking, self, sendbuf, recvbuf, _blocks)

    def Neighbor_alltoallv(self, sendbuf, recvbuf):
        """Neighbor all to all of different amounts."""
        _alltoall(Blocking, self, sendbuf, recvbuf, _vector)

    def Neighbor_alltoallw(self, sendbuf, recvbuf):
        """Neighbor all to all with datatypes for each neighbor."""
        _alltoall(Blocking, self, sendbuf, recvbuf, parts)

    # Nonblocking
    # -----------

    def Ineighbor_allgather(self, sendbuf, recvbuf):
        """Nonblocking neighbor gather to all."""
        return _allgather(Nonblocking, self, sendbuf, recvbuf, _blocks)

    def Ineighbor_allgatherv(self, sendbuf, recvbuf):
        """Nonblocking neighbor gather to all of different amounts."""
        return _allgather(Nonblocking, self, sendbuf, recvbuf, _vector)

    def Ineighbor_alltoall(self, sendbuf, recvbuf):
        """Nonblocking neighbor all to all."""
        return _alltoall(Nonblocking, self, sendbuf, recvbuf, _blocks)

    def Ineighbor_alltoallv(self, sendbuf, recvbuf):
        """Nonblocking neighbor all to all of different amounts."""
        return _alltoall(Nonblocking, self, sendbuf, recvbuf, _vector)

    def Ineighbor_alltoallw(self, sendbuf, recvbuf):
        """Nonblocking neighbor all to all with datatypes for each neighbor."""
        return _alltoall(Nonblocking, self, sendbuf, recvbuf, parts)

    # Persistent
    # ----------

    def Neighbor_allgather_init(self, sendbuf, recvbuf, info=INFO_NULL):
        """Persistent neighbor gather to all."""
        return _allgather(Persistent, self, sendbuf, recvbuf, _blocks)

    def Neighbor_allgatherv_init(self, sendbuf, recvbuf, info=INFO_NULL):
        """Persistent neighbor gather to all of different amounts."""
        return _allgather(Persistent, self, sendbuf, recvbuf, _vector)

    def Neighbor_alltoall_init(self, sendbuf, recvbuf, info=INFO_NULL):
        """Persistent neighbor all to all."""
        return _alltoall(Persistent, self, sendbuf, recvbuf, _blocks)

    def Neighbor_alltoallv_init(self, sendbuf, recvbuf, info=INFO_NULL):
        """Persistent neighbor all to all of different amounts."""
        return _alltoall(Persistent, self, sendbuf, recvbuf, _vector)

    def Neighbor_alltoallw_init(self, sendbuf, recvbuf, info=INFO_NULL):
        """Persistent neighbor all to all with datatypes for each neighbor."""
        return _alltoall(Persistent, self, sendbuf, recvbuf, parts)

    # Objects
    # -------

    def neighbor_allgather(self, sendobj):
        """Neighbor gather of objects to all."""
        return self._exchange_objects([sendobj] * self.outdegree)

    def neighbor_alltoall(self, sendobj):
        """Neighbor all to all of objects."""
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
