"""Persistent collective operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import coll
from .alltoallw import alltoallw
from .calling import Persistent
from .info import INFO_NULL
from .op import SUM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gormapy.typing import BufSpec, BufSpecB, BufSpecV, BufSpecW, InPlace

    from .info import Info
    from .op import Op
    from .request import Prequest


class PersistentCollectives:
    """Mix-in with the persistent collective operations of a communicator."""

    __slots__ = ()

    def Barrier_init(self, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to wait for all ranks."""
        return coll.barrier(Persistent, self)

    def Bcast_init(self, buf: BufSpec, root: int = 0, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to copy the data of one rank to all others."""
        return coll.bcast(Persistent, self, buf, root)

    def Gather_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """Create a persistent request to gather the blocks of all ranks at one rank."""
        return coll.gather(Persistent, self, sendbuf, recvbuf, root)

    def Gatherv_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV | None, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """Create a persistent request to gather different amounts of data of all ranks at one rank."""
        return coll.gatherv(Persistent, self, sendbuf, recvbuf, root)

    def Scatter_init(
        self, sendbuf: BufSpecB | None, recvbuf: BufSpec | InPlace, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """Create a persistent request to scatter the blocks of one rank to all ranks."""
        return coll.scatter(Persistent, self, sendbuf, recvbuf, root)

    def Scatterv_init(
        self, sendbuf: BufSpecV | None, recvbuf: BufSpec | InPlace, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """Create a persistent request to scatter different amounts of data of one rank to all ranks."""
        return coll.scatterv(Persistent, self, sendbuf, recvbuf, root)

    def Allgather_init(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to gather the blocks of all ranks at all ranks."""
        return coll.allgather(Persistent, self, sendbuf, recvbuf)

    def Allgatherv_init(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to gather different amounts of data of all ranks at all ranks."""
        return coll.allgatherv(Persistent, self, sendbuf, recvbuf)

    def Alltoall_init(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to exchange blocks among all ranks."""
        return coll.alltoall(Persistent, self, sendbuf, recvbuf)

    def Alltoallv_init(self, sendbuf: BufSpecV | InPlace, recvbuf: BufSpecV, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to exchange different amounts of data among all ranks."""
        return coll.alltoallv(Persistent, self, sendbuf, recvbuf)

    def Alltoallw_init(self, sendbuf: BufSpecW | InPlace, recvbuf: BufSpecW, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to exchange data of different amounts and datatypes among all ranks."""
        return alltoallw(Persistent, self, sendbuf, recvbuf)

    def Reduce_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec | None, op: Op = SUM, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """Create a persistent request to combine the operands of all ranks at one rank."""
        return coll.reduce(Persistent, self, sendbuf, recvbuf, op, root)

    def Allreduce_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """Create a persistent request to combine the operands of all ranks at all ranks."""
        return coll.allreduce(Persistent, self, sendbuf, recvbuf, op)

    def Reduce_scatter_block_init(
        self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpec | BufSpecB, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """Create a persistent request to combine the blocks of all ranks, and give each rank one of the result."""
        return coll.reduce_scatter_block(Persistent, self, sendbuf, recvbuf, op)

    def Reduce_scatter_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Sequence[int] | None = None,
        op: Op = SUM,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """Create a persistent request to combine blocks of different lengths, and give each rank one of the result."""
        return coll.reduce_scatter(Persistent, self, sendbuf, recvbuf, recvcounts, op)


class PersistentScans:
    """Mix-in with the persistent scans of an intracommunicator."""

    __slots__ = ()

    def Scan_init(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM, info: Info = INFO_NULL) -> Prequest:
        """Create a persistent request to combine the operands of the ranks up to this one."""
        return coll.scan(Persistent, self, sendbuf, recvbuf, op)

    def Exscan_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """Create a persistent request to combine the operands of the ranks before this one."""
        return coll.exscan(Persistent, self, sendbuf, recvbuf, op)
