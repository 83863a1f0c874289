"""Persistent collective operations."""

from . import coll
from .alltoallw import alltoallw
from .calling import Persistent
from .info import INFO_NULL
from .op import SUM


class PersistentCollectives:
    """Mix-in with the persistent collective operations of a communicator."""

    __slots__ = ()

    def Barrier_init(self, info=INFO_NULL):
        """Persistent barrier."""
        return coll.barrier(Persistent, self)

    def Bcast_init(self, buf, root=0, info=INFO_NULL):
        """Persistent broadcast."""
        return coll.bcast(Persistent, self, buf, root)

    def Gather_init(self, sendbuf, recvbuf, root=0, info=INFO_NULL):
        """Persistent gather."""
        return coll.gather(Persistent, self, sendbuf, recvbuf, root)

    def Gatherv_init(self, sendbuf, recvbuf, root=0, info=INFO_NULL):
        """Persistent gather of different amounts."""
        return coll.gatherv(Persistent, self, sendbuf, recvbuf, root)

    def Scatter_init(self, sendbuf, recvbuf, root=0, info=INFO_NULL):
        """Persistent scatter."""
        return coll.scatter(Persistent, self, sendbuf, recvbuf, root)

    def Scatterv_init(self, sendbuf, recvbuf, root=0, info=INFO_NULL):
        """Persistent scatter of different amounts."""
        return coll.scatterv(Persistent, self, sendbuf, recvbuf, root)

    def Allgather_init(self, sendbuf, recvbuf, info=INFO_NULL):
        """Persistent gather to all."""
        return coll.allgather(Persistent, self, sendbuf, recvbuf)

    def Allgatherv_init(self, sendbuf, recvbuf, info=INFO_NULL):
        """Persistent gather to all of different amounts."""
        return coll.allgatherv(Persistent, self, sendbuf, recvbuf)

    def Alltoall_init(self, sendbuf, recvbuf, info=INFO_NULL):
        """Persistent all to all scatter/gather."""
        return coll.alltoall(Persistent, self, sendbuf, recvbuf)

    def Alltoallv_init(self, sendbuf, recvbuf, info=INFO_NULL):
        """Persistent all to all scatter/gather of different amounts."""
        return coll.alltoallv(Persistent, self, sendbuf, recvbuf)

    def Alltoallw_init(self, sendbuf, recvbuf, info=INFO_NULL):
        """Persistent all to all scatter/gather with datatypes for each process."""
        return alltoallw(Persistent, self, sendbuf, recvbuf)

    def Reduce_init(self, sendbuf, recvbuf, op=SUM, root=0, info=INFO_NULL):
        """Persistent reduce to one process."""
        return coll.reduce(Persistent, self, sendbuf, recvbuf, op, root)

    def Allreduce_init(self, sendbuf, recvbuf, op=SUM, info=INFO_NULL):
        """Persistent reduce to all processes."""
        return coll.allreduce(Persistent, self, sendbuf, recvbuf, op)

    def Reduce_scatter_block_init(self, sendbuf, recvbuf, op=SUM, info=INFO_NULL):
        """Persistent reduce and scatter of blocks."""
        return coll.reduce_scatter_block(Persistent, self, sendbuf, recvbuf, op)

    def Reduce_scatter_init(self, sendbuf, recvbuf, recvcounts=None, op=SUM, info=INFO_NULL):
        """Persistent reduce and scatter of blocks of different size."""
        return coll.reduce_scatter(Persistent, self, sendbuf, recvbuf, recvcounts, op)


class PersistentScans:
    """Mix-in with the persistent scans of an intracommunicator."""

    __slots__ = ()

    def Scan_init(self, sendbuf, recvbuf, op=SUM, info=INFO_NULL):
        """Persistent inclusive scan."""
        return coll.scan(Persistent, self, sendbuf, recvbuf, op)

    def Exscan_init(self, sendbuf, recvbuf, op=SUM, info=INFO_NULL):
        """Persistent exclusive scan."""
        return coll.exscan(Persistent, self, sendbuf, recvbuf, op)
