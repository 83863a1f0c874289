"""Intracommunicators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gormapy._ext import core, fast

from .coll import Scans
from .collinit import PersistentScans
from .comm import _WORLD, Comm, _subclasses
from .commlock import _comm_lock
from .constants import UNDEFINED
from .dynamic import Connecting
from .errhandler import expect_for
from .exception import check
from .graph import Edges, Graph, edge_list
from .grid import Grid
from .handle import expect, named
from .info import INFO_NULL
from .msgbuffer import index
from .objcomm import ObjectScans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .errhandler import Errhandler
    from .group import Group
    from .info import Info
    from .intercomm import Intercomm
    from .topocomm import Cartcomm, Distgraphcomm, Graphcomm


class Intracomm(Scans, PersistentScans, ObjectScans, Connecting, Comm):
    """Communicator of one group of ranks."""

    _groups = 1

    if TYPE_CHECKING:  # those of Comm, with the class that they return

        def Create(self, group: Group) -> Intracomm: ...
        def Split(self, color: int = 0, key: int = 0) -> Intracomm: ...
        def Split_type(self, split_type: int, key: int = 0, info: Info = INFO_NULL) -> Intracomm: ...

    def Create_group(self, group: Group, tag: int = 0) -> Intracomm:
        """Create a communicator of the ranks of a group, which alone call it."""
        return Intracomm._wrap(
            fast.result(check(core.CommCreateGroup(self._h, expect("Group", group, "Create_group"), tag)))
        )

    @classmethod
    def Create_from_group(
        cls, group: Group, stringtag: str = "org.mpi4py", info: Info = INFO_NULL, errhandler: Errhandler | None = None
    ) -> Intracomm:
        """Create a communicator of the processes of a group, without another communicator."""
        members = expect("Group", group, "Create_from_group")
        tag = tag_of(stringtag, "Create_from_group") & 0x3FFFFFFF
        if errhandler is not None:
            expect_for("Comm", errhandler, "Create_from_group: errhandler")
        made = cls._wrap(fast.result(check(core.CommCreateGroup(_WORLD, members, tag))))
        if made and errhandler is not None:
            made.Set_errhandler(errhandler)
        return made

    def Create_cart(
        self, dims: Sequence[int], periods: Sequence[bool] | None = None, reorder: bool = False
    ) -> Cartcomm:
        """Create a communicator with a Cartesian grid."""
        grid = Grid(dims, periods)
        inside = grid.map(self.Get_rank(), self.Get_size())
        made = self.Split(0 if inside >= 0 else UNDEFINED, self.rank)
        return _subclasses["Cartcomm"]._with_topology(made, grid)

    def Cart_map(self, dims: Sequence[int], periods: Sequence[bool] | None = None) -> int:
        """Return the rank that this process would have in a Cartesian grid."""
        return Grid(dims, periods).map(self.Get_rank(), self.Get_size())

    def Create_graph(self, index: Sequence[int], edges: Sequence[int], reorder: bool = False) -> Graphcomm:
        """Create a communicator with a graph that all ranks know."""
        graph = Graph(index, edges)
        inside = graph.map(self.Get_rank(), self.Get_size())
        made = self.Split(0 if inside >= 0 else UNDEFINED, self.rank)
        return _subclasses["Graphcomm"]._with_topology(made, graph)

    def Graph_map(self, index: Sequence[int], edges: Sequence[int]) -> int:
        """Return the rank that this process would have in a graph."""
        return Graph(index, edges).map(self.Get_rank(), self.Get_size())

    def Create_dist_graph_adjacent(
        self,
        sources: Sequence[int],
        destinations: Sequence[int],
        sourceweights: Sequence[int] | None = None,
        destweights: Sequence[int] | None = None,
        info: Info = INFO_NULL,
        reorder: bool = False,
    ) -> Distgraphcomm:
        """Create a communicator with a graph of which each rank gives its own edges."""
        edges = Edges(self.Get_size(), sources, destinations, sourceweights, destweights)
        return _subclasses["Distgraphcomm"]._with_topology(self.Clone(), edges)

    def Create_dist_graph(
        self,
        sources: Sequence[int],
        degrees: Sequence[int],
        destinations: Sequence[int],
        weights: Sequence[int] | None = None,
        info: Info = INFO_NULL,
        reorder: bool = False,
    ) -> Distgraphcomm:
        """Create a communicator with a graph of which each rank gives any edges."""
        mine = edge_list(self.Get_size(), sources, degrees, destinations, weights)
        with _comm_lock(self, "Create_dist_graph"):  # over both collectives
            edges = Edges.of(self.Get_rank(), self.Get_size(), self.allgather(mine))
            return _subclasses["Distgraphcomm"]._with_topology(self.Clone(), edges)

    def Create_intercomm(self, local_leader: int, peer_comm: Intracomm, remote_leader: int, tag: int = 0) -> Intercomm:
        """Create an intercommunicator of two groups."""
        peer = expect("Comm", peer_comm, "Create_intercomm: peer_comm")
        local_leader = index(local_leader, "Create_intercomm: local_leader")
        remote_leader = index(remote_leader, "Create_intercomm: remote_leader")
        tag = index(tag, "Create_intercomm: tag")
        request = core.CommCreateIntercomm(self._h, local_leader, peer, remote_leader, tag)
        return _subclasses["Intercomm"]._wrap(fast.result(check(request)))


def tag_of(stringtag, call):
    """Return the number of 32 bits that stands for a string in the creation of a communicator."""
    from zlib import crc32

    if not isinstance(stringtag, str):
        raise TypeError(f"{call}: stringtag: expecting a string, got {type(stringtag).__name__}")
    return crc32(stringtag.encode())


_subclasses.update(Intracomm=Intracomm)


def _predefined(handle, name):
    comm = Intracomm()
    comm._h = handle
    named("Comm", handle, name)
    return comm


COMM_WORLD = _predefined(1, "COMM_WORLD")
COMM_SELF = _predefined(2, "COMM_SELF")
