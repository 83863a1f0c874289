"""Communicators with a topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import constants
from .comm import COMM_NULL, Comm, _subclasses, _topologies
from .exception import Exception
from .hot import hot
from .intracomm import Intracomm
from .neighbor import NeighborCollectives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self


class Topocomm(NeighborCollectives, Intracomm):
    """Communicator whose ranks have neighbors."""

    _kind = None

    def __new__(cls, comm: Comm | None = None) -> Self:
        if comm:
            kind = _topologies.get(comm._h, (None,))[0]
            if kind is None or cls._kind not in (None, kind):
                raise TypeError(f"expecting {cls.__name__}, got {type(comm).__name__}")
        return super().__new__(cls, comm)

    @classmethod
    def _with_topology(cls, comm, topology):
        """Turn a new communicator into the one with a topology."""
        if not comm:
            return Comm(COMM_NULL)
        made = cls._from_handle(comm._h)
        _topologies[comm._h] = (cls._kind, topology)
        return made

    def _topology(self):
        try:
            return _topologies[self._h][1]
        except KeyError:
            self._checked()
            raise Exception(constants.ERR_TOPOLOGY) from None

    # Neighbors
    # ---------

    def _edges(self):
        """Return the sources of incoming and the destinations of outgoing edges."""
        raise Exception(constants.ERR_TOPOLOGY)

    @property
    def inoutedges(self) -> tuple[list[int], list[int]]:
        """Incoming and outgoing neighbors."""
        sources, destinations = self._edges()
        return list(sources), list(destinations)

    @property
    def inedges(self) -> list[int]:
        """Incoming neighbors."""
        return self.inoutedges[0]

    @property
    def outedges(self) -> list[int]:
        """Outgoing neighbors."""
        return self.inoutedges[1]

    @property
    def degrees(self) -> tuple[int, int]:
        """Numbers of incoming and outgoing neighbors."""
        sources, destinations = self._edges()
        return len(sources), len(destinations)

    @property
    def indegree(self) -> int:
        """Number of incoming neighbors."""
        return self.degrees[0]

    @property
    def outdegree(self) -> int:
        """Number of outgoing neighbors."""
        return self.degrees[1]


class Cartcomm(Topocomm):
    """Communicator whose ranks are the places of a Cartesian grid."""

    _kind = constants.CART

    _grid = Topocomm._topology

    def Get_dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._grid().dims)

    dim = property(Get_dim, doc="Number of dimensions.")
    ndim = property(Get_dim, doc="Number of dimensions.")

    def Get_topo(self) -> tuple[list[int], list[int], list[int]]:
        """Return the grid, and the place of this rank in it."""
        grid = self._grid()
        return list(grid.dims), list(grid.periods), grid.coords(self.Get_rank())

    topo = property(Get_topo, doc="Grid, and the place of this rank in it.")

    @property
    def dims(self) -> list[int]:
        """Lengths of the dimensions."""
        return list(self._grid().dims)

    @property
    def periods(self) -> list[int]:
        """Which dimensions are rings."""
        return list(self._grid().periods)

    @property
    def coords(self) -> list[int]:
        """Coordinates of this rank."""
        return self._grid().coords(self.Get_rank())

    def Get_cart_rank(self, coords: Sequence[int]) -> int:
        """Return the rank at some coordinates."""
        return self._grid().rank(coords)

    def Get_coords(self, rank: int) -> list[int]:
        """Return the coordinates of a rank."""
        try:
            return _topologies[self._h][1].places[rank][:]
        except (KeyError, TypeError):  # not asked for before, or no communicator
            pass
        return self._grid().coords(rank)

    @hot
    def Shift(self, direction: int, disp: int) -> tuple[int, int]:
        """Return the ranks from which and to which data are shifted in one dimension."""
        return self._grid().shift(self.Get_rank(), direction, disp)

    def Sub(self, remain_dims: Sequence[bool]) -> Cartcomm:
        """Create communicators of the rows, planes or other parts of the grid."""
        grid = self._grid()
        kept = [bool(keep) for keep in remain_dims]
        if len(kept) != len(grid.dims):
            raise ValueError(f"Sub: expecting {len(grid.dims)} flags, got {len(kept)}")
        color = 0
        for coord, dim, keep in zip(self.coords, grid.dims, kept):
            color = color if keep else color * dim + coord
        return Cartcomm._with_topology(self.Split(color, self.rank), grid.without(kept))

    def _edges(self):
        """Return the neighbors: in each direction the one before, then the one after."""
        grid = self._grid()
        if grid.around is None:
            grid.around = [rank for direction in range(len(grid.dims)) for rank in self.Shift(direction, 1)]
        return grid.around, grid.around

    def _arrival_order(self):
        # data from the one before were sent to the one after
        return [edge ^ 1 for edge in range(2 * self.dim)]


class Graphcomm(Topocomm):
    """Communicator whose ranks are the nodes of a graph."""

    _kind = constants.GRAPH

    def Get_dims(self) -> tuple[int, int]:
        """Return the numbers of nodes and edges."""
        graph = self._topology()
        return len(graph.index), len(graph.edges)

    @property
    def dims(self) -> tuple[int, int]:
        """Numbers of nodes and edges."""
        return self.Get_dims()

    @property
    def nnodes(self) -> int:
        """Number of nodes."""
        return self.Get_dims()[0]

    @property
    def nedges(self) -> int:
        """Number of edges."""
        return self.Get_dims()[1]

    def Get_topo(self) -> tuple[list[int], list[int]]:
        """Return the graph."""
        graph = self._topology()
        return list(graph.index), list(graph.edges)

    topo = property(Get_topo, doc="Graph.")

    @property
    def index(self) -> list[int]:
        """Number of neighbors of all nodes up to each."""
        return self.Get_topo()[0]

    @property
    def edges(self) -> list[int]:
        """Neighbors of all nodes."""
        return self.Get_topo()[1]

    def Get_neighbors_count(self, rank: int) -> int:
        """Return the number of neighbors of a rank."""
        return len(self._topology().neighbors(rank))

    def Get_neighbors(self, rank: int) -> list[int]:
        """Return the neighbors of a rank."""
        return self._topology().neighbors(rank)

    @property
    def nneighbors(self) -> int:
        """Number of neighbors."""
        return self.Get_neighbors_count(self.Get_rank())

    @property
    def neighbors(self) -> list[int]:
        """Neighbors."""
        return self.Get_neighbors(self.Get_rank())

    def _edges(self):
        ranks = self.neighbors
        return ranks, ranks


class Distgraphcomm(Topocomm):
    """Communicator whose ranks are the nodes of a distributed graph."""

    _kind = constants.DIST_GRAPH

    def Get_dist_neighbors_count(self) -> tuple[int, int, bool]:
        """Return the numbers of this rank's edges."""
        edges = self._topology()
        return len(edges.sources), len(edges.destinations), edges.weights is not None

    def Get_dist_neighbors(self) -> tuple[list[int], list[int], tuple[list[int], list[int]] | None]:
        """Return this rank's edges."""
        edges = self._topology()
        weights: Any = None if edges.weights is None else tuple(map(list, edges.weights))
        return list(edges.sources), list(edges.destinations), weights

    def _edges(self):
        edges = self._topology()
        return edges.sources, edges.destinations


_subclasses.update(Cartcomm=Cartcomm, Graphcomm=Graphcomm, Distgraphcomm=Distgraphcomm)
