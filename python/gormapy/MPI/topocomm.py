"""Communicators with a topology."""

from . import constants
from .comm import COMM_NULL, Comm, _subclasses, _topologies
from .exception import Exception
from .intracomm import Intracomm
from .missing import DistgraphcommCalls, GraphcommCalls, TopocommCalls


class Topocomm(TopocommCalls, Intracomm):
    """Communicator with a topology."""

    _kind = None

    def __new__(cls, comm=None):
        if comm:
            kind = _topologies.get(comm._h, (None,))[0]
            if kind is None or cls._kind not in (None, kind):
                raise TypeError(f"expecting {cls.__name__}, got {type(comm).__name__}")
        return super().__new__(cls, comm)

    @classmethod
    def _placed(cls, comm, topology):
        """Make the communicator with a topology from one that was made for it."""
        if not comm:
            return Comm(COMM_NULL)
        made = cls._from_handle(comm._h)
        _topologies[comm._h] = (cls._kind, topology)
        return made


class Cartcomm(Topocomm):
    """Communicator with a Cartesian grid."""

    _kind = constants.CART

    def _grid(self):
        self._checked()
        try:
            return _topologies[self._h][1]
        except KeyError:
            raise Exception(constants.ERR_TOPOLOGY) from None

    def Get_dim(self):
        """Return number of dimensions."""
        return len(self._grid().dims)

    dim = property(Get_dim, doc="Number of dimensions.")
    ndim = property(Get_dim, doc="Number of dimensions.")

    def Get_topo(self):
        """Return information on the cartesian topology."""
        grid = self._grid()
        return list(grid.dims), list(grid.periods), grid.coords(self.Get_rank())

    topo = property(Get_topo, doc="Topology information.")

    @property
    def dims(self):
        """Dimensions."""
        return list(self._grid().dims)

    @property
    def periods(self):
        """Periodicity."""
        return list(self._grid().periods)

    @property
    def coords(self):
        """Coordinates."""
        return self._grid().coords(self.Get_rank())

    def Get_cart_rank(self, coords):
        """Translate logical coordinates to ranks."""
        return self._grid().rank(coords)

    def Get_coords(self, rank):
        """Translate ranks to logical coordinates."""
        return self._grid().coords(rank)

    def Shift(self, direction, disp):
        """Return the ranks of source and destination for shifting data with Sendrecv."""
        grid, rank = self._grid(), self.Get_rank()
        return grid.neighbor(rank, direction, -disp), grid.neighbor(rank, direction, disp)

    def Sub(self, remain_dims):
        """Return a lower-dimensional Cartesian topology."""
        grid = self._grid()
        kept = [bool(keep) for keep in remain_dims]
        if len(kept) != len(grid.dims):
            raise ValueError(f"Sub: expecting {len(grid.dims)} flags, got {len(kept)}")
        color = 0
        for coord, dim, keep in zip(self.coords, grid.dims, kept):
            color = color if keep else color * dim + coord
        return Cartcomm._placed(self.Split(color, self.rank), grid.without(kept))

    # Neighbors: in each direction the one before, then the one after
    # ---------------------------------------------------------------

    def _neighbors(self):
        return [rank for direction in range(self.dim) for rank in self.Shift(direction, 1)]

    @property
    def degrees(self):
        """Number of incoming and outgoing neighbors."""
        return self.indegree, self.outdegree

    @property
    def indegree(self):
        """Number of incoming neighbors."""
        return 2 * self.dim

    @property
    def outdegree(self):
        """Number of outgoing neighbors."""
        return 2 * self.dim

    @property
    def inoutedges(self):
        """Incoming and outgoing neighbors."""
        return self._neighbors(), self._neighbors()

    @property
    def inedges(self):
        """Incoming neighbors."""
        return self._neighbors()

    @property
    def outedges(self):
        """Outgoing neighbors."""
        return self._neighbors()


class Graphcomm(GraphcommCalls, Topocomm):
    """Communicator with a graph."""

    _kind = constants.GRAPH


class Distgraphcomm(DistgraphcommCalls, Topocomm):
    """Communicator with a distributed graph."""

    _kind = constants.DIST_GRAPH


_subclasses["Cartcomm"] = Cartcomm
