"""Communicators of one group and of two."""

from gormapy._ext import core, fast

from .coll import Scans
from .collinit import PersistentScans
from .comm import _WORLD, Comm, _subclasses
from .constants import UNDEFINED
from .exception import check
from .graph import Edges, Graph, edge_list
from .grid import Grid
from .handle import named
from .info import INFO_NULL
from .missing import IntercommCalls, IntracommCalls
from .objcomm import ObjectScans


class Intracomm(Scans, PersistentScans, ObjectScans, IntracommCalls, Comm):
    """Communicator of one group of processes."""

    def Create_group(self, group, tag=0):
        """Create communicator from group."""
        return Intracomm._wrap(fast.result(check(core.CommCreateGroup(self._h, group._h, tag))))

    @classmethod
    def Create_from_group(cls, group, stringtag="org.mpi4py", info=INFO_NULL, errhandler=None):
        """Create communicator from group."""
        from zlib import crc32

        tag = crc32(stringtag.encode()) & 0x3FFFFFFF
        made = cls._wrap(fast.result(check(core.CommCreateGroup(_WORLD, group._h, tag))))
        if made and errhandler is not None:
            made.Set_errhandler(errhandler)
        return made

    def Create_cart(self, dims, periods=None, reorder=False):
        """Create cartesian communicator."""
        grid = Grid(dims, periods)
        inside = grid.map(self.Get_rank(), self.Get_size())
        made = self.Split(0 if inside >= 0 else UNDEFINED, self.rank)
        return _subclasses["Cartcomm"]._placed(made, grid)

    def Cart_map(self, dims, periods=None):
        """Determine optimal process placement on a cartesian topology."""
        return Grid(dims, periods).map(self.Get_rank(), self.Get_size())

    def Create_graph(self, index, edges, reorder=False):
        """Create graph communicator."""
        graph = Graph(index, edges)
        inside = graph.map(self.Get_rank(), self.Get_size())
        made = self.Split(0 if inside >= 0 else UNDEFINED, self.rank)
        return _subclasses["Graphcomm"]._placed(made, graph)

    def Graph_map(self, index, edges):
        """Determine optimal process placement on a graph topology."""
        return Graph(index, edges).map(self.Get_rank(), self.Get_size())

    def Create_dist_graph_adjacent(
        self, sources, destinations, sourceweights=None, destweights=None, info=INFO_NULL, reorder=False
    ):
        """Create distributed graph communicator."""
        edges = Edges(self.Get_size(), sources, destinations, sourceweights, destweights)
        return _subclasses["Distgraphcomm"]._placed(self.Clone(), edges)

    def Create_dist_graph(self, sources, degrees, destinations, weights=None, info=INFO_NULL, reorder=False):
        """Create distributed graph communicator."""
        mine = edge_list(self.Get_size(), sources, degrees, destinations, weights)
        edges = Edges.of(self.Get_rank(), self.Get_size(), self.allgather(mine))
        return _subclasses["Distgraphcomm"]._placed(self.Clone(), edges)


class Intercomm(IntercommCalls, Comm):
    """Communicator of two groups of processes."""


_subclasses.update(Intracomm=Intracomm, Intercomm=Intercomm)


def _predefined(handle, name):
    comm = Intracomm()
    comm._h = handle
    named("Comm", handle, name)
    return comm


COMM_WORLD = _predefined(1, "COMM_WORLD")
COMM_SELF = _predefined(2, "COMM_SELF")
